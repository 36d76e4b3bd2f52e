"""Transactional mails: text from ``mails/*.txt`` and HTML generated from it, in the recipient's language and with the
texts of their organization, queued in the request's transaction.

Notifications about changes to an account (identity.services.notifications) are rendered when they are sent. A
template's first line is the subject. A mail to an unverified address contains no text that its requester entered:
otherwise the service would deliver spam.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request

from identity.domain.applications import Application
from identity.domain.audit import SYSTEM, Actor, ActorKind
from identity.domain.email_addresses import email_key
from identity.domain.mail_texts import NO_MAIL_TEXT, MailKind, MailText, sanitize_name
from identity.domain.names import login_name_key
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser, Subject
from identity.http.language_negotiation import choose_language
from identity.pages.mail_rendering import render_mail_content, render_mail_html
from identity.pages.page_branding import PageBranding, load_page_branding
from identity.pages.rendering import PageRenderer
from identity.pages.translation import Translator
from identity.pages.user_agents import describe_user_agent
from identity.provider.directory import is_directory_account
from identity.services.mails import Mail, MailReason, Notification, PasswordResetMail
from identity.services.registration import RegistrationMail
from identity.services.users import InitialCredential

if TYPE_CHECKING:
    from identity.application import IdentityApplication

_DAY, _HOUR, _MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


class TransactionalMails:
    """The mails that a request queues. ``language`` is that of its page, for readers whose own is unknown."""

    def __init__(self, request: Request, language: str) -> None:
        self._request, self._language = request, language

    @staticmethod
    def describe_link_validity(lifetime: timedelta, translator: Translator) -> str:
        """How often and how long a link works, as a sentence of plain text."""
        if lifetime == _HOUR:
            return translator.gettext_plain("It works once, for 1 hour.")
        if lifetime >= _DAY:
            return str(
                translator.ngettext(
                    "It works once, for {n} day.", "It works once, for {n} days.", lifetime // _DAY
                ).unescape()
            )
        minutes = max(1, lifetime // _MINUTE)
        return str(
            translator.ngettext("It works once, for {n} minute.", "It works once, for {n} minutes.", minutes).unescape()
        )

    def queue_password_reset(self, login_name: str, *, page_organization: Organization | None = None) -> None:
        """Send a password reset link to the user with this login name; if there is none, to the users who verified it
        as their email address, in all organizations or in that of the page.

        All cases take the same work. Raises TooManyAttempts.
        """
        subject, link = self._request.services.passwords.request_reset_link(login_name)
        values = {"login_name": login_name if subject is None else subject.login_name, "link": link}
        to = "" if subject is None else user_email(subject)
        # The organization is that of the login name's domain, whether or not the account exists.
        organization = self._request.services.storage.organizations.find_by_domain(login_name_key(login_name)[1])
        self._queue(
            "password_reset",
            MailReason.RESET,
            subject,
            to,
            values,
            organization=organization,
            replaces=login_name,
            forgotten=self._password_reset_mail(login_name, page_organization),
        )

    def queue_registration(
        self,
        organization: Organization,
        email: str,
        registration: RegistrationMail,
        *,
        application: Application | None = None,
    ) -> None:
        """Write to an address that someone registers with, for a sign-in to ``application`` if known: a link that
        creates the account, or a note that one exists.
        """
        if registration.existing_subjects:
            template, reader = "registration_existing_account", registration.existing_subjects[0]
            values: dict[str, object] = {
                "login_names": [subject.login_name for subject in registration.existing_subjects]
            }
        else:
            template, reader = "registration_link", None
            values = {"link": registration.link}
        values["organization"] = organization.name
        self._queue(
            template,
            MailReason.REGISTRATION,
            reader,
            email,
            values,
            organization=organization,
            application=application,
        )

    def queue_email_verification(self, subject: Subject, email: str) -> None:
        """Send a verification link to a user's new email address. Raises NotFound."""
        link = self._request.services.users.issue_email_link(subject.user.id, email)
        values = {"login_name": subject.login_name, "link": link}
        reason = MailReason.OWN_ADDRESS if email == user_email(subject) else MailReason.ADDRESS
        self._queue("email_verification", reason, subject, email, values, organization=subject.organization)

    def queue_initial_credential(
        self, subject: Subject, initial: InitialCredential, *, new: bool, inviter: Subject | None
    ) -> bool:
        """Send a user the credential that a manager created, for a new or an existing account.

        The mail to a new user names the ``inviter``. Returns False, without a mail, if mail is not configured, there is
        no address, or the rate limit is reached.
        """
        to = user_email(subject)
        if not self._request.services.mails.is_enabled or not to:
            return False
        lifetime = self._request.services.passwords.reset_link_lifetime(subject.user.id)
        values = {
            "login_name": subject.login_name,
            "organization": subject.organization.name,
            "inviter": "" if inviter is None else sanitize_name(inviter.user.display_name),
            "works_once": self.describe_link_validity(lifetime, self._translator(subject)),
            "link": initial.secret if initial.kind == "link" else "",
            "password": initial.secret if initial.kind == "one_time_password" else "",
            "to_change": "yes" if self._request.services.passwords.requires_change_after_reset(subject) else "",
        }
        template = "invitation" if new else "new_credential"
        return self._queue(template, MailReason.ACCESS, subject, to, values, organization=subject.organization)

    def queue_email_code(self, subject: Subject, code: str, lifetime: timedelta) -> bool:
        """Send a user a sign-in code; False if the rate limit is reached."""
        values = {
            "login_name": subject.login_name,
            "code": code,
            "works_once": self.describe_link_validity(lifetime, self._translator(subject)),
        }
        organization = subject.organization
        return self._queue(
            "email_code", MailReason.CODE, subject, user_email(subject), values, organization=organization
        )

    def _password_reset_mail(self, typed: str, organization: Organization | None) -> PasswordResetMail:
        """Runs in the mail job. An existing login name is not treated as an email address, even if its account is
        inactive.
        """
        services = self._request.services
        actor, is_login_name = services.audit.actor, services.passwords.is_login_name(typed)
        return PasswordResetMail(
            key="" if is_login_name else email_key(typed) or "",
            organization_id="" if organization is None else organization.id,
            language=self._language,
            client_address=actor.client_address or "",
            request_id=actor.request_id or "",
        )

    def _translator(self, reader: Subject | None) -> Translator:
        """The reader's language if known, else that of the page."""
        pages: PageRenderer = self._request.registry.pages
        locale = reader.user.profile.locale if reader is not None and isinstance(reader.user, HumanUser) else ""
        return pages.catalogs.translator(choose_language(locale.replace("_", "-"), self._language))

    def _queue(
        self,
        template: str,
        reason: MailReason,
        reader: Subject | None,
        to: str,
        values: Mapping[str, object],
        *,
        organization: Organization | None,
        application: Application | None = None,
        replaces: str = "",
        forgotten: PasswordResetMail | None = None,
    ) -> bool:
        identity, pages, services = (
            self._request.registry.application,
            self._request.registry.pages,
            self._request.services,
        )
        translator = self._translator(reader)
        looks = load_page_branding(services, organization, application, translator.language)
        called = looks.organization or ("" if organization is None else organization.name)
        values = {"organization": called, "person_name": _person_name(reader), **values}
        if looks.organization:
            values["organization"] = looks.organization
        custom = services.mail_texts.effective(organization, template, translator.language)
        proved = reader is not None and isinstance(reader.user, HumanUser) and reader.user.profile.email_verified
        queued: bool = services.mails.queue(
            _render_mail(identity, pages, template, to, values, translator, looks, custom),
            reason,
            verified_by=reader.user.id if reader is not None and proved and to == user_email(reader) else "",
            instead_of=replaces,
            password_reset=forgotten,
            organization_id=None if organization is None else organization.id,
            template=template,
            user_id=None if reader is None or not to else reader.user.id,
            language=translator.language,
        )
        return queued


def _render_password_reset_mails(
    identity: "IdentityApplication", pages: PageRenderer, forgotten: PasswordResetMail
) -> list[Mail]:
    """The mails for the accounts of an email address. Each link goes to the address as that account verified it.

    They have no organization's texts: the accounts may belong to several organizations.
    """
    template = MailKind.PASSWORD_RESET_ACCOUNTS
    actor = Actor(
        kind=ActorKind.ANONYMOUS,
        client_address=forgotten.client_address or None,
        request_id=forgotten.request_id or None,
    )
    mails: dict[str, list[dict[str, str]]] = {}
    languages: dict[str, str] = {}
    with identity.transaction(actor) as services:
        for subject in services.passwords.find_subjects_by_email(forgotten.key, forgotten.organization_id):
            address = user_email(subject)
            is_elsewhere = is_directory_account(identity.protocol_registry.directories.values(), subject, services)
            has_link = not is_elsewhere and services.passwords.can_set_password(subject)
            link = services.passwords.issue_mailed_reset_link(subject) if has_link else ""
            mails.setdefault(address, []).append({"login_name": subject.login_name, "link": link})
            languages.setdefault(address, subject.user.profile.locale if isinstance(subject.user, HumanUser) else "")
        drawn = []
        for address, accounts in mails.items():
            translator = pages.catalogs.translator(
                choose_language(languages[address].replace("_", "-"), forgotten.language)
            )
            looks = load_page_branding(services, None, None, translator.language)
            custom = services.mail_texts.effective(None, template, translator.language)
            drawn.append(
                _render_mail(identity, pages, template, address, {"accounts": accounts}, translator, looks, custom)
            )
    return drawn


def _person_name(reader: Subject | None) -> str:
    return reader.user.display_name if reader is not None and isinstance(reader.user, HumanUser) else ""


def user_email(subject: Subject) -> str:
    """Empty if there is none."""
    return subject.user.profile.email if isinstance(subject.user, HumanUser) else ""


def _render_mail(
    identity: "IdentityApplication",
    pages: PageRenderer,
    template: str,
    to: str,
    values: Mapping[str, object],
    translator: Translator,
    looks: PageBranding,
    custom: MailText = NO_MAIL_TEXT,
) -> Mail:
    login_url = identity.settings.login_url
    known: dict[str, object] = {
        "works_once": TransactionalMails.describe_link_validity(identity.settings.one_time_link_ttl, translator),
        "sign_in_url": f"{login_url}/login",
        "reset_url": f"{login_url}/password/reset",
        "account_url": f"{login_url}/account",
    }
    parts = render_mail_content(pages, template, {**known, **values}, translator, looks, custom)
    html = render_mail_html(pages, parts, translator)
    return Mail(to=to, subject=parts.subject, text=parts.text, html=html, sender=looks.mail_sender)


def _render_notification(identity: "IdentityApplication", pages: PageRenderer, notice: Notification) -> Mail:
    translator = pages.catalogs.translator(choose_language(*(tags.replace("_", "-") for tags in notice.languages)))
    at = datetime.fromisoformat(notice.at)
    factor = identity.protocol_registry.factors.get(notice.values.get("factor", ""))
    about = {
        "at": f"{at:%Y-%m-%d %H:%M} UTC",
        "device": describe_user_agent(notice.values.get("user_agent", ""), translator).unescape(),
        "what": notice.values.get("factor", "") if factor is None else translator.gettext_plain(factor.label),
    }
    with identity.read_session(SYSTEM) as services:
        organization = services.storage.organizations.find(notice.organization_id)
        looks = load_page_branding(services, organization, None, translator.language)
        custom = services.mail_texts.effective(organization, notice.template, translator.language)
    called = "" if organization is None else organization.name
    values = {"organization": looks.organization or called, **about, **notice.values}
    if "place" in values:
        values["place"] = sanitize_name(values["place"])
    if "lifetime_seconds" in values:
        lifetime = timedelta(seconds=int(values["lifetime_seconds"]))
        values["works_once"] = TransactionalMails.describe_link_validity(lifetime, translator)
        values["inviter"] = sanitize_name(values["inviter"])
        values["organization"] = looks.organization or values["organization"]
    return _render_mail(identity, pages, notice.template, notice.to, values, translator, looks, custom)


def includeme(config: Configurator) -> None:
    """Register the renderer of notifications in this process."""
    registry = config.registry
    registry.application.mailer.render_notification = partial(
        _render_notification, registry.application, registry.pages
    )
    registry.application.mailer.render_password_reset = partial(
        _render_password_reset_mails, registry.application, registry.pages
    )

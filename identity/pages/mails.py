"""Mails to people: text out of ``mails/*.txt`` and HTML made of it, in the reader's language, with the words of their
organization, queued in the request's transaction.

Notices, which tell of what was done to an account (identity.services.notices), are worded here when they are sent.
A template's first line is the subject. Nothing that a stranger typed goes into a mail to an address that is not known
to be theirs: the service sends no words on behalf of anybody.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request

from identity.domain.applications import Application
from identity.domain.audit import SYSTEM, Actor, ActorKind
from identity.domain.email_addresses import email_key
from identity.domain.names import login_name_key
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser, Subject
from identity.http.locale import choose
from identity.pages.devices import device
from identity.pages.drawing import Pages
from identity.pages.looks import Looks, looks_of
from identity.pages.mail_parts import html_of, parts_of
from identity.pages.translation import Words
from identity.provider.directory import is_of_directory
from identity.services.mails import Forgotten, Mail, Notice, Reason
from identity.services.registration import Announcement
from identity.services.users import Initial

if TYPE_CHECKING:
    from identity.process import Identity

_DAY, _HOUR, _MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


def works_once(lifetime: timedelta, words: Words) -> str:
    """How often and how long a link works, as a sentence of plain text."""
    if lifetime == _HOUR:
        return words.plain("It works once, for 1 hour.")
    if lifetime >= _DAY:
        return str(words.tn("It works once, for {n} day.", "It works once, for {n} days.", lifetime // _DAY).unescape())
    minutes = max(1, lifetime // _MINUTE)
    return str(words.tn("It works once, for {n} minute.", "It works once, for {n} minutes.", minutes).unescape())


def mail_reset(request: Request, login_name: str, *, language: str, of_page: Organization | None = None) -> None:
    """Write to whoever has this login name with a link for a new password; if nobody has it, to those who verified it
    as their email address: everywhere by their own link, or at the organization of the page.

    All of it takes the same work. Raises TooManyAttempts.
    """
    subject, link = request.services.passwords.ask_for_link(login_name)
    values = {"login_name": login_name if subject is None else subject.login_name, "link": link}
    to = "" if subject is None else email_of(subject)
    # Of the organization that the name tells, whether or not anybody has it there.
    organization = request.services.storage.organizations.find_by_domain(login_name_key(login_name)[1])
    _queue(
        request,
        "reset",
        Reason.RESET,
        subject,
        to,
        values,
        language=language,
        organization=organization,
        instead_of=login_name,
        forgotten=_typed_address(request, login_name, language=language, organization=of_page),
    )


def _typed_address(request: Request, typed: str, *, language: str, organization: Organization | None) -> Forgotten:
    """What the mail job looks for. A login name that exists, of an active account or not, is no address."""
    actor, is_login_name = request.services.audit.actor, request.services.passwords.is_login_name(typed)
    return Forgotten(
        key="" if is_login_name else email_key(typed) or "",
        organization_id="" if organization is None else organization.id,
        language=language,
        client_address=actor.client_address or "",
        request_id=actor.request_id or "",
    )


def _forgotten(identity: "Identity", pages: Pages, forgotten: Forgotten) -> list[Mail]:
    """The mails with the accounts of an address. Each account's link goes to the very address that it has verified.

    Managers word no part of them: they may be about accounts of several organizations.
    """
    actor = Actor(
        kind=ActorKind.ANONYMOUS,
        client_address=forgotten.client_address or None,
        request_id=forgotten.request_id or None,
    )
    mails: dict[str, list[dict[str, str]]] = {}
    languages: dict[str, str] = {}
    with identity.transaction(actor) as services:
        for subject in services.passwords.of_address(forgotten.key, forgotten.organization_id):
            address = email_of(subject)
            is_elsewhere = is_of_directory(identity.protocol.directories.values(), subject, services)
            has_link = not is_elsewhere and services.passwords.may_be_chosen(subject)
            link = services.passwords.mail_link(subject) if has_link else ""
            mails.setdefault(address, []).append({"login_name": subject.login_name, "link": link})
            languages.setdefault(address, subject.user.profile.locale if isinstance(subject.user, HumanUser) else "")
        drawn = []
        for address, accounts in mails.items():
            words = pages.catalogs.words(choose(languages[address].replace("_", "-"), forgotten.language))
            looks = looks_of(services, None, None, words.language)
            drawn.append(_drawn(identity, pages, "forgotten", address, {"accounts": accounts}, words, looks))
    return drawn


def mail_announcement(
    request: Request,
    organization: Organization,
    email: str,
    announced: Announcement,
    *,
    language: str,
    application: Application | None = None,
) -> None:
    """Write to an address with which somebody registers, to sign in to an application if that is known: the link that
    makes the account, or that there is one."""
    if announced.known:
        template, reader = "known", announced.known[0]
        values: dict[str, object] = {"login_names": [one.login_name for one in announced.known]}
    else:
        template, reader = "registration", None
        values = {"link": announced.link}
    values["organization"] = organization.name
    _queue(
        request,
        template,
        Reason.REGISTRATION,
        reader,
        email,
        values,
        language=language,
        organization=organization,
        application=application,
    )


def mail_email_link(request: Request, subject: Subject, email: str, *, language: str) -> None:
    """Write to the new address of a person with a link that proves that they read it. Raises NotFound."""
    link = request.services.users.issue_email_link(subject.user.id, email)
    values = {"login_name": subject.login_name, "link": link}
    reason = Reason.OWN_ADDRESS if email == email_of(subject) else Reason.ADDRESS
    _queue(request, "email", reason, subject, email, values, language=language, organization=subject.organization)


def mail_initial(
    request: Request, subject: Subject, initial: Initial, *, new: bool, by: Subject | None, language: str
) -> bool:
    """Write to a person with what a manager made for them to get in by: to a new account, or to one that there was.

    A new one learns ``by`` whom it was made.

    False, and nothing is written, where no mail can be sent, or there is no address, or it was written to too often.
    """
    to = email_of(subject)
    if not request.services.mails.enabled or not to:
        return False
    lifetime = request.services.passwords.link_lifetime(subject.user.id)
    values = {
        "login_name": subject.login_name,
        "organization": subject.organization.name,
        "inviter": "" if by is None else harmless_name(by.user.display_name),
        "works_once": works_once(lifetime, _words(request, subject, language)),
        "link": initial.secret if initial.kind == "link" else "",
        "password": initial.secret if initial.kind == "one_time_password" else "",
        "to_change": "yes" if request.services.passwords.changed_after_reset(subject) else "",
    }
    template = "invited" if new else "new_access"
    organization = subject.organization
    return _queue(request, template, Reason.ACCESS, subject, to, values, language=language, organization=organization)


#: How much of a name a mail shows, and what is left out: mail programs make links of it.
_LONGEST_NAME = 60
_NOT_OF_NAMES = re.compile(r"[^\w\s'’,&().-]+|[.](?!\s)")


def harmless_name(name: str) -> str:
    """A name that somebody chose for themselves, as a mail to others shows it: no address, bounded."""
    return " ".join(_NOT_OF_NAMES.sub(" ", name).split())[:_LONGEST_NAME].strip()


def mail_code(request: Request, subject: Subject, code: str, lifetime: timedelta, *, language: str) -> bool:
    """Write to a person with a code that proves that they read it; False if they were written to too often."""
    values = {
        "login_name": subject.login_name,
        "code": code,
        "works_once": works_once(lifetime, _words(request, subject, language)),
    }
    return _queue(
        request,
        "code",
        Reason.CODE,
        subject,
        email_of(subject),
        values,
        language=language,
        organization=subject.organization,
    )


def email_of(subject: Subject) -> str:
    """The person's address; empty if there is none."""
    return subject.user.profile.email if isinstance(subject.user, HumanUser) else ""


def _words(request: Request, reader: Subject | None, language: str) -> Words:
    """In the language of whoever reads, where it is known; else in that of the page."""
    pages: Pages = request.registry.pages
    locale = reader.user.profile.locale if reader is not None and isinstance(reader.user, HumanUser) else ""
    return pages.catalogs.words(choose(locale.replace("_", "-"), language))


def _queue(
    request: Request,
    template: str,
    reason: Reason,
    reader: Subject | None,
    to: str,
    values: Mapping[str, object],
    *,
    language: str,
    organization: Organization | None,
    application: Application | None = None,
    instead_of: str = "",
    forgotten: Forgotten | None = None,
) -> bool:
    pages: Pages = request.registry.pages
    words = _words(request, reader, language)
    looks = looks_of(request.services, organization, application, words.language)
    if looks.organization and "organization" in values:
        values = {**values, "organization": looks.organization}
    mail = _drawn(request.registry.identity, pages, template, to, values, words, looks)
    proved = reader is not None and isinstance(reader.user, HumanUser) and reader.user.profile.email_verified
    proved_by = reader.user.id if reader is not None and proved and to == email_of(reader) else ""
    organization_id = None if organization is None else organization.id
    queued: bool = request.services.mails.queue(
        mail,
        reason,
        proved_by=proved_by,
        instead_of=instead_of,
        forgotten=forgotten,
        organization_id=organization_id,
    )
    return queued


def _drawn(
    identity: "Identity",
    pages: Pages,
    template: str,
    to: str,
    values: Mapping[str, object],
    words: Words,
    looks: Looks,
) -> Mail:
    login_url = identity.settings.login_url
    known: dict[str, object] = {
        "works_once": works_once(identity.settings.link_lifetime, words),
        "sign_in_url": f"{login_url}/login",
        "reset_url": f"{login_url}/password/reset",
        "account_url": f"{login_url}/account",
    }
    parts = parts_of(pages, template, {**known, **values}, words, looks)
    html = html_of(pages, parts, words)
    return Mail(to=to, subject=parts.subject, text=parts.text, html=html, sender=looks.mail_sender)


def _worded(identity: "Identity", pages: Pages, notice: Notice) -> Mail:
    """The mail that tells a person of their account, in their language."""
    words = pages.catalogs.words(choose(*(tags.replace("_", "-") for tags in notice.languages)))
    at = datetime.fromisoformat(notice.at)
    factor = identity.protocol.factors.get(notice.values.get("factor", ""))
    about = {
        "at": f"{at:%Y-%m-%d %H:%M} UTC",
        "device": device(notice.values.get("user_agent", ""), words).unescape(),
        "what": notice.values.get("factor", "") if factor is None else words.plain(factor.label),
    }
    with identity.reading(SYSTEM) as services:
        organization = services.storage.organizations.find(notice.organization_id)
        looks = looks_of(services, organization, None, words.language)
    return _drawn(identity, pages, notice.template, notice.to, {**about, **notice.values}, words, looks)


def includeme(config: Configurator) -> None:
    """Have notices worded in this process."""
    registry = config.registry
    registry.identity.mailer.worded = partial(_worded, registry.identity, registry.pages)
    registry.identity.mailer.forgotten = partial(_forgotten, registry.identity, registry.pages)

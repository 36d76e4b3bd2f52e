"""/account/profile: the user's profile, and the email verification link."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from pyramid.request import Request
from pyramid.response import Response

from identity.api.entities import Invalid
from identity.api.pages import Form, FormPage, TransactionalMails, Translator, gettext_lazy
from identity.api.services import ChangeAddress, ChangeProfile
from identity.plugins.account.pages.account_page import PROFILE_PATH, AccountPage

_MAIN_FIELDS = ("given_name", "family_name", "display_name", "nickname", "email", "phone", "locale", "zoneinfo")
_FURTHER_FIELDS = ("middle_name", "gender", "birthdate", "profile", "website", "picture")
_ADDRESS_FIELDS = tuple(ChangeAddress.model_fields)

_CURRENT_PASSWORD_FIELD = "current_password"  # noqa: S105 - a field

#: The messages of empty fields name the field: the summary above the form lists them.
_MISSING = {
    "given_name": gettext_lazy("Enter your given name."),
    "family_name": gettext_lazy("Enter your family name."),
}

#: Areas of the time zone database with well-known names.
_TIME_ZONE_AREAS = (
    "Africa/",
    "America/",
    "Antarctica/",
    "Asia/",
    "Atlantic/",
    "Australia/",
    "Europe/",
    "Indian/",
    "Pacific/",
)


class ProfilePage(AccountPage, FormPage):
    """Every standard claim. Nothing entered here becomes verified."""

    template = "account/profile.html"
    section = PROFILE_PATH
    secret_fields = frozenset({_CURRENT_PASSWORD_FIELD})

    def __init__(self, context: Any, request: Request) -> None:
        super().__init__(context, request)
        definitions = request.services.attributes.list_definitions(self.human_user.organization_id)
        self._definitions = [item for item in definitions if item.is_visible_to_person]
        self._attributes = self.attribute_fields([item for item in self._definitions if item.is_editable_by_person])
        self.fields = (
            *_MAIN_FIELDS,
            *self._attributes.names,
            *_FURTHER_FIELDS,
            *_ADDRESS_FIELDS,
            _CURRENT_PASSWORD_FIELD,
        )

    def _attribute_values(self) -> Mapping[str, Any]:
        if not self._definitions:
            return {}
        values: Mapping[str, Any] = self.request.services.attributes.user_values([self.human_user])[self.human_user.id]
        return values

    def initial_values(self) -> Mapping[str, str]:
        person = self.human_user
        profile = person.profile
        return {
            **{name: getattr(profile, name) for name in (*_MAIN_FIELDS, *_FURTHER_FIELDS)},
            **{name: getattr(profile.address, name) for name in _ADDRESS_FIELDS},
            **self._attributes.format_values(self._attribute_values()),
            Form.VERSION_FIELD: str(person.version),
        }

    def template_variables(self) -> Mapping[str, object]:
        profile = self.human_user.profile
        fixed = [item for item in self._definitions if not item.is_editable_by_person]
        return {
            "attributes": self._attributes.render(self.translator),
            "fixed_attributes": self._attributes.describe(fixed, self._attribute_values(), self.translator),
            "fragments": self.fragments(),
            "email": profile.email,
            "verified": profile.email_verified,
            "mailing": self.request.services.mails.is_enabled,
            "languages": _language_options(profile.locale),
            "zones": _time_zones(),
            "more": (*_FURTHER_FIELDS, *_ADDRESS_FIELDS),
            "password_proves": self.is_password_sole_factor,
        }

    def submit(self, form: Form) -> Response:
        """Save the profile. If mail is configured, a new address is stored only when its verification link is used. An
        email address can reset the password, so changing it requires a recent authentication."""
        command = _parse_form(form, self._attributes.parse(form))
        version = form.version()
        if command.email != self.human_user.profile.email:
            self.require_reauthentication(form, _CURRENT_PASSWORD_FIELD)
        services, before = self.request.services, self.human_user
        unverified_email = ""
        if services.mails.is_enabled and command.email not in ("", before.profile.email):
            unverified_email, command = command.email or "", command.model_copy(update={"email": None})
            _count_mail(self)
        services.users.change_profile(before.id, command, expected_version=version)
        if unverified_email:
            TransactionalMails(self.request, self.language).queue_email_verification(self.subject, unverified_email)
        return self.redirect(self.path_with_flash(PROFILE_PATH))


class SendEmailVerificationPage(AccountPage, FormPage):
    """Sends a verification link for a stored, unverified address."""

    template = "account/send_email_verification.html"
    section = PROFILE_PATH

    def template_variables(self) -> Mapping[str, object] | Response:
        """The address; redirects to the profile if there is nothing to verify or mail is not configured."""
        profile = self.human_user.profile
        if not profile.email or profile.email_verified or not self.request.services.mails.is_enabled:
            return self.redirect(PROFILE_PATH)
        return {"email": profile.email}

    def submit(self, form: Form) -> Response:
        profile = self.human_user.profile
        if not profile.email or profile.email_verified or not self.request.services.mails.is_enabled:
            return self.redirect(PROFILE_PATH)
        _count_mail(self)
        TransactionalMails(self.request, self.language).queue_email_verification(self.subject, profile.email)
        return self.redirect(self.path_with_flash(PROFILE_PATH))


def _count_mail(page: FormPage) -> None:
    """Count a mail to an unverified address. Raises FormRedisplay."""
    with page.rate_limited():
        page.request.services.attempts.count_request()


def _parse_form(form: Form, attributes: Mapping[str, object]) -> ChangeProfile:
    """The submitted profile. Raises Invalid with all errors at once."""
    problems: dict[str, str] = {}
    address = ChangeAddress()
    try:
        address = ChangeAddress.decode(form.command_values(*_ADDRESS_FIELDS))
    except Invalid as refused:
        problems |= refused.fields
    try:
        values = form.command_values(*_MAIN_FIELDS, *_FURTHER_FIELDS)
        command = ChangeProfile.decode({**values, "address": address, "attributes": attributes})
    except Invalid as refused:
        missing = {name: sentence for name, sentence in _MISSING.items() if not form.text(name).strip()}
        raise Invalid(refused.fields | missing | problems) from None
    if problems:
        raise Invalid(problems)
    return command


def _language_options(current: str) -> list[tuple[str, str]]:
    """The languages of the pages, and the user's language if it is another."""
    known = list(Translator.LANGUAGE_NAMES.items())
    return known if not current or current in Translator.LANGUAGE_NAMES else [(current, current), *known]


@cache
def _time_zones() -> tuple[str, ...]:
    return tuple(sorted(zone for zone in available_timezones() if zone.startswith(_TIME_ZONE_AREAS)))

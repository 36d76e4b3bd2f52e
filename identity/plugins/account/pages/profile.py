"""/account/profile: what people say of themselves; and the link that proves that an address is theirs."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from zoneinfo import available_timezones

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.users import Address
from identity.domain.words import LANGUAGES, say
from identity.pages.forms import VERSION, Form
from identity.pages.held_back import held_back
from identity.pages.mails import mail_email_link
from identity.pages.page import FormPage
from identity.pages.signed_in_page import version_of
from identity.pages.translation import LANGUAGE_NAMES
from identity.plugins.account.pages.account_page import PROFILE, AccountPage
from identity.services.attempts import TooManyAttempts
from identity.services.commands import decode
from identity.services.commands.users import ChangeAddress, ChangeProfile

_FIRST = ("given_name", "family_name", "display_name", "nickname", "email", "phone", "locale", "zoneinfo")
_MORE = ("middle_name", "gender", "birthdate", "profile", "website", "picture")
_ADDRESS = tuple(one.name for one in fields(Address))

_PROOF = "current_password"

#: What is said of an empty field tells which one it is: the summary above the form lists them.
_MISSING = {
    "given_name": say("Enter your given name."),
    "family_name": say("Enter your family name."),
}

#: Areas of the time zone database whose names people know.
_AREAS = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")


class Profile(AccountPage, FormPage):
    """Every standard claim. Nothing becomes verified by being said here."""

    template = "account/profile.html"
    section = PROFILE
    fields = (*_FIRST, *_MORE, *_ADDRESS, _PROOF)
    secret_fields = frozenset({_PROOF})

    def values(self) -> Mapping[str, str]:
        person = self.person
        profile = person.profile
        return {
            **{name: getattr(profile, name) for name in (*_FIRST, *_MORE)},
            **{name: getattr(profile.address, name) for name in _ADDRESS},
            VERSION: str(person.version),
        }

    def show(self) -> Mapping[str, object]:
        profile = self.person.profile
        return {
            "email": profile.email,
            "verified": profile.email_verified,
            "mailing": self.request.services.mails.enabled,
            "languages": _languages(profile.locale),
            "zones": _zones(),
            "more": (*_MORE, *_ADDRESS),
            "password_proves": self.password_proves,
        }

    def submit(self, form: Form) -> Response:
        """Save it; where mail can be sent, a new address gets a link first, which makes it the person's.

        Whoever reads the mail of the address can choose a new password, so who they are is proved again.
        """
        command = _command(form)
        version = version_of(form.one(VERSION))
        if command.email != self.person.profile.email:
            self.prove_for(form, _PROOF)
        services, before = self.request.services, self.person
        asked = ""
        if services.mails.enabled and command.email not in ("", before.profile.email):
            asked, command = command.email or "", command.model_copy(update={"email": None})
            _count(self)
        services.users.change_profile(before.id, command, expected_version=version)
        if asked:
            mail_email_link(self.request, self.subject, asked, language=self.language)
        return self.redirect(self.done(PROFILE))


class ConfirmEmail(AccountPage, FormPage):
    """A link for an address that is stored and was never proved."""

    template = "account/confirm_email.html"
    section = PROFILE

    def show(self) -> Mapping[str, object] | Response:
        """The address; back to the profile if there is nothing to prove, or no way to."""
        profile = self.person.profile
        if not profile.email or profile.email_verified or not self.request.services.mails.enabled:
            return self.redirect(PROFILE)
        return {"email": profile.email}

    def submit(self, form: Form) -> Response:
        profile = self.person.profile
        if not profile.email or profile.email_verified or not self.request.services.mails.enabled:
            return self.redirect(PROFILE)
        _count(self)
        mail_email_link(self.request, self.subject, profile.email, language=self.language)
        return self.redirect(self.done(PROFILE))


def _count(page: AccountPage) -> None:
    """Count a mail to an address that nobody has proved to be theirs. Raises Again."""
    try:
        page.request.services.attempts.count_request()
    except TooManyAttempts as problem:
        raise held_back(problem, password=False) from None


def _command(form: Form) -> ChangeProfile:
    """What was typed. Raises Invalid for all that is wrong with it at once."""
    problems: dict[str, str] = {}
    address = ChangeAddress()
    try:
        address = decode(ChangeAddress, form.texts(*_ADDRESS))
    except Invalid as refused:
        problems |= refused.fields
    try:
        command = decode(ChangeProfile, {**form.texts(*_FIRST, *_MORE), "address": address})
    except Invalid as refused:
        missing = {name: sentence for name, sentence in _MISSING.items() if not form.one(name).strip()}
        raise Invalid(refused.fields | missing | problems) from None
    if problems:
        raise Invalid(problems)
    return command


def _languages(own: str) -> list[tuple[str, str]]:
    """The languages that pages speak, and the person's own one if that is another."""
    known = [(code, LANGUAGE_NAMES[code]) for code in LANGUAGES]
    return known if not own or own in LANGUAGES else [(own, own), *known]


@cache
def _zones() -> tuple[str, ...]:
    return tuple(sorted(zone for zone in available_timezones() if zone.startswith(_AREAS)))

"""Rules of sign-in policies: their labels, and what their values mean."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.policies import ConsentDefault, Policy, RegistrationRule, SecondFactorRule
from identity.plugins.console.field_labels import FieldLabel, has_capability, labelled_fields

SIGN_IN = _("Sign-in")
_PASSWORDS = _("Passwords")
_SESSIONS = _("Sessions")
_ATTEMPTS = _("Attempts")
_CONSENT = _("Consent")
_REGISTRATION = _("Registration")
_ACCOUNTS = _("Accounts")

POLICY_FIELDS = labelled_fields(
    Policy,
    {
        "second_factor": FieldLabel(
            _("Second factor"),
            _("What people must prove in addition to their password, or with a passkey alone."),
            section=SIGN_IN,
            value_labels={
                SecondFactorRule.OFF: _("Never requested, and cannot be set up"),
                SecondFactorRule.OFFERED: _("Required for people who have set one up"),
                SecondFactorRule.REQUIRED_FOR_IAM: _("Required for instance managers"),
                SecondFactorRule.REQUIRED_FOR_MANAGERS: _("Required for all managers"),
                SecondFactorRule.REQUIRED: _("Required for everyone"),
            },
        ),
        "factors": FieldLabel(_("Sign-in methods"), _("How people can prove who they are."), section=SIGN_IN),
        "remember_browser": FieldLabel(
            _("Remember browsers for"),
            _("For this many days people can choose not to be asked for a second factor in a browser. 0: always ask."),
            section=SIGN_IN,
        ),
        "sign_in_by_email": FieldLabel(
            _("Sign in with email address"),
            _("A login name that exists always comes first. An address counts once it is verified."),
            section=SIGN_IN,
            value_labels={
                False: _("People sign in only with their login name"),
                True: _("People sign in with their login name or their email address"),
            },
        ),
        "passkey_upgrade": FieldLabel(
            _("Passkey after a password"),
            _("Whether browsers save a passkey, without a question, when a person has signed in with a password."),
            section=SIGN_IN,
            value_labels={
                False: _("People add passkeys themselves"),
                True: _("Browsers and password managers that can do so save a passkey after a sign-in with a password"),
            },
            is_available=has_capability(lambda capabilities: "passkeys" in capabilities.passwordless_factors),
        ),
        "password_min_length": FieldLabel(
            _("Minimum length"),
            _("Minimum length of new passwords. Existing passwords stay valid."),
            section=_PASSWORDS,
        ),
        "password_strength": FieldLabel(
            _("Strength"),
            _("How hard a new password must be to guess, estimated from common words, names, dates and patterns."),
            section=_PASSWORDS,
            value_labels={
                0: _("Any that are not widely known"),
                1: _("Withstands a thousand guesses"),
                2: _("Withstands a million guesses"),
                3: _("Withstands a hundred million guesses"),
                4: _("Withstands ten billion guesses"),
            },
        ),
        "password_change_after_reset": FieldLabel(
            _("After a reset"),
            _("What happens from now on to a password that a manager sets for a person."),
            section=_PASSWORDS,
            value_labels={
                False: _("A password set by a manager stays valid until the person changes it"),
                True: _("A password set by a manager must be changed at the next sign-in"),
            },
        ),
        "session_idle_age": FieldLabel(
            _("End unused sessions after"),
            _("After this long without activity, people must sign in again. For example 30m, 12h or 7d."),
            section=_SESSIONS,
        ),
        "session_max_age": FieldLabel(
            _("End all sessions after"),
            _("How long after signing in people must sign in again. For example 12h or 7d."),
            section=_SESSIONS,
        ),
        "single_session": FieldLabel(
            _("Concurrent browsers"),
            _("How many browsers a person can be signed in to."),
            section=_SESSIONS,
            value_labels={
                False: _("People can be signed in to several browsers"),
                True: _("Signing in to one browser signs the person out of all others"),
            },
        ),
        "free_attempts": FieldLabel(
            _("Attempts without delay"),
            _(
                "How many wrong passwords or codes in a row are allowed without a delay. After that, "
                "delays grow to 15 minutes."
            ),
            section=_ATTEMPTS,
        ),
        "most_attempts": FieldLabel(
            _("Maximum attempts in a row"),
            _("After this many, the password works only in browsers where the person has signed in before."),
            section=_ATTEMPTS,
        ),
        "consent": FieldLabel(
            _("Consent"),
            _(
                "Which applications need consent before they receive data about a person. Individual "
                "applications can be exempt."
            ),
            section=_CONSENT,
            value_labels={
                ConsentDefault.WHEN_FOREIGN: _("People are asked once for each application of another organization"),
                ConsentDefault.ALWAYS: _(
                    "People are asked once for each application, including those of their own organization"
                ),
            },
        ),
        "registration": FieldLabel(
            _("Who can register"),
            _("Each organization decides whether people can register with it."),
            section=_REGISTRATION,
            value_labels={
                RegistrationRule.ALLOWED: _("Anyone, if the organization allows registration"),
                RegistrationRule.BY_DOMAIN: _("Only people with an email address at one of the given domains"),
                RegistrationRule.BY_PROVIDER: _(
                    "Only people from an identity provider of the organization that creates accounts"
                ),
                RegistrationRule.OFF: _("Nobody, regardless of the organization's settings"),
            },
        ),
        "registration_domains": FieldLabel(
            _("Email domains"),
            _("If you enter domains, one per line, only people with an email address at one of them can register."),
            section=_REGISTRATION,
        ),
        "registration_verified": FieldLabel(
            _("Email address is verified first"),
            _("Whether an account is created before its address is verified."),
            section=_REGISTRATION,
            value_labels={
                False: _("Without a mail server, the account is created at once with an unverified address"),
                True: _(
                    "Accounts are created only through an emailed link, so without a mail server nobody can register"
                ),
            },
        ),
        "account_deletion": FieldLabel(
            _("Deletion of accounts"),
            _("People who delete their own account have 14 days to change their mind."),
            section=_ACCOUNTS,
            value_labels={False: _("Only managers delete accounts"), True: _("People can delete their own accounts")},
        ),
    },
)

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def describe_rule(name: str, value: Any) -> str:
    """What a rule with this value means; empty for lists of words."""
    labels = POLICY_FIELDS[name].value_labels
    if labels:
        return labels[value]
    template = _EFFECTS.get(name)
    return "" if template is None else template(value)


def _days(number: int) -> str:
    if not number:
        return _("A second factor is required at every sign-in")
    return ngettext_lazy("For {n} day, if the person chooses to", "For {n} days, if the person chooses to", number)


def _span(span: timedelta) -> str:
    if not span % _DAY:
        return ngettext_lazy("{n} day", "{n} days", span // _DAY)
    if not span % _HOUR:
        return ngettext_lazy("{n} hour", "{n} hours", span // _HOUR)
    if not span % _MINUTE:
        return ngettext_lazy("{n} minute", "{n} minutes", span // _MINUTE)
    return ngettext_lazy("{n} second", "{n} seconds", int(span.total_seconds()))


_EFFECTS: Mapping[str, Callable[[Any], str]] = {
    "remember_browser": _days,
    "password_min_length": lambda number: _("At least {n} characters", n=number),
    "free_attempts": lambda number: ngettext_lazy("{n} attempt", "{n} attempts", number),
    "most_attempts": lambda number: ngettext_lazy("{n} attempt", "{n} attempts", number),
    "session_idle_age": _span,
    "session_max_age": _span,
}

"""Rules of sign-in policies: their labels, and what their values mean."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.policies import ConsentDefault, Policy, RegistrationRule, SecondFactorRule
from identity.plugins.console.field_labels import FieldLabel, labelled_fields

SIGN_IN = gettext_lazy("Sign-in")
_PASSWORDS = gettext_lazy("Passwords")
_SESSIONS = gettext_lazy("Sessions")
_ATTEMPTS = gettext_lazy("Attempts")
_CONSENT = gettext_lazy("Consent")
_REGISTRATION = gettext_lazy("Registration")
_ACCOUNTS = gettext_lazy("Accounts")

POLICY_FIELDS = labelled_fields(
    Policy,
    {
        "second_factor": FieldLabel(
            gettext_lazy("Second factor"),
            gettext_lazy("What people prove besides their password, or by a passkey alone."),
            section=SIGN_IN,
            value_labels={
                SecondFactorRule.OFF: gettext_lazy("Nobody is asked, and nobody can set one up"),
                SecondFactorRule.OFFERED: gettext_lazy("Whoever has set one up is asked for it"),
                SecondFactorRule.REQUIRED_FOR_IAM: gettext_lazy("Managers of the instance need one"),
                SecondFactorRule.REQUIRED_FOR_MANAGERS: gettext_lazy("All managers need one"),
                SecondFactorRule.REQUIRED: gettext_lazy("Everybody needs one"),
            },
        ),
        "factors": FieldLabel(
            gettext_lazy("Ways to sign in"), gettext_lazy("By which people can prove who they are."), section=SIGN_IN
        ),
        "remember_browser": FieldLabel(
            gettext_lazy("Remember browsers for"),
            gettext_lazy(
                "For so many days people can have a browser not ask for a second factor. 0: it is asked every time."
            ),
            section=SIGN_IN,
        ),
        "sign_in_by_email": FieldLabel(
            gettext_lazy("Sign in by email address"),
            gettext_lazy("A login name that exists always comes first. An address counts once it is verified."),
            section=SIGN_IN,
            value_labels={
                False: gettext_lazy("People sign in by their login name alone"),
                True: gettext_lazy("People sign in by their login name or their email address"),
            },
        ),
        "password_min_length": FieldLabel(
            gettext_lazy("Fewest characters"),
            gettext_lazy("How long a new password has to be. Passwords that there are stay good."),
            section=_PASSWORDS,
        ),
        "password_strength": FieldLabel(
            gettext_lazy("Strength"),
            gettext_lazy(
                "How hard a new password is to guess, as estimated by common words, names, dates and patterns."
            ),
            section=_PASSWORDS,
            value_labels={
                0: gettext_lazy("Whatever is not well known"),
                1: gettext_lazy("Not guessed by a thousand tries"),
                2: gettext_lazy("Not guessed by a million tries"),
                3: gettext_lazy("Not guessed by a hundred million tries"),
                4: gettext_lazy("Not guessed by ten thousand million tries"),
            },
        ),
        "password_change_after_reset": FieldLabel(
            gettext_lazy("After a reset"),
            gettext_lazy("What becomes of a password that somebody else sets for a person, from now on."),
            section=_PASSWORDS,
            value_labels={
                False: gettext_lazy("A password that a manager sets stays good until the person changes it"),
                True: gettext_lazy("A password that a manager sets has to be changed at the next sign-in"),
            },
        ),
        "session_idle_age": FieldLabel(
            gettext_lazy("End unused sessions after"),
            gettext_lazy("Whoever does nothing for so long signs in again. For example 30m, 12h or 7d."),
            section=_SESSIONS,
        ),
        "session_max_age": FieldLabel(
            gettext_lazy("End all sessions after"),
            gettext_lazy("So long after a sign-in everybody signs in again. For example 12h or 7d."),
            section=_SESSIONS,
        ),
        "single_session": FieldLabel(
            gettext_lazy("Browsers at a time"),
            gettext_lazy("At how many browsers a person can be signed in."),
            section=_SESSIONS,
            value_labels={
                False: gettext_lazy("People can be signed in at several browsers"),
                True: gettext_lazy("Signing in at a browser signs the person out at all others"),
            },
        ),
        "free_attempts": FieldLabel(
            gettext_lazy("Free attempts"),
            gettext_lazy(
                "So many wrong passwords or codes in a row make nobody wait. Then the waits grow to 15 minutes."
            ),
            section=_ATTEMPTS,
        ),
        "most_attempts": FieldLabel(
            gettext_lazy("Most attempts in a row"),
            gettext_lazy("After so many the password counts only at browsers where the person signed in before."),
            section=_ATTEMPTS,
        ),
        "consent": FieldLabel(
            gettext_lazy("Consent"),
            gettext_lazy(
                "Before which applications get something about a person. An application can be exempt by itself."
            ),
            section=_CONSENT,
            value_labels={
                ConsentDefault.WHEN_FOREIGN: gettext_lazy(
                    "People agree once to each application of another organization"
                ),
                ConsentDefault.ALWAYS: gettext_lazy(
                    "People agree once to each application, also of their own organization"
                ),
            },
        ),
        "registration": FieldLabel(
            gettext_lazy("Who can register"),
            gettext_lazy("Each organization says by itself whether people can register with it at all."),
            section=_REGISTRATION,
            value_labels={
                RegistrationRule.ALLOWED: gettext_lazy("Whoever wants to, where the organization lets people register"),
                RegistrationRule.BY_DOMAIN: gettext_lazy(
                    "Nobody but people with an email address of the domains that are named"
                ),
                RegistrationRule.BY_PROVIDER: gettext_lazy(
                    "Only people who come from an identity provider of the organization that creates accounts"
                ),
                RegistrationRule.OFF: gettext_lazy("Nobody, whatever the organization says"),
            },
        ),
        "registration_domains": FieldLabel(
            gettext_lazy("Email domains"),
            gettext_lazy(
                "If domains are named, one a line, only people with an email address of one of them can register."
            ),
            section=_REGISTRATION,
        ),
        "registration_verified": FieldLabel(
            gettext_lazy("Email address first"),
            gettext_lazy("Whether an account is made before its address is known to be right."),
            section=_REGISTRATION,
            value_labels={
                False: gettext_lazy("Without a mail server an account is made at once, its address unverified"),
                True: gettext_lazy(
                    "An account is made by a link in a mail alone, so without a mail server nobody registers"
                ),
            },
        ),
        "account_deletion": FieldLabel(
            gettext_lazy("Deletion of accounts"),
            gettext_lazy("Whoever deletes their own account has 14 days to change their mind."),
            section=_ACCOUNTS,
            value_labels={
                False: gettext_lazy("Managers alone delete accounts"),
                True: gettext_lazy("People can delete their own accounts"),
            },
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
        return gettext_lazy("A second factor is asked at every sign-in")
    return ngettext_lazy("For {n} day, if the person wants it", "For {n} days, if the person wants it", number)


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
    "password_min_length": lambda number: gettext_lazy("At least {n} characters", n=number),
    "free_attempts": lambda number: ngettext_lazy("{n} attempt", "{n} attempts", number),
    "most_attempts": lambda number: ngettext_lazy("{n} attempt", "{n} attempts", number),
    "session_idle_age": _span,
    "session_max_age": _span,
}

"""Sign-in policies of the instance and of organizations, which can only be stricter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from identity.domain.attempts import FREE_ATTEMPTS, MAX_ATTEMPTS
from identity.domain.entity import entity, entity_fields, mutable
from identity.domain.messages import gettext_lazy
from identity.domain.names import domain_name_error

#: The maximum number of days to remember a browser.
MAX_REMEMBER_DAYS = 30
MAX_REGISTRATION_DOMAINS = 100

SIGN_IN, PASSWORDS, SESSIONS, CONSENT = (
    gettext_lazy("Sign-in"),
    gettext_lazy("Passwords"),
    gettext_lazy("Sessions"),
    gettext_lazy("Consent"),
)
ATTEMPTS, REGISTRATION, ACCOUNTS = gettext_lazy("Attempts"), gettext_lazy("Registration"), gettext_lazy("Accounts")
#: Bounds of the minimum password length.
MIN_PASSWORD_LENGTH, MAX_MIN_PASSWORD_LENGTH = 8, 64
_SHORTEST_SESSION, _LONGEST_IDLE, _LONGEST_SESSION = timedelta(minutes=5), timedelta(days=90), timedelta(days=365)


class SecondFactorRule(StrEnum):
    """Who needs a second factor; each value is stricter than the one before."""

    OFF = "off"
    OFFERED = "offered"
    REQUIRED_FOR_IAM = "required_for_iam"
    REQUIRED_FOR_MANAGERS = "required_for_managers"
    REQUIRED = "required"


#: Rules that apply at sign-in only and leave existing sessions alone.
SIGN_IN_ONLY_RULES = (SecondFactorRule.OFF, SecondFactorRule.OFFERED)


class ConsentDefault(StrEnum):
    """Consent rule of applications without their own; later values are stricter."""

    WHEN_FOREIGN = "when_foreign"
    ALWAYS = "always"


class RegistrationRule(StrEnum):
    """Who can register, where an organization allows it; later values are stricter."""

    ALLOWED = "allowed"
    BY_DOMAIN = "by_domain"
    BY_PROVIDER = "by_provider"
    OFF = "off"


class PolicySource(StrEnum):
    """Where the effective rule was set."""

    SETTINGS = "settings"
    INSTANCE = "instance"
    ORGANIZATION = "organization"


def _days_problem(days: int) -> str | None:
    return (
        None
        if 0 <= days <= MAX_REMEMBER_DAYS
        else gettext_lazy("Use a number of days from 0 to {most}.", most=MAX_REMEMBER_DAYS)
    )


def _from_to(least: int, most: int) -> Callable[[int], str | None]:
    def problem(number: int) -> str | None:
        return (
            None
            if least <= number <= most
            else gettext_lazy("Use a number from {least} to {most}.", least=least, most=most)
        )

    return problem


_free_problem, _most_problem = _from_to(1, FREE_ATTEMPTS), _from_to(FREE_ATTEMPTS, MAX_ATTEMPTS)


_length_problem, _strength_problem = _from_to(MIN_PASSWORD_LENGTH, MAX_MIN_PASSWORD_LENGTH), _from_to(0, 4)


def _idle_problem(age: timedelta) -> str | None:
    fits = _SHORTEST_SESSION <= age <= _LONGEST_IDLE
    return None if fits else gettext_lazy("Choose between 5 minutes and 90 days.")


def _session_problem(age: timedelta) -> str | None:
    fits = _SHORTEST_SESSION <= age <= _LONGEST_SESSION
    return None if fits else gettext_lazy("Choose between 5 minutes and 365 days.")


def _domains_problem(domains: tuple[str, ...]) -> str | None:
    if not domains:
        return gettext_lazy("Enter at least one domain.")
    return (
        None
        if len(domains) <= MAX_REGISTRATION_DOMAINS
        else gettext_lazy("Enter at most {most} domains.", most=MAX_REGISTRATION_DOMAINS)
    )


def _factors_problem(factors: tuple[str, ...]) -> str | None:
    return None if factors else gettext_lazy("Leave at least one way to sign in.")


@entity
class Policy:
    """The rules set at one level; None inherits from the level above.

    In an effective policy only ``factors`` and ``registration_domains`` can be None, meaning all.
    """

    second_factor: SecondFactorRule | None = mutable(
        default=None,
        section=SIGN_IN,
        label=gettext_lazy("Second factor"),
        hint=gettext_lazy("What people prove besides their password, or by a passkey alone."),
        value_labels={
            SecondFactorRule.OFF: gettext_lazy("Nobody is asked, and nobody can set one up"),
            SecondFactorRule.OFFERED: gettext_lazy("Whoever has set one up is asked for it"),
            SecondFactorRule.REQUIRED_FOR_IAM: gettext_lazy("Managers of the instance need one"),
            SecondFactorRule.REQUIRED_FOR_MANAGERS: gettext_lazy("All managers need one"),
            SecondFactorRule.REQUIRED: gettext_lazy("Everybody needs one"),
        },
    )
    factors: tuple[str, ...] | None = mutable(
        default=None,
        validator=_factors_problem,
        section=SIGN_IN,
        label=gettext_lazy("Ways to sign in"),
        hint=gettext_lazy("By which people can prove who they are."),
    )
    remember_browser: int | None = mutable(
        default=None,
        validator=_days_problem,
        section=SIGN_IN,
        label=gettext_lazy("Remember browsers for"),
        hint=gettext_lazy(
            "For so many days people can have a browser not ask for a second factor. 0: it is asked every time."
        ),
    )
    sign_in_by_email: bool | None = mutable(
        default=None,
        section=SIGN_IN,
        label=gettext_lazy("Sign in by email address"),
        hint=gettext_lazy("A login name that exists always comes first. An address counts once it is verified."),
        value_labels={
            False: gettext_lazy("People sign in by their login name alone"),
            True: gettext_lazy("People sign in by their login name or their email address"),
        },
    )
    password_min_length: int | None = mutable(
        default=None,
        validator=_length_problem,
        section=PASSWORDS,
        label=gettext_lazy("Fewest characters"),
        hint=gettext_lazy("How long a new password has to be. Passwords that there are stay good."),
    )
    password_strength: int | None = mutable(
        default=None,
        validator=_strength_problem,
        section=PASSWORDS,
        label=gettext_lazy("Strength"),
        hint=gettext_lazy(
            "How hard a new password is to guess, as estimated by common words, names, dates and patterns."
        ),
        value_labels={
            0: gettext_lazy("Whatever is not well known"),
            1: gettext_lazy("Not guessed by a thousand tries"),
            2: gettext_lazy("Not guessed by a million tries"),
            3: gettext_lazy("Not guessed by a hundred million tries"),
            4: gettext_lazy("Not guessed by ten thousand million tries"),
        },
    )
    password_change_after_reset: bool | None = mutable(
        default=None,
        section=PASSWORDS,
        label=gettext_lazy("After a reset"),
        hint=gettext_lazy("What becomes of a password that somebody else sets for a person, from now on."),
        value_labels={
            False: gettext_lazy("A password that a manager sets stays good until the person changes it"),
            True: gettext_lazy("A password that a manager sets has to be changed at the next sign-in"),
        },
    )
    session_idle_age: timedelta | None = mutable(
        default=None,
        validator=_idle_problem,
        section=SESSIONS,
        label=gettext_lazy("End unused sessions after"),
        hint=gettext_lazy("Whoever does nothing for so long signs in again. For example 30m, 12h or 7d."),
    )
    session_max_age: timedelta | None = mutable(
        default=None,
        validator=_session_problem,
        section=SESSIONS,
        label=gettext_lazy("End all sessions after"),
        hint=gettext_lazy("So long after a sign-in everybody signs in again. For example 12h or 7d."),
    )
    single_session: bool | None = mutable(
        default=None,
        section=SESSIONS,
        label=gettext_lazy("Browsers at a time"),
        hint=gettext_lazy("At how many browsers a person can be signed in."),
        value_labels={
            False: gettext_lazy("People can be signed in at several browsers"),
            True: gettext_lazy("Signing in at a browser signs the person out at all others"),
        },
    )
    free_attempts: int | None = mutable(
        default=None,
        validator=_free_problem,
        section=ATTEMPTS,
        label=gettext_lazy("Free attempts"),
        hint=gettext_lazy(
            "So many wrong passwords or codes in a row make nobody wait. Then the waits grow to 15 minutes."
        ),
    )
    most_attempts: int | None = mutable(
        default=None,
        validator=_most_problem,
        section=ATTEMPTS,
        label=gettext_lazy("Most attempts in a row"),
        hint=gettext_lazy("After so many the password counts only at browsers where the person signed in before."),
    )
    consent: ConsentDefault | None = mutable(
        default=None,
        section=CONSENT,
        label=gettext_lazy("Consent"),
        hint=gettext_lazy(
            "Before which applications get something about a person. An application can be exempt by itself."
        ),
        value_labels={
            ConsentDefault.WHEN_FOREIGN: gettext_lazy("People agree once to each application of another organization"),
            ConsentDefault.ALWAYS: gettext_lazy(
                "People agree once to each application, also of their own organization"
            ),
        },
    )
    registration: RegistrationRule | None = mutable(
        default=None,
        section=REGISTRATION,
        label=gettext_lazy("Who can register"),
        hint=gettext_lazy("Each organization says by itself whether people can register with it at all."),
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
    )
    registration_domains: tuple[str, ...] | None = mutable(
        default=None,
        item_validator=domain_name_error,
        validator=_domains_problem,
        section=REGISTRATION,
        label=gettext_lazy("Email domains"),
        hint=gettext_lazy(
            "If domains are named, one a line, only people with an email address of one of them can register."
        ),
    )
    registration_verified: bool | None = mutable(
        default=None,
        section=REGISTRATION,
        label=gettext_lazy("Email address first"),
        hint=gettext_lazy("Whether an account is made before its address is known to be right."),
        value_labels={
            False: gettext_lazy("Without a mail server an account is made at once, its address unverified"),
            True: gettext_lazy(
                "An account is made by a link in a mail alone, so without a mail server nobody registers"
            ),
        },
    )
    account_deletion: bool | None = mutable(
        default=None,
        section=ACCOUNTS,
        label=gettext_lazy("Deletion of accounts"),
        hint=gettext_lazy("Whoever deletes their own account has 14 days to change their mind."),
        value_labels={
            False: gettext_lazy("Managers alone delete accounts"),
            True: gettext_lazy("People can delete their own accounts"),
        },
    )

    @property
    def remember_browser_lifetime(self) -> timedelta:
        """How long a browser can be remembered; zero by default."""
        return timedelta(days=self.remember_browser or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRule:
    """The effective value of a rule at a level: ``own_value`` is set there, ``inherited_value`` would apply otherwise.

    ``source`` is the level that the value comes from; ``changed_at`` and ``changed_by`` (an id) say when and by whom
    it was set there, None if the settings or a program set it.
    """

    name: str
    value: Any
    own_value: Any
    inherited_value: Any
    source: PolicySource
    changed_at: datetime | None = None
    changed_by: str | None = None


def strictest_policy(above: Policy, below: Policy) -> Policy:
    """The effective policy where ``below`` overrides ``above``: the stricter value of each rule."""
    values = {
        field.name: _TIGHTER[field.name](getattr(above, field.name), getattr(below, field.name))
        for field in fields(Policy)
    }
    return Policy(**values)


def merge_policies(above: Policy, below: Policy) -> Policy:
    """The rules of ``below``, and those of ``above`` that it does not set."""
    return replace(above, **defined_rules(below))


def defined_rules(policy: Policy) -> Mapping[str, Any]:
    values = {field.name: getattr(policy, field.name) for field in fields(Policy)}
    return {name: value for name, value in values.items() if value is not None}


def looser_rules(above: Policy, below: Policy) -> tuple[str, ...]:
    """Names of the rules that are looser in ``below`` than in ``above``."""
    together = strictest_policy(above, below)
    return tuple(name for name, value in defined_rules(below).items() if getattr(together, name) != value)


def policy_from_json(stored: Mapping[str, Any]) -> Policy:
    """Parse the result of ``policy_to_json``; unknown rules are ignored. Raises ValueError."""
    known = entity_fields(Policy)
    return Policy(**{name: _value(known[name].type, value) for name, value in stored.items() if name in known})


def policy_to_json(policy: Policy) -> dict[str, Any]:
    """The rules that are set, as JSON values."""
    return {name: _plain(value) for name, value in defined_rules(policy).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _value(kind: Any, value: Any) -> Any:
    if kind is timedelta:
        return timedelta(seconds=value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    return tuple(value) if isinstance(value, list) else value


def _later_of(order: type[StrEnum]) -> Callable[[Any, Any], Any]:
    """Of two values, the later one in the enumeration."""
    values = list(order)
    return lambda above, below: above if below is None else max(above, below, key=values.index)


def _smaller(above: Any, below: Any) -> Any:
    return above if below is None else min(above, below)


def _larger(above: int, below: int | None) -> int:
    return above if below is None else max(above, below)


def _either(above: bool, below: bool | None) -> bool:
    return above or bool(below)


def _common(above: tuple[str, ...] | None, below: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Intersection; None stands for all values."""
    if above is None or below is None:
        return below if above is None else above
    return tuple(item for item in below if item in above)


def _both(above: bool | None, below: bool | None) -> bool:
    return bool(above) and below is not False


_TIGHTER: Mapping[str, Callable[[Any, Any], Any]] = {
    "second_factor": _later_of(SecondFactorRule),
    "factors": _common,
    "remember_browser": _smaller,
    "registration": _later_of(RegistrationRule),
    "registration_domains": _common,
    "registration_verified": _either,
    "account_deletion": _both,
    "sign_in_by_email": _both,
    "password_min_length": _larger,
    "password_strength": _larger,
    "password_change_after_reset": _either,
    "session_idle_age": _smaller,
    "session_max_age": _smaller,
    "single_session": _either,
    "free_attempts": _smaller,
    "most_attempts": _smaller,
    "consent": _later_of(ConsentDefault),
}

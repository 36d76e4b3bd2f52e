"""Policy: the rules of signing in, of the instance and of organizations, which can only make them tighter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from identity.domain.attempts import FREE_ATTEMPTS, MOST_ATTEMPTS
from identity.domain.entity import entity, members, setting
from identity.domain.names import domain_problem
from identity.domain.words import say

#: The longest that a browser can be remembered, in days.
MOST_DAYS = 30
MOST_DOMAINS = 100

SIGN_IN, PASSWORDS, SESSIONS, CONSENT = say("Sign-in"), say("Passwords"), say("Sessions"), say("Consent")
ATTEMPTS, REGISTRATION, ACCOUNTS = say("Attempts"), say("Registration"), say("Accounts")
#: Between these lies the fewest characters that a password can have to have.
SHORTEST_PASSWORD, LONGEST_MINIMUM = 8, 64
_SHORTEST_SESSION, _LONGEST_IDLE, _LONGEST_SESSION = timedelta(minutes=5), timedelta(days=90), timedelta(days=365)


class SecondFactor(StrEnum):
    """Who has to prove who they are by a second factor; each asks more than the one before."""

    OFF = "off"
    OFFERED = "offered"
    REQUIRED_FOR_IAM = "required_for_iam"
    REQUIRED_FOR_MANAGERS = "required_for_managers"
    REQUIRED = "required"


#: The rules under which a session goes on as it began: what they ask for is asked at the sign-in alone.
ASKED_ONCE = (SecondFactor.OFF, SecondFactor.OFFERED)


class ConsentDefault(StrEnum):
    """Which applications ask, of those that do not say it themselves; the later asks more."""

    WHEN_FOREIGN = "when_foreign"
    ALWAYS = "always"


class RegistrationRule(StrEnum):
    """Who can register where an organization lets people; the later allows less."""

    ALLOWED = "allowed"
    BY_DOMAIN = "by_domain"
    BY_PROVIDER = "by_provider"
    OFF = "off"


class Source(StrEnum):
    """Where a rule that holds was set."""

    SETTINGS = "settings"
    INSTANCE = "instance"
    ORGANIZATION = "organization"


def _days_problem(days: int) -> str | None:
    return None if 0 <= days <= MOST_DAYS else say("Use a number of days from 0 to {most}.", most=MOST_DAYS)


def _from_to(least: int, most: int) -> Callable[[int], str | None]:
    def problem(number: int) -> str | None:
        return None if least <= number <= most else say("Use a number from {least} to {most}.", least=least, most=most)

    return problem


_free_problem, _most_problem = _from_to(1, FREE_ATTEMPTS), _from_to(FREE_ATTEMPTS, MOST_ATTEMPTS)


_length_problem, _strength_problem = _from_to(SHORTEST_PASSWORD, LONGEST_MINIMUM), _from_to(0, 4)


def _idle_problem(age: timedelta) -> str | None:
    fits = _SHORTEST_SESSION <= age <= _LONGEST_IDLE
    return None if fits else say("Choose between 5 minutes and 90 days.")


def _session_problem(age: timedelta) -> str | None:
    fits = _SHORTEST_SESSION <= age <= _LONGEST_SESSION
    return None if fits else say("Choose between 5 minutes and 365 days.")


def _domains_problem(domains: tuple[str, ...]) -> str | None:
    if not domains:
        return say("Enter at least one domain.")
    return None if len(domains) <= MOST_DOMAINS else say("Enter at most {most} domains.", most=MOST_DOMAINS)


def _factors_problem(factors: tuple[str, ...]) -> str | None:
    return None if factors else say("Leave at least one way to sign in.")


@entity
class Policy:
    """The rules that one level sets itself; None leaves a rule to the level above.

    Of the rules that hold in the end ``factors`` and ``registration_domains`` alone can be None: all that there are.
    """

    second_factor: SecondFactor | None = setting(
        default=None,
        section=SIGN_IN,
        label=say("Second factor"),
        hint=say("What people prove besides their password, or by a passkey alone."),
        words={
            SecondFactor.OFF: say("Nobody is asked, and nobody can set one up"),
            SecondFactor.OFFERED: say("Whoever has set one up is asked for it"),
            SecondFactor.REQUIRED_FOR_IAM: say("Managers of the instance need one"),
            SecondFactor.REQUIRED_FOR_MANAGERS: say("All managers need one"),
            SecondFactor.REQUIRED: say("Everybody needs one"),
        },
    )
    factors: tuple[str, ...] | None = setting(
        default=None,
        rule=_factors_problem,
        section=SIGN_IN,
        label=say("Ways to sign in"),
        hint=say("By which people can prove who they are."),
    )
    remember_browser: int | None = setting(
        default=None,
        rule=_days_problem,
        section=SIGN_IN,
        label=say("Remember browsers for"),
        hint=say("For so many days people can have a browser not ask for a second factor. 0: it is asked every time."),
    )
    sign_in_by_email: bool | None = setting(
        default=None,
        section=SIGN_IN,
        label=say("Sign in by email address"),
        hint=say("A login name that exists always comes first. An address counts once it is verified."),
        words={
            False: say("People sign in by their login name alone"),
            True: say("People sign in by their login name or their email address"),
        },
    )
    password_min_length: int | None = setting(
        default=None,
        rule=_length_problem,
        section=PASSWORDS,
        label=say("Fewest characters"),
        hint=say("How long a new password has to be. Passwords that there are stay good."),
    )
    password_strength: int | None = setting(
        default=None,
        rule=_strength_problem,
        section=PASSWORDS,
        label=say("Strength"),
        hint=say("How hard a new password is to guess, as estimated by common words, names, dates and patterns."),
        words={
            0: say("Whatever is not well known"),
            1: say("Not guessed by a thousand tries"),
            2: say("Not guessed by a million tries"),
            3: say("Not guessed by a hundred million tries"),
            4: say("Not guessed by ten thousand million tries"),
        },
    )
    password_change_after_reset: bool | None = setting(
        default=None,
        section=PASSWORDS,
        label=say("After a reset"),
        hint=say("What becomes of a password that somebody else sets for a person, from now on."),
        words={
            False: say("A password that a manager sets stays good until the person changes it"),
            True: say("A password that a manager sets has to be changed at the next sign-in"),
        },
    )
    session_idle_age: timedelta | None = setting(
        default=None,
        rule=_idle_problem,
        section=SESSIONS,
        label=say("End unused sessions after"),
        hint=say("Whoever does nothing for so long signs in again. For example 30m, 12h or 7d."),
    )
    session_max_age: timedelta | None = setting(
        default=None,
        rule=_session_problem,
        section=SESSIONS,
        label=say("End all sessions after"),
        hint=say("So long after a sign-in everybody signs in again. For example 12h or 7d."),
    )
    single_session: bool | None = setting(
        default=None,
        section=SESSIONS,
        label=say("Browsers at a time"),
        hint=say("At how many browsers a person can be signed in."),
        words={
            False: say("People can be signed in at several browsers"),
            True: say("Signing in at a browser signs the person out at all others"),
        },
    )
    free_attempts: int | None = setting(
        default=None,
        rule=_free_problem,
        section=ATTEMPTS,
        label=say("Free attempts"),
        hint=say("So many wrong passwords or codes in a row make nobody wait. Then the waits grow to 15 minutes."),
    )
    most_attempts: int | None = setting(
        default=None,
        rule=_most_problem,
        section=ATTEMPTS,
        label=say("Most attempts in a row"),
        hint=say("After so many the password counts only at browsers where the person signed in before."),
    )
    consent: ConsentDefault | None = setting(
        default=None,
        section=CONSENT,
        label=say("Consent"),
        hint=say("Before which applications get something about a person. An application can be exempt by itself."),
        words={
            ConsentDefault.WHEN_FOREIGN: say("People agree once to each application of another organization"),
            ConsentDefault.ALWAYS: say("People agree once to each application, also of their own organization"),
        },
    )
    registration: RegistrationRule | None = setting(
        default=None,
        section=REGISTRATION,
        label=say("Who can register"),
        hint=say("Each organization says by itself whether people can register with it at all."),
        words={
            RegistrationRule.ALLOWED: say("Whoever wants to, where the organization lets people register"),
            RegistrationRule.BY_DOMAIN: say("Nobody but people with an email address of the domains that are named"),
            RegistrationRule.BY_PROVIDER: say(
                "Only people who come from an identity provider of the organization that creates accounts"
            ),
            RegistrationRule.OFF: say("Nobody, whatever the organization says"),
        },
    )
    registration_domains: tuple[str, ...] | None = setting(
        default=None,
        each=domain_problem,
        rule=_domains_problem,
        section=REGISTRATION,
        label=say("Email domains"),
        hint=say("If domains are named, one a line, only people with an email address of one of them can register."),
    )
    registration_verified: bool | None = setting(
        default=None,
        section=REGISTRATION,
        label=say("Email address first"),
        hint=say("Whether an account is made before its address is known to be right."),
        words={
            False: say("Without a mail server an account is made at once, its address unverified"),
            True: say("An account is made by a link in a mail alone, so without a mail server nobody registers"),
        },
    )
    account_deletion: bool | None = setting(
        default=None,
        section=ACCOUNTS,
        label=say("Deletion of accounts"),
        hint=say("Whoever deletes their own account has 14 days to change their mind."),
        words={
            False: say("Managers alone delete accounts"),
            True: say("People can delete their own accounts"),
        },
    )

    @property
    def remembered_for(self) -> timedelta:
        """How long a browser can be remembered; not at all where nothing says so."""
        return timedelta(days=self.remember_browser or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRule:
    """One rule as it holds at a level: ``own`` is what the level says itself, ``above`` what holds if it says nothing.

    ``source`` tells which level the value comes from, ``set_at`` and ``set_by`` when it was set there, and the id of
    whoever did; None where the settings of the service say it, or a program set it.
    """

    name: str
    value: Any
    own: Any
    above: Any
    source: Source
    set_at: datetime | None = None
    set_by: str | None = None


def tightest(above: Policy, below: Policy) -> Policy:
    """What holds where ``below`` overrides ``above``, which holds by itself: of each rule the tighter one."""
    held = {one.name: _TIGHTER[one.name](getattr(above, one.name), getattr(below, one.name)) for one in fields(Policy)}
    return Policy(**held)


def overridden(above: Policy, below: Policy) -> Policy:
    """The rules of ``below`` where it sets any, and those of ``above`` elsewhere."""
    return replace(above, **own_rules(below))


def own_rules(policy: Policy) -> Mapping[str, Any]:
    """The rules that are set, by name."""
    values = {one.name: getattr(policy, one.name) for one in fields(Policy)}
    return {name: value for name, value in values.items() if value is not None}


def looser(above: Policy, below: Policy) -> tuple[str, ...]:
    """The rules of ``below`` that allow more than ``above`` does, by name."""
    together = tightest(above, below)
    return tuple(name for name, value in own_rules(below).items() if getattr(together, name) != value)


def policy_of(stored: Mapping[str, Any]) -> Policy:
    """The policy that ``stored_policy`` told; what is not known any more is passed over. Raises ValueError."""
    known = members(Policy)
    return Policy(**{name: _value(known[name].type, value) for name, value in stored.items() if name in known})


def stored_policy(policy: Policy) -> dict[str, Any]:
    """The rules that are set, as JSON has them."""
    return {name: _plain(value) for name, value in own_rules(policy).items()}


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
    """Of two values the one that stands further down in the enumeration."""
    values = list(order)
    return lambda above, below: above if below is None else max(above, below, key=values.index)


def _smaller(above: Any, below: Any) -> Any:
    return above if below is None else min(above, below)


def _larger(above: int, below: int | None) -> int:
    return above if below is None else max(above, below)


def _either(above: bool, below: bool | None) -> bool:
    return above or bool(below)


def _common(above: tuple[str, ...] | None, below: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """None allows all, none of them nothing."""
    if above is None or below is None:
        return below if above is None else above
    return tuple(one for one in below if one in above)


def _both(above: bool | None, below: bool | None) -> bool:
    return bool(above) and below is not False


_TIGHTER: Mapping[str, Callable[[Any, Any], Any]] = {
    "second_factor": _later_of(SecondFactor),
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

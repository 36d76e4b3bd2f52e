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
    if 0 <= days <= MAX_REMEMBER_DAYS:
        return None
    return gettext_lazy("Use a number of days from 0 to {most}.", most=MAX_REMEMBER_DAYS)


def _from_to(least: int, most: int) -> Callable[[int], str | None]:
    def problem(number: int) -> str | None:
        if least <= number <= most:
            return None
        return gettext_lazy("Use a number from {least} to {most}.", least=least, most=most)

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
    if len(domains) <= MAX_REGISTRATION_DOMAINS:
        return None
    return gettext_lazy("Enter at most {most} domains.", most=MAX_REGISTRATION_DOMAINS)


def _factors_problem(factors: tuple[str, ...]) -> str | None:
    return None if factors else gettext_lazy("Leave at least one sign-in method.")


@entity
class Policy:
    """The rules set at one level; None inherits from the level above. In an effective policy only ``factors`` and
    ``registration_domains`` can be None, meaning all."""

    second_factor: SecondFactorRule | None = mutable(default=None)
    factors: tuple[str, ...] | None = mutable(default=None, validator=_factors_problem)
    remember_browser: int | None = mutable(default=None, validator=_days_problem)
    sign_in_by_email: bool | None = mutable(default=None)
    password_min_length: int | None = mutable(default=None, validator=_length_problem)
    password_strength: int | None = mutable(default=None, validator=_strength_problem)
    password_change_after_reset: bool | None = mutable(default=None)
    session_idle_age: timedelta | None = mutable(default=None, validator=_idle_problem)
    session_max_age: timedelta | None = mutable(default=None, validator=_session_problem)
    single_session: bool | None = mutable(default=None)
    free_attempts: int | None = mutable(default=None, validator=_free_problem)
    most_attempts: int | None = mutable(default=None, validator=_most_problem)
    consent: ConsentDefault | None = mutable(default=None)
    registration: RegistrationRule | None = mutable(default=None)
    registration_domains: tuple[str, ...] | None = mutable(
        default=None, item_validator=domain_name_error, validator=_domains_problem
    )
    registration_verified: bool | None = mutable(default=None)
    account_deletion: bool | None = mutable(default=None)
    passkey_upgrade: bool | None = mutable(default=None)

    @property
    def remember_browser_lifetime(self) -> timedelta:
        """How long a browser can be remembered; zero by default."""
        return timedelta(days=self.remember_browser or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRule:
    """The effective value of a rule at a level: ``own_value`` is set there, ``inherited_value`` would apply otherwise.
    ``source`` is the level that the value comes from; ``changed_at`` and ``changed_by`` (an id) say when and by whom it
    was set there, None if the settings or a program set it."""

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
    "passkey_upgrade": _either,
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

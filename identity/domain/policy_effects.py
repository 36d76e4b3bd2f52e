"""What the rules of a policy mean, as sentences."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from identity.domain.entity import members
from identity.domain.policies import Policy
from identity.domain.words import say, say_many

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def effect_of(name: str, value: Any) -> str:
    """What a rule with this value means, as a sentence; empty where it is a list of words."""
    words = members(Policy)[name].declared.words
    if words:
        return words[value]
    told = _EFFECTS.get(name)
    return "" if told is None else told(value)


def _days(number: int) -> str:
    if not number:
        return say("A second factor is asked at every sign-in")
    return say_many("For {n} day, if the person wants it", "For {n} days, if the person wants it", number)


def _span(span: timedelta) -> str:
    if not span % _DAY:
        return say_many("{n} day", "{n} days", span // _DAY)
    if not span % _HOUR:
        return say_many("{n} hour", "{n} hours", span // _HOUR)
    if not span % _MINUTE:
        return say_many("{n} minute", "{n} minutes", span // _MINUTE)
    return say_many("{n} second", "{n} seconds", int(span.total_seconds()))


_EFFECTS: Mapping[str, Callable[[Any], str]] = {
    "remember_browser": _days,
    "password_min_length": lambda number: say("At least {n} characters", n=number),
    "free_attempts": lambda number: say_many("{n} attempt", "{n} attempts", number),
    "most_attempts": lambda number: say_many("{n} attempt", "{n} attempts", number),
    "session_idle_age": _span,
    "session_max_age": _span,
}

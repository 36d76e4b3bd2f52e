"""Describes policy rules in sentences."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from identity.domain.entity import entity_fields
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.policies import Policy

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def describe_rule(name: str, value: Any) -> str:
    """What a rule with this value means; empty for lists of words."""
    labels = entity_fields(Policy)[name].options.value_labels
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

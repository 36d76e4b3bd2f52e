"""Fields for rules of policies: each is set, or left to the level above."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from identity.domain.entity import Member
from identity.domain.policies import SIGN_IN, Policy
from identity.domain.words import say
from identity.pages.forms import Form, Value
from identity.plugins.console.fields import YES, Choice, Field, Lines, Ticks, settings_of

_NO = "no"
_SPAN = re.compile(r"([0-9]{1,6}) ?([smhd])\Z")
_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}


def span_text(span: timedelta) -> str:
    """A span as it is typed: 7d, 12h, 30m, 90s."""
    unit = next(unit for unit, one in _UNITS.items() if not span % one)
    return f"{span // _UNITS[unit]}{unit}"


@dataclass(frozen=True, kw_only=True)
class RuleChoice(Choice):
    """One of the values of a rule, or what holds above."""

    kind: Any = str

    def is_told(self, form: Form) -> bool:
        return True

    def shown(self, value: Any) -> Value:
        if isinstance(value, bool):
            return YES if value else _NO
        return "" if value is None else str(value)

    def typed(self, form: Form) -> object:
        text = form.one(self.name)
        if self.kind is bool and text in (YES, _NO):
            return text == YES
        return text or None


@dataclass(frozen=True, kw_only=True)
class RuleTicks(Ticks):
    """Some of several; none leaves the rule to what holds above."""

    def shown(self, value: Any) -> Value:
        return tuple(value or ())

    def typed(self, form: Form) -> object:
        return form.several(self.name) or None


@dataclass(frozen=True, kw_only=True)
class RuleLines(Lines):
    """One thing a line; none leaves the rule to what holds above."""

    def shown(self, value: Any) -> Value:
        return super().shown(value or ())

    def typed(self, form: Form) -> object:
        return super().typed(form) or None


@dataclass(frozen=True, kw_only=True)
class RuleText(Field):
    """A number; empty leaves the rule to what holds above."""

    def typed(self, form: Form) -> object:
        return form.one(self.name).strip() or None


@dataclass(frozen=True, kw_only=True)
class RuleSpan(RuleText):
    """A span such as 30m, 12h or 7d."""

    def shown(self, value: timedelta | None) -> Value:
        return "" if value is None else span_text(value)

    def typed(self, form: Form) -> object:
        text = form.one(self.name).strip()
        match = _SPAN.match(text)
        # What is no span goes on as what no command takes for one.
        return int(match[1]) * _UNITS[match[2]] if match else (f"={text}" if text else None)


def values_of(member: Member) -> Sequence[Any]:
    """What a rule can be, where that can be told."""
    return [value for value in member.declared.words if value is not None]


def rule_fields() -> tuple[Field, ...]:
    """A field for each rule; those that are not about signing in are folded away by what they are about."""
    return tuple(_field(one) for one in settings_of(Policy))


def _field(rule: Member) -> Field:
    said = rule.declared
    told: dict[str, Any] = {"part": "" if said.section == SIGN_IN else said.section, "called": rule.name}
    if said.words:
        options = _options(rule)
        return RuleChoice(rule.name, said.label, said.hint, options=options, kind=rule.type, **told)
    if rule.name == "factors":
        return RuleTicks("factor", said.label, said.hint, options=lambda page: page.ways(), **told)
    if rule.type == tuple[str, ...]:
        return RuleLines(rule.name, said.label, said.hint, required=False, **told)
    number = {"variant": "date", "autocomplete": "off"}
    made = RuleSpan if rule.type is timedelta else RuleText
    return made(rule.name, said.label, said.hint, required=False, attributes=number, **told)


def _options(rule: Member) -> Any:
    def options(page: Any) -> Sequence[tuple[str, object]]:
        shown = RuleChoice("", "").shown
        allowed = [one for one in values_of(rule) if page.allows(rule.name, one)]
        inherited = page.words.t(say("As above: {rule}", rule=page.inherited(rule.name)))
        return [("", inherited), *[(str(shown(one)), page.said(rule.declared.words[one])) for one in allowed]]

    return options

"""Policies: the rules of signing in that the instance and organizations set."""

from functools import partial
from typing import Any

from identity.domain import policies
from identity.domain.permissions import INSTANCE as OF_INSTANCE
from identity.domain.policies import Source
from identity.http import targets
from identity.plugins.management.operation import Call, Operation
from identity.plugins.management.representation import Moment, Representation, showing
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE


@showing(policies.Policy)
class Rules(Representation):
    """The rules of signing in. A span is in seconds; null is a rule that is not set."""


class RuleSource(Representation):
    """Which level a rule that holds comes from, and when it was set there, by the user of this id."""

    rule: str
    source: Source
    set_at: Moment | None
    set_by: str | None


class Policy(Representation):
    """The rules that a level sets itself (`own`) and those that hold there (`effective`). What holds also depends on
    the level above."""

    moves = True

    own: Rules
    effective: Rules
    sources: tuple[RuleSource, ...]
    changed_at: Moment | None
    version: int


def _owner(call: Call) -> str:
    return INSTANCE if call.resource == OF_INSTANCE else str(call.value.id)


def _show(call: Call) -> Policy:
    owner, held = _owner(call), call.services.policies
    own = held.set_at(owner)
    return Policy(
        own=Rules.of(own.policy),
        effective=Rules.of(held.held_with(owner, own.policy)),
        sources=tuple(
            RuleSource(rule=one.name, source=one.source, set_at=one.set_at, set_by=one.set_by)
            for one in held.rules(owner)
        ),
        changed_at=own.changed_at,
        version=own.version,
    )


def _change(call: Call) -> Policy:
    call.services.policies.change(_owner(call), call.command, version=call.expected_version)
    return _show(call)


class PolicyEffect(Representation):
    """How many sessions a change would end, whether there may be more than were looked at, and whether the caller's own
    is among them."""

    sessions: int
    more: bool
    own: bool


def _effect(call: Call) -> PolicyEffect:
    owner = _owner(call)
    ended = call.services.sessions.ended_by(owner, call.services.policies.amended(owner, call.command))
    return PolicyEffect(sessions=ended.sessions, more=ended.more, own=ended.own)


_EFFECT: dict[str, Any] = {
    "method": "POST",
    "command": ChangePolicy,
    "handle": _effect,
    "answers": PolicyEffect,
    "changes_nothing": True,
    "description": "Changes nothing. Refused as the change itself would be.",
}

_OF_INSTANCE = partial(Operation, path="/instance/policy", target=targets.instance, answers=Policy)
_OF_ORGANIZATION = partial(
    Operation, path="/organizations/{organization}/policy", target=targets.organization, answers=Policy
)

OPERATIONS = (
    _OF_INSTANCE(
        name="show_instance_policy",
        method="GET",
        summary="Shows the rules of signing in that hold where no organization says more.",
        permission="instance.read",
        handle=_show,
    ),
    _OF_INSTANCE(
        name="change_instance_policy",
        method="PATCH",
        summary="Changes the rules of signing in that hold where no organization says more.",
        description="Null leaves a rule to the settings of the service.",
        permission="instance.write",
        command=ChangePolicy,
        handle=_change,
    ),
    _OF_INSTANCE(
        name="preview_instance_policy",
        path="/instance/policy/effect",
        summary="Tells how many sessions a change of the instance's rules would end.",
        permission="instance.write",
        **_EFFECT,
    ),
    _OF_ORGANIZATION(
        name="preview_organization_policy",
        path="/organizations/{organization}/policy/effect",
        summary="Tells how many sessions a change of an organization's rules would end.",
        permission="organization_policy.write",
        **_EFFECT,
    ),
    _OF_ORGANIZATION(
        name="show_organization_policy",
        method="GET",
        summary="Shows the rules of signing in of an organization.",
        permission="organization.read",
        handle=_show,
    ),
    _OF_ORGANIZATION(
        name="change_organization_policy",
        method="PATCH",
        summary="Changes the rules of signing in of an organization.",
        description="Null leaves a rule to the instance. A rule that allows more than the instance does is refused.",
        permission="organization_policy.write",
        command=ChangePolicy,
        handle=_change,
    ),
)

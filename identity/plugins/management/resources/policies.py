"""Policies: the rules of signing in that the instance and organizations set."""

from functools import partial
from typing import Any

from identity.domain import policies
from identity.domain.permissions import Resource
from identity.domain.policies import PolicySource
from identity.http import route_contexts
from identity.plugins.management.operation import Operation, OperationCall
from identity.plugins.management.representation import DateTime, Representation, representation_fields
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID


@representation_fields(policies.Policy)
class PolicyRulesRepresentation(Representation):
    """The rules of signing in. A span is in seconds; null is a rule that is not set."""


class RuleSourceRepresentation(Representation):
    """The level that an effective rule comes from, when it was set there, and the id of the user who set it."""

    rule: str
    source: PolicySource
    set_at: DateTime | None
    set_by: str | None


class PolicyRepresentation(Representation):
    """The level's own rules (`own`) and the effective ones (`effective`), which also depend on the level above."""

    has_volatile_members = True

    own: PolicyRulesRepresentation
    effective: PolicyRulesRepresentation
    sources: tuple[RuleSourceRepresentation, ...]
    changed_at: DateTime | None
    version: int


def _policy_owner_id(call: OperationCall) -> str:
    return INSTANCE_OWNER_ID if call.resource == Resource.INSTANCE else str(call.entity.id)


def _represent(call: OperationCall) -> PolicyRepresentation:
    owner, policy_service = _policy_owner_id(call), call.services.policies
    stored_policy = policy_service.get_stored_policy(owner)
    return PolicyRepresentation(
        own=PolicyRulesRepresentation.from_value(stored_policy.policy),
        effective=PolicyRulesRepresentation.from_value(policy_service.preview_policy(owner, stored_policy.policy)),
        sources=tuple(
            RuleSourceRepresentation(
                rule=effective_rule.name,
                source=effective_rule.source,
                set_at=effective_rule.changed_at,
                set_by=effective_rule.changed_by,
            )
            for effective_rule in policy_service.list_effective_rules(owner)
        ),
        changed_at=stored_policy.changed_at,
        version=stored_policy.version,
    )


def _change(call: OperationCall) -> PolicyRepresentation:
    call.services.policies.change(_policy_owner_id(call), call.command, version=call.expected_version)
    return _represent(call)


class PolicyImpactRepresentation(Representation):
    """How many sessions a change would end, whether there may be more than were counted, and whether the caller's
    own is among them.
    """

    sessions: int
    more: bool
    own: bool


def _preview_impact(call: OperationCall) -> PolicyImpactRepresentation:
    owner = _policy_owner_id(call)
    ended = call.services.sessions.count_ended_by_policy(
        owner, call.services.policies.amend_policy(owner, call.command)
    )
    return PolicyImpactRepresentation(sessions=ended.sessions, more=ended.has_more, own=ended.includes_own)


_IMPACT_OPTIONS: dict[str, Any] = {
    "method": "POST",
    "command": ChangePolicy,
    "handler": _preview_impact,
    "representation": PolicyImpactRepresentation,
    "is_read_only": True,
    "description": "Changes nothing. Refused as the change itself would be.",
}

_INSTANCE_POLICY = partial(
    Operation,
    path="/instance/policy",
    context_factory=route_contexts.instance_context,
    representation=PolicyRepresentation,
)
_ORGANIZATION_POLICY = partial(
    Operation,
    path="/organizations/{organization}/policy",
    context_factory=route_contexts.organization_context,
    representation=PolicyRepresentation,
)

OPERATIONS = (
    _INSTANCE_POLICY(
        name="show_instance_policy",
        method="GET",
        summary="Shows the rules of signing in that hold where no organization says more.",
        permission="instance.read",
        handler=_represent,
    ),
    _INSTANCE_POLICY(
        name="change_instance_policy",
        method="PATCH",
        summary="Changes the rules of signing in that hold where no organization says more.",
        description="Null leaves a rule to the settings of the service.",
        permission="instance.write",
        command=ChangePolicy,
        handler=_change,
    ),
    _INSTANCE_POLICY(
        name="preview_instance_policy",
        path="/instance/policy/effect",
        summary="Tells how many sessions a change of the instance's rules would end.",
        permission="instance.write",
        **_IMPACT_OPTIONS,
    ),
    _ORGANIZATION_POLICY(
        name="preview_organization_policy",
        path="/organizations/{organization}/policy/effect",
        summary="Tells how many sessions a change of an organization's rules would end.",
        permission="organization_policy.write",
        **_IMPACT_OPTIONS,
    ),
    _ORGANIZATION_POLICY(
        name="show_organization_policy",
        method="GET",
        summary="Shows the rules of signing in of an organization.",
        permission="organization.read",
        handler=_represent,
    ),
    _ORGANIZATION_POLICY(
        name="change_organization_policy",
        method="PATCH",
        summary="Changes the rules of signing in of an organization.",
        description="Null leaves a rule to the instance. A rule that allows more than the instance does is refused.",
        permission="organization_policy.write",
        command=ChangePolicy,
        handler=_change,
    ),
)

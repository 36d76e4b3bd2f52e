"""Policies: the sign-in rules that the instance and organizations set."""

from typing import Any

from identity.domain.permissions import Resource
from identity.domain.policies import Policy, PolicySource
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE, ORGANIZATION
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation, representation_fields
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID


@representation_fields(Policy)
class PolicyRulesRepresentation(Representation):
    """The sign-in rules. Durations are in seconds; null is a rule that is not set."""


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


class PolicyImpactRepresentation(Representation):
    """How many sessions a change would end, whether there may be more than were counted, and whether the caller's
    own is among them.
    """

    sessions: int
    more: bool
    own: bool


def _policy_owner_id(call: OperationCall[Any]) -> str:
    return INSTANCE_OWNER_ID if call.resource == Resource.INSTANCE else str(call.entity.id)


def _represent(call: OperationCall[Any]) -> PolicyRepresentation:
    owner, policies = _policy_owner_id(call), call.services.policies
    stored_policy = policies.get_stored_policy(owner)
    return PolicyRepresentation(
        own=PolicyRulesRepresentation.from_value(stored_policy.policy),
        effective=PolicyRulesRepresentation.from_value(policies.preview_policy(owner, stored_policy.policy)),
        sources=tuple(
            RuleSourceRepresentation(rule=rule.name, source=rule.source, set_at=rule.changed_at, set_by=rule.changed_by)
            for rule in policies.list_effective_rules(owner)
        ),
        changed_at=stored_policy.changed_at,
        version=stored_policy.version,
    )


def _change(call: OperationCall[Any], command: ChangePolicy) -> PolicyRepresentation:
    call.services.policies.change(_policy_owner_id(call), command, version=call.expected_version)
    return _represent(call)


def _preview_impact(call: OperationCall[Any], command: ChangePolicy) -> PolicyImpactRepresentation:
    owner = _policy_owner_id(call)
    ended = call.services.sessions.count_ended_by_policy(owner, call.services.policies.amend_policy(owner, command))
    return PolicyImpactRepresentation(sessions=ended.sessions, more=ended.has_more, own=ended.includes_own)


_INSTANCE_POLICY = ApiResource[Policy]("instance_policy", PolicyRepresentation, permission_subject="instance")
_ORGANIZATION_POLICY = ApiResource[Policy]("organization_policy", PolicyRepresentation)

OPERATIONS = (
    _INSTANCE_POLICY.get(
        INSTANCE / "instance/policy",
        "Shows the instance's sign-in rules, which apply unless an organization is stricter.",
        _represent,
    ),
    _INSTANCE_POLICY.change(
        INSTANCE / "instance/policy",
        "Changes the instance's sign-in rules, which apply unless an organization is stricter.",
        ChangePolicy,
        _change,
        description="Null leaves a rule to the service's settings.",
    ),
    _INSTANCE_POLICY.action(
        "preview_instance_policy",
        INSTANCE / "instance/policy/effect",
        "Shows how many sessions a change of the instance's rules would end.",
        ChangePolicy,
        _preview_impact,
        representation=PolicyImpactRepresentation,
        is_read_only=True,
        description="Changes nothing, and is refused whenever the change would be.",
    ),
    _ORGANIZATION_POLICY.action(
        "preview_organization_policy",
        ORGANIZATION / "policy/effect",
        "Shows how many sessions a change of an organization's rules would end.",
        ChangePolicy,
        _preview_impact,
        representation=PolicyImpactRepresentation,
        is_read_only=True,
        description="Changes nothing, and is refused whenever the change would be.",
    ),
    _ORGANIZATION_POLICY.get(
        ORGANIZATION / "policy",
        "Shows the sign-in rules of an organization.",
        _represent,
        permission="organization.read",
    ),
    _ORGANIZATION_POLICY.change(
        ORGANIZATION / "policy",
        "Changes the sign-in rules of an organization.",
        ChangePolicy,
        _change,
        description="Null leaves a rule to the instance. A rule more lenient than the instance's is refused.",
    ),
)

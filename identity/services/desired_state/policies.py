"""Policies in the desired state."""

from identity.domain.permissions import Resource
from identity.domain.policies import Policy
from identity.services.commands.policies import ChangePolicy
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, describe_differences
from identity.services.policies import INSTANCE_OWNER_ID

_POLICY = "policy"


def ensure_policy(build: Reconciler, path: str, described: ChangePolicy | None, owner: str, where: str) -> None:
    """Set the policy of the instance or an organization; undescribed rules stay, null unsets a rule."""
    if described is None:
        return
    at_instance = owner == INSTANCE_OWNER_ID
    permission, resource = (
        ("instance.write", Resource.INSTANCE)
        if at_instance
        else ("organization_policy.write", Resource.of_organization(owner))
    )
    build.services.access_control.require(build.principal, permission, resource)
    policies = build.services.policies
    before: Policy = policies.get_stored_policy(owner).policy
    with build.collect_problems(f"{path}.policy"):
        after = policies.change(owner, described).policy
        different = {name: getattr(after, name) for name in sorted(described.model_fields_set)}
        different = {name: value for name, value in different.items() if value != getattr(before, name)}
        if different:
            build.record_change(ChangeAction.CHANGE, _POLICY, where, describe_differences(before, different))

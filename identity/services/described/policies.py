"""Policies as described."""

from identity.domain.permissions import INSTANCE as OF_INSTANCE
from identity.domain.permissions import organization_resource
from identity.domain.policies import Policy
from identity.services.commands.policies import ChangePolicy
from identity.services.described.build import Action, Build, told
from identity.services.policies import INSTANCE

_POLICY = "policy"


def ensure_policy(build: Build, path: str, described: ChangePolicy | None, owner: str, where: str) -> None:
    """The rules that the instance or an organization sets; what is not described of them stays, null is set no more."""
    if described is None:
        return
    at_instance = owner == INSTANCE
    permission, resource = (
        ("instance.write", OF_INSTANCE) if at_instance else ("organization_policy.write", organization_resource(owner))
    )
    build.services.access.require(build.by, permission, resource)
    policies = build.services.policies
    before: Policy = policies.set_at(owner).policy
    with build.refusals_at(f"{path}.policy"):
        after = policies.change(owner, described).policy
        different = {name: getattr(after, name) for name in sorted(described.model_fields_set)}
        different = {name: value for name, value in different.items() if value != getattr(before, name)}
        if different:
            build.note(Action.CHANGE, _POLICY, where, told(before, different))

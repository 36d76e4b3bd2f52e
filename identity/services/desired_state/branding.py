"""Branding in the desired state."""

from identity.domain.organizations import Organization
from identity.services.branding import BrandingOwner
from identity.services.commands.branding import ChangeBranding
from identity.services.desired_state.reconciler import ChangeAction, Reconciler


def ensure_branding(
    build: Reconciler, path: str, name: str, owner: BrandingOwner, described: ChangeBranding | None
) -> None:
    """Set the branding of an organization or application; undescribed members stay."""
    if described is None:
        return
    branding = build.services.branding
    if isinstance(owner, Organization):
        build.require("organization.write", owner)
    with build.collect_problems(f"{path}.branding"):
        before = branding.own_branding(owner)
        after = branding.change(owner, described, principal=build.principal)
        if after != before:
            build.record_change(ChangeAction.CHANGE, "branding", name)

"""How things look, as described."""

from identity.domain.organizations import Organization
from identity.services.branding import Owner
from identity.services.commands.branding import ChangeBranding
from identity.services.described.build import Action, Build


def ensure_branding(build: Build, path: str, name: str, owner: Owner, described: ChangeBranding | None) -> None:
    """Have an organization or an application look as described; what is not said of it stays."""
    if described is None:
        return
    branding = build.services.branding
    if isinstance(owner, Organization):
        build.require("organization.write", owner)
    with build.refusals_at(f"{path}.branding"):
        before = branding.of(owner)
        after = branding.change(owner, described, by=build.by)
        if after != before:
            build.note(Action.CHANGE, "branding", name)

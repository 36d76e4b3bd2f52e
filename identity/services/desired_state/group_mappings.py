"""Group mappings in the desired state: parts of identity providers that refer to groups."""

from functools import partial

from identity.domain.errors import Invalid
from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.services.commands.desired_state import GroupMappingSpec, MappingSourceSpec
from identity.services.commands.groups import AddGroupMapping, ChangeGroupMapping
from identity.services.desired_state.reconciler import Reconciler
from identity.services.provider_mappings import MappingSource
from identity.storage.paging import iterate_rows


def ensure_group_mappings(
    build: Reconciler, path: str, organization: Organization, spec: MappingSourceSpec, source: MappingSource
) -> None:
    """The group mappings of one identity provider or directory: after the groups of its organization."""
    if spec.group_mappings is None:
        return
    mappings = build.services.group_mappings
    rows = partial(mappings.list_of_source, source)
    present = {(row.claim, row.value, row.group_id): row for row in rows()}

    def name_of(mapping: GroupMapping | GroupMappingSpec) -> str:
        return f"{organization.primary_domain} / {source.name} / {mapping.claim} = {mapping.value}"

    for number, described in enumerate(spec.group_mappings):
        mapping_path = f"{path}.group_mappings[{number}]"
        group = _resolve_group(build, mapping_path, described.group, organization)
        if group is None:
            continue
        command = AddGroupMapping(claim=described.claim, value=described.value, group_id=group.id)
        build.ensure(
            mapping_path,
            name_of(described),
            described,
            mappings,
            ChangeGroupMapping,
            find=partial(present.get, (described.claim, described.value, group.id)),
            create=partial(mappings.add, source, command, principal=build.principal),
        )
    build.prune_rows(
        f"{path}.group_mappings",
        mappings.kind_label,
        rows,
        key=lambda mapping: (mapping.id,),
        name=name_of,
        remove=lambda mapping: mappings.remove(mapping.id, principal=build.principal),
    )


def _resolve_group(build: Reconciler, path: str, reference: str, organization: Organization) -> Group | None:
    """The organization's group with this id or name; None, and a problem, if there is none."""
    found = build.storage.groups.find(build.resolve_id(reference))
    if found is not None and found.organization_id == organization.id:
        return found
    rows = iterate_rows(partial(build.storage.groups.page, organization.id))
    named = next((group for group in rows if name_key(group.name) == name_key(reference)), None)
    if named is None:
        with build.collect_problems(path):
            raise Invalid({"group": gettext_lazy("There is no group {name}.", name=reference)})
    return named

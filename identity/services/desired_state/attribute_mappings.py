"""Attribute mappings in the desired state: parts of identity providers that refer to attributes."""

from functools import partial

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.services.commands.attributes import AddAttributeMapping, ChangeAttributeMapping
from identity.services.commands.desired_state import AttributeMappingSpec, MappingSourceSpec
from identity.services.desired_state.reconciler import Reconciler
from identity.services.provider_mappings import MappingSource


def ensure_attribute_mappings(
    build: Reconciler, path: str, organization: Organization, spec: MappingSourceSpec, source: MappingSource
) -> None:
    """The attribute mappings of one identity provider or directory: after the attributes of its organization."""
    if spec.attribute_mappings is None:
        return
    mappings = build.services.attribute_mappings
    rows = partial(mappings.list_of_source, source)
    present = {row.attribute_id: row for row in rows()}
    definitions = build.services.attributes.list_definitions(organization.id)
    attribute_ids = {definition.key: definition.id for definition in definitions}

    def name_of(mapping: AttributeMapping | AttributeMappingSpec) -> str:
        return f"{organization.primary_domain} / {source.name} / {mapping.claim}"

    for number, described in enumerate(spec.attribute_mappings):
        mapping_path = f"{path}.attribute_mappings[{number}]"
        reference = build.resolve_id(described.attribute)
        attribute_id = reference if reference in attribute_ids.values() else attribute_ids.get(described.attribute)
        if attribute_id is None:
            with build.collect_problems(mapping_path):
                raise Invalid({"attribute": gettext_lazy("There is no attribute {name}.", name=described.attribute)})
            continue
        command = AddAttributeMapping(claim=described.claim, attribute_id=attribute_id)
        build.ensure(
            mapping_path,
            name_of(described),
            described,
            mappings,
            ChangeAttributeMapping,
            find=partial(present.get, attribute_id),
            create=partial(mappings.add, source, command, principal=build.principal),
        )
    build.prune_rows(
        f"{path}.attribute_mappings",
        mappings.kind_label,
        rows,
        key=lambda mapping: (mapping.id,),
        name=name_of,
        remove=lambda mapping: mappings.remove(mapping.id, principal=build.principal),
    )

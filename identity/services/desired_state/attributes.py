"""Attributes in the desired state."""

from functools import partial

from identity.domain.attributes import AttributeDefinition
from identity.domain.errors import NotFound
from identity.domain.organizations import Organization
from identity.services.commands.attributes import ChangeAttribute, CreateAttribute
from identity.services.commands.desired_state import AttributeSpec
from identity.services.desired_state.reconciler import Reconciler, command_from_spec


def ensure_attributes(
    build: Reconciler, path: str, organization: Organization, described: tuple[AttributeSpec, ...] | None
) -> None:
    """What an organization defines for its people."""
    if described is None:
        return
    build.require("attribute.write", organization)
    attributes = build.services.attributes
    for number, spec in enumerate(described):
        create = partial(attributes.create, organization.id, command_from_spec(spec, CreateAttribute))
        build.ensure(
            f"{path}.attributes[{number}]",
            _name(organization, spec),
            spec,
            attributes,
            ChangeAttribute,
            find=partial(_find, build, organization, spec),
            create=partial(create, principal=build.principal, id=build.new_entity_id(spec)),
        )
    build.prune_rows(
        f"{path}.attributes",
        attributes.kind_label,
        lambda: attributes.list_definitions(organization.id),
        key=lambda definition: (definition.id,),
        name=lambda definition: _name(organization, definition),
        remove=lambda definition: attributes.remove(definition.id, principal=build.principal),
    )


def _find(build: Reconciler, organization: Organization, spec: AttributeSpec) -> AttributeDefinition | None:
    """By id, else by key. Raises NotFound for an id."""
    definitions = build.services.attributes.list_definitions(organization.id)
    if spec.id is None:
        return next((item for item in definitions if item.key == spec.key), None)
    found = next((item for item in definitions if item.id == spec.id), None)
    if found is None:
        raise NotFound("attribute", spec.id)
    return found


def _name(organization: Organization, attribute: AttributeDefinition | AttributeSpec) -> str:
    return f"{organization.primary_domain} / {attribute.key}"

"""What pages of group mappings and attribute mappings share: the identity provider or directory that they belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from identity.domain.directories import OrganizationDirectory
from identity.domain.messages import gettext_lazy as _
from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import DIRECTORIES_SECTION, Breadcrumbs, ConsolePage
from identity.plugins.console.field_labels import FieldLabel
from identity.plugins.console.form_fields import LITERAL_INPUT_ATTRIBUTES, FormField
from identity.plugins.console.resource_types import DIRECTORY, UPSTREAM_PROVIDER
from identity.plugins.console.user_display import display_user
from identity.services.provider_mappings import MappingSource, ProviderMapping, ProviderMappingService


def editor_cells(
    page: ConsolePage, service: ProviderMappingService[Any], mappings: Sequence[ProviderMapping], inactive: str
) -> Mapping[str, object]:
    """For whom each mapping acts, by its id, with the badge ``inactive`` if it does not."""
    ids = {mapping.editor_id for mapping in mappings if mapping.editor_id is not None}
    editors = page.services.storage.users.find_subjects(ids)

    def cell(mapping: ProviderMapping) -> object:
        subject = editors.get(mapping.editor_id or "")
        name = page.translate(_("The operator") if mapping.editor_id is None else _("Deleted user"))
        label = name if subject is None else page.entity_link(display_user(page, subject))
        if service.refusal_reason(mapping) is None:
            return label
        return label + " " + page.render_badge(Badge(page.translator.gettext(inactive), "warning"))

    return {mapping.id: cell(mapping) for mapping in mappings}


def find_source(page: ConsolePage) -> MappingSource:
    """The identity provider or directory that the page is about."""
    entity = page.context.entity
    return entity if isinstance(entity, UpstreamProvider) else DIRECTORY.find_entity(page)


def source_path(page: ConsolePage, source: MappingSource) -> str:
    if isinstance(source, UpstreamProvider):
        return UPSTREAM_PROVIDER.path_of(source)
    return DIRECTORY.own_path(page, source)


def source_of(page: ConsolePage, mapping: ProviderMapping) -> MappingSource:
    """That of the mapping; the ini file may not set up the directory any more."""
    if mapping.provider_id is None:
        return OrganizationDirectory(mapping.directory or "", mapping.organization_id)
    provider: UpstreamProvider = page.services.upstream_providers.get(mapping.provider_id)
    return provider


def source_section(page: ConsolePage, mapping: ProviderMapping) -> str:
    return "upstream-providers" if mapping.directory is None else DIRECTORIES_SECTION


def source_breadcrumbs(page: ConsolePage, mapping: ProviderMapping) -> Breadcrumbs:
    source = source_of(page, mapping)
    if isinstance(source, UpstreamProvider):
        return UPSTREAM_PROVIDER.breadcrumbs(page, source)
    return DIRECTORY.breadcrumbs(page, source)


def can_save(page: ConsolePage, mapping: ProviderMapping) -> bool:
    """True if the caller gets buttons to change and remove the mapping."""
    if mapping.directory is None:
        return page.has_permission("upstream_provider.write")
    directory = OrganizationDirectory(mapping.directory, mapping.organization_id)
    return page.services.directories.can_control(directory, page.principal)


def text_field(labels: Mapping[str, FieldLabel], name: str) -> FormField:
    label = labels[name]
    return FormField(
        name,
        label.label,
        label.hint,
        required_message=label.required_message,
        attributes=LITERAL_INPUT_ATTRIBUTES,
    )


def entry_attribute_field(field: FormField) -> FormField:
    """The field of a claim for directories."""
    hint = _("An attribute that people cannot change themselves, such as {example}.", example="memberOf")
    return replace(field, label=_("Attribute of the entry"), hint=hint)

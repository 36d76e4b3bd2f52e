"""What mappings of identity providers and directories share: their rights, and events about what they may not do."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.directories import OrganizationDirectory
from identity.domain.errors import Denied, NotFound
from identity.domain.group_mappings import GroupMapping
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.audit import dump_fields
from identity.services.crud import EntityService
from identity.services.directories import DirectoryService
from identity.services.records import RecordService
from identity.services.upstream_providers import UpstreamProviderService

ProviderMapping = GroupMapping | AttributeMapping
#: Whose claims a mapping reads; those of a directory are the attributes of its entries.
MappingSource = UpstreamProvider | OrganizationDirectory
MappingT = TypeVar("MappingT", GroupMapping, AttributeMapping)


@dataclass(frozen=True, slots=True)
class Refusal(Generic[MappingT]):
    """Why a mapping did nothing for a person. ``cause`` differs if there is another event to record."""

    mapping: MappingT
    reason: str
    cause: str = ""


@dataclass(eq=False, repr=False)
class ProviderMappingService(EntityService[MappingT]):
    """Mappings act with the rights that their last editor has at that moment."""

    _access: AccessControl
    _providers: UpstreamProviderService
    _directories: DirectoryService
    _records: RecordService

    def list_of_provider(self, provider_id: str) -> tuple[MappingT, ...]:
        """The mappings of the identity provider, oldest first."""
        mappings: tuple[MappingT, ...] = self._store.list_of_provider(provider_id)
        return mappings

    def list_of_source(self, source: MappingSource) -> tuple[MappingT, ...]:
        """The mappings of the identity provider or directory, oldest first."""
        if isinstance(source, UpstreamProvider):
            return self.list_of_provider(source.id)
        mappings: tuple[MappingT, ...] = self._store.list_of_directory(source.organization_id, source.name)
        return mappings

    def get_source(self, mapping: MappingT) -> MappingSource:
        """Raises NotFound, as for a directory that the ini file does not set up any more."""
        if mapping.provider_id is not None:
            return self._providers.get(mapping.provider_id)
        return self._directories.get(mapping.organization_id, mapping.directory or "")

    def refusal_reason(self, mapping: MappingT) -> str | None:
        """Why the mapping does nothing at the moment; None if it acts."""
        editor = None if mapping.editor_id is None else self._storage.users.find_subject(mapping.editor_id)
        if editor is None or not editor.is_active:
            return "no active user has saved the mapping"
        try:
            self._require_saving(mapping, self._access.load_principal(editor))
        except (Denied, NotFound):
            return "its last editor may not save the mapping any more"
        return None

    def _require_saving(self, mapping: MappingT, principal: Principal) -> None:
        """Raise Denied unless the principal controls the source and may change what the mapping changes. Raises
        NotFound without the source."""
        source = self.get_source(mapping)
        if isinstance(source, UpstreamProvider):
            self._providers.require_control(source, principal)
        else:
            self._directories.require_control(source, principal)
        self._require_target(mapping, principal)

    def _require_target(self, mapping: MappingT, principal: Principal) -> None:
        """Raise Denied unless the principal may change what the mapping changes."""
        raise NotImplementedError

    def _authorize(self, mapping: MappingT, principal: Principal) -> None:
        """For removing: a manager who can remove the provider must be able to. Directories may be gone."""
        if mapping.provider_id is not None:
            self._providers.require_can_change(self._providers.get(mapping.provider_id), principal=principal)
        else:
            directory = OrganizationDirectory(mapping.directory or "", mapping.organization_id)
            self._directories.require_control(directory, principal)

    def _record_refusals(self, subject: Subject, source: MappingSource, refused: list[Refusal[MappingT]]) -> None:
        """Record each refusal once: again only after the mapping was saved or has acted, or with another cause."""
        kind, key = f"{self.kind}_refusals", f"{source.id} {subject.user.id}"
        causes = {item.mapping.id: f"{item.mapping.version} {item.cause}" for item in refused}
        known = self._records.find(kind, key)
        before = {} if known is None else known.value
        if causes == before:
            return
        if known is not None:
            self._records.replace(known, causes)
        elif self._records.add(kind, key, causes, user_id=subject.user.id) is not None:
            # A concurrent sign-in records them.
            return
        for item in refused:
            if before.get(item.mapping.id) != causes[item.mapping.id]:
                self._audit.record(
                    f"{self.kind}.refused",
                    kind=self.kind,
                    id=item.mapping.id,
                    organization_id=item.mapping.organization_id,
                    detail={**dump_fields(item.mapping), "user_id": subject.user.id},
                    refused=item.reason,
                )


def source_fields(source: MappingSource) -> dict[str, str]:
    """The fields of a mapping that name its source."""
    name = {"provider_id": source.id} if isinstance(source, UpstreamProvider) else {"directory": source.name}
    return {**name, "organization_id": source.organization_id}

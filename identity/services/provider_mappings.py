"""What mappings of identity providers share: the rights with which they act, and events about what they may not do."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.errors import Denied, NotFound
from identity.domain.group_mappings import GroupMapping
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.audit import dump_fields
from identity.services.crud import EntityService
from identity.services.records import RecordService
from identity.services.upstream_providers import UpstreamProviderService

ProviderMapping = GroupMapping | AttributeMapping
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
    _records: RecordService

    def list_of_provider(self, provider_id: str) -> tuple[MappingT, ...]:
        """The mappings of the identity provider, oldest first."""
        mappings: tuple[MappingT, ...] = self._store.list_of_provider(provider_id)
        return mappings

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
        """Raise Denied unless the principal may change the provider and what the mapping changes."""
        self._providers.require_control(self._providers.get(mapping.provider_id), principal)
        self._require_target(mapping, principal)

    def _require_target(self, mapping: MappingT, principal: Principal) -> None:
        """Raise Denied unless the principal may change what the mapping changes."""
        raise NotImplementedError

    def _authorize(self, mapping: MappingT, principal: Principal) -> None:
        """For removing: a manager who can remove the provider must be able to."""
        self._providers.require_can_change(self._providers.get(mapping.provider_id), principal=principal)

    def _record_refusals(self, subject: Subject, provider: UpstreamProvider, refused: list[Refusal[MappingT]]) -> None:
        """Record each refusal once: again only after the mapping was saved or has acted, or with another cause."""
        kind, key = f"{self.kind}_refusals", f"{provider.id} {subject.user.id}"
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

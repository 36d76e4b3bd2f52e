"""Create, change, deactivate, reactivate and remove, for every kind of entity."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from identity.crypto.secrets import new_id
from identity.domain.audit import USER_OWNED_KINDS
from identity.domain.entity import Mutability, entity_fields
from identity.services.access_control import Principal
from identity.services.audit import diff_fields, dump_fields
from identity.services.base import Service, refuse_stale, translate_storage_errors
from identity.services.commands import Command

EntityT = TypeVar("EntityT")


class EntityService(Service, Generic[EntityT]):
    """Manages one kind of stored entity under the rules of its subclass. ``kind`` is its name in events, ``store`` its
    store, ``duplicate_messages`` the messages for values that must be unique."""

    kind: ClassVar[str]
    store: ClassVar[str]
    duplicate_messages: ClassVar[Mapping[str, str]] = {}

    def get(self, id: str) -> EntityT:
        """Raises NotFound."""
        found: EntityT | None = self._store.find(id)
        return self._require_found(found, self.kind_label, id)

    def remove(self, id: str, *, principal: Principal) -> None:
        """Delete the entity with its parts. Raises NotFound; Denied and Conflict by its rules."""
        self._remove(self._get_authorized(id, principal))

    def _remove(self, entity: Any) -> None:
        """Delete the entity by its rules, without asking who may."""
        self._refuse_deactivation(entity)
        self._refuse_removal(entity)
        organization_id = self._organization_id(entity)
        self._before_removal(entity)
        with translate_storage_errors(self.kind_label, entity.id):
            self._store.delete(entity.id)
        self._record_event(f"{self.kind}.removed", entity, organization_id, dump_fields(entity))
        self._after_removal(entity)

    # --- rules -----------------------------------------------------------------------------------------------------

    def _authorize(self, entity: EntityT, principal: Principal) -> None:
        """Raise Denied if the caller may not change the entity, whatever permission the route requires."""

    def _refuse_deactivation(self, entity: EntityT) -> None:
        """Raise Conflict if the entity must stay active."""

    def _refuse_removal(self, entity: EntityT) -> None:
        """Raise Conflict if the entity must not be removed in any state."""

    def _before_removal(self, entity: EntityT) -> None:
        """Read what must outlive the entity."""

    def _after_removal(self, entity: EntityT) -> None:
        """Delete what belongs to the entity."""

    def _organization_id(self, entity: Any) -> str | None:
        """The organization whose audit trail records the event."""
        organization_id: str | None = entity.organization_id
        return organization_id

    # --- for subclasses --------------------------------------------------------------------------------------------

    @property
    def _store(self) -> Any:
        return getattr(self._storage, self.store)

    @property
    def kind_label(self) -> str:
        return self.kind.replace("_", " ")

    def get_changeable(self, id: str, principal: Principal) -> EntityT:
        """The entity, if the caller may change it. Raises NotFound, Denied."""
        return self._get_authorized(id, principal)

    def organization_id(self, entity: EntityT) -> str | None:
        """The organization that the entity belongs to."""
        return self._organization_id(entity)

    def _get_authorized(self, id: str, principal: Principal) -> EntityT:
        """The entity, if the caller may change it. Raises NotFound, Denied."""
        entity = self.get(id)
        self._authorize(entity, principal)
        return entity

    def _new_entity(self, kind: type[EntityT], command: Command | None = None, **values: Any) -> EntityT:
        """A new entity, created now, with these values and those of the command."""
        declared = entity_fields(kind)
        from_command = {name: value for name, value in command or () if name in declared}
        stamps = {name: self._now for name in ("created_at", "changed_at") if name in declared}
        values["id"] = values.get("id") or new_id()
        return kind(**{**stamps, **from_command, **values})

    def _next_version(
        self, before: EntityT, command: Command | None = None, *, expected_version: int | None = None, **values: Any
    ) -> EntityT:
        """The next version of the entity, with these values and those of the command. Raises Conflict. None in the
        command changes nothing, unless it was sent and the field is nullable."""
        entity: Any = before
        refuse_stale(entity.version, expected_version)
        declared, sent = entity_fields(type(entity)), set() if command is None else command.model_fields_set
        from_command = {
            name: value
            for name, value in command or ()
            if name in declared and (value is not None or (declared[name].nullable and name in sent))
        }
        after: EntityT = replace(entity, **{**from_command, **values}, version=entity.version + 1, changed_at=self._now)
        return after

    def _add(
        self,
        event: str,
        entity: Any,
        organization_id: str | None,
        *,
        parent: tuple[str, str],
        detail: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Store a new entity and record the event, with ``detail`` besides the fields. ``parent`` is kind and id of its
        parent. Raises NotFound, Invalid."""
        with translate_storage_errors(*parent, self.duplicate_messages):
            self._store.add(entity)
        self._record_event(event, entity, organization_id, dump_fields(entity) | dict(detail))

    def _update(
        self,
        event: str,
        before: EntityT,
        after: EntityT,
        *,
        organization_id: str | None = None,
        detail: Mapping[str, object] = MappingProxyType({}),
    ) -> EntityT:
        """Store the changed entity and record the event, with ``detail`` of what changes besides the fields. If nothing
        has changed, do neither and return ``before``. ``organization_id`` replaces the one that usually gets the event.
        Raises NotFound, Conflict, Invalid."""
        entity: Any = before
        # Not the events' diff: it does not show a secret that replaces another within a second.
        if _is_same(before, after) and not detail:
            return before
        detail = diff_fields(before, after) | dict(detail)
        organization_id = organization_id or self._organization_id(before)
        with translate_storage_errors(self.kind_label, entity.id, self.duplicate_messages):
            self._store.update(after)
        self._record_event(event, after, organization_id, detail)
        return after

    def _record_event(self, event: str, entity: Any, organization_id: str | None, detail: Mapping[str, object]) -> None:
        self._audit.record(
            event,
            kind=self.kind,
            id=entity.id,
            organization_id=organization_id,
            detail=detail,
            user_id=self._user_id(entity),
            group_id=getattr(entity, "group_id", None),
        )

    def _user_id(self, entity: Any) -> str | None:
        """The id of the user who owns the entity, if its kind has one."""
        user_id: str | None = getattr(entity, "user_id", None) if self.kind in USER_OWNED_KINDS else None
        return user_id


def _is_same(before: Any, after: Any) -> bool:
    """True if they differ at most in fields that every new version sets."""
    declared = entity_fields(type(after))
    return all(
        getattr(before, name) == getattr(after, name)
        for name, field in declared.items()
        if field.options.mutability is not Mutability.VERSIONED
    )


class DeactivatableEntityService(EntityService[EntityT]):
    """The same for entities that can be deactivated."""

    def deactivate(self, id: str, *, principal: Principal) -> EntityT:
        """Suspend the entity until it is reactivated. Raises NotFound; Denied and Conflict by its rules."""
        before = self._get_authorized(id, principal)
        self._refuse_deactivation(before)
        return self._update(f"{self.kind}.deactivated", before, self._next_version(before, active=False))

    def reactivate(self, id: str, *, principal: Principal) -> EntityT:
        """Undo deactivate. Raises NotFound, Denied."""
        before = self._get_authorized(id, principal)
        return self._update(f"{self.kind}.reactivated", before, self._next_version(before, active=True))

"""Lifecycle: what can be done with every kind of thing that is made, changed, deactivated, reactivated and removed."""

from collections.abc import Mapping
from dataclasses import replace
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
    """The use cases of one kind of thing that is kept, under the rules that it adds.

    ``kind`` is how events call it, ``store`` where it is kept, ``duplicate_messages`` what is said of a value that is
    another's.
    """

    kind: ClassVar[str]
    store: ClassVar[str]
    duplicate_messages: ClassVar[Mapping[str, str]] = {}

    def get(self, id: str) -> EntityT:  # noqa: A002
        """The thing. Raises NotFound."""
        found: EntityT | None = self._store.find(id)
        return self._require_found(found, self._kind_label, id)

    def remove(self, id: str, *, principal: Principal) -> None:  # noqa: A002
        """Delete the thing with all that is its own. Raises NotFound; Denied and Conflict by its rules."""
        thing = self._get_authorized(id, principal)
        self._refuse_deactivation(thing)
        self._refuse_removal(thing)
        organization_id = self._organization_id(thing)
        self._before_removal(thing)
        with translate_storage_errors(self._kind_label, id):
            self._store.delete(id)
        self._record_event(f"{self.kind}.removed", thing, organization_id, dump_fields(thing))
        self._after_removal(thing)

    # --- rules -----------------------------------------------------------------------------------------------------

    def _authorize(self, thing: EntityT, principal: Principal) -> None:
        """Raise Denied if the caller may not change the thing, whatever the permission that addresses ask for."""

    def _refuse_deactivation(self, thing: EntityT) -> None:
        """Raise Conflict if the thing has to stay as it is."""

    def _refuse_removal(self, thing: EntityT) -> None:
        """Raise Conflict if the thing has to be there, whatever its state."""

    def _before_removal(self, thing: EntityT) -> None:
        """Note what has to stay when the thing is gone."""

    def _after_removal(self, thing: EntityT) -> None:
        """Forget what goes with the thing."""

    def _organization_id(self, thing: Any) -> str | None:
        """The organization whose audit trail tells of it."""
        organization_id: str | None = thing.organization_id
        return organization_id

    # --- for use cases ---------------------------------------------------------------------------------------------

    @property
    def _store(self) -> Any:
        return getattr(self._storage, self.store)

    @property
    def _kind_label(self) -> str:
        return self.kind.replace("_", " ")

    def _get_authorized(self, id: str, principal: Principal) -> EntityT:  # noqa: A002
        """The thing, if the caller may change it. Raises NotFound, Denied."""
        thing = self.get(id)
        self._authorize(thing, principal)
        return thing

    def _new_entity(self, kind: type[EntityT], command: Command | None = None, **given: Any) -> EntityT:
        """A new thing of this moment: what was given and, besides, what the command says."""
        declared = entity_fields(kind)
        said = {name: value for name, value in command or () if name in declared}
        stamps = {name: self._now for name in ("created_at", "changed_at") if name in declared}
        given["id"] = given.get("id") or new_id()
        return kind(**{**stamps, **said, **given})

    def _next_version(
        self, before: EntityT, command: Command | None = None, *, expected_version: int | None = None, **given: Any
    ) -> EntityT:
        """The thing with what was given and, besides, what the command says, as its next version. Raises Conflict.

        None says nothing, unless it was sent and is one of the field's values.
        """
        thing: Any = before
        refuse_stale(thing.version, expected_version)
        declared, sent = entity_fields(type(thing)), set() if command is None else command.model_fields_set
        said = {
            name: value
            for name, value in command or ()
            if name in declared and (value is not None or (declared[name].nullable and name in sent))
        }
        after: EntityT = replace(thing, **{**said, **given}, version=thing.version + 1, changed_at=self._now)
        return after

    def _add(self, event: str, thing: Any, organization_id: str | None, *, parent: tuple[str, str]) -> None:
        """Store a new thing, with its event. ``parent`` names what it belongs to: kind and id. Raises NotFound,
        Invalid.
        """
        with translate_storage_errors(*parent, self.duplicate_messages):
            self._store.add(thing)
        self._record_event(event, thing, organization_id, dump_fields(thing))

    def _update(self, event: str, before: EntityT, after: EntityT, *, organization_id: str | None = None) -> EntityT:
        """What is stored from now on, with its event. What changes nothing is neither: ``before`` stays.

        Without an ``organization_id`` it is told to the usual one. Raises NotFound, Conflict, Invalid.
        """
        thing: Any = before
        # Not what events tell: a secret that takes the place of another within a second shows in none of it.
        if _is_same(before, after):
            return before
        detail = diff_fields(before, after)
        organization_id = organization_id or self._organization_id(before)
        with translate_storage_errors(self._kind_label, thing.id, self.duplicate_messages):
            self._store.update(after)
        self._record_event(event, after, organization_id, detail)
        return after

    def _record_event(self, event: str, thing: Any, organization_id: str | None, detail: Mapping[str, object]) -> None:
        """Record what happened to the thing, for this organization."""
        self._audit.record(
            event,
            kind=self.kind,
            id=thing.id,
            organization_id=organization_id,
            detail=detail,
            user_id=self._user_id(thing),
        )

    def _user_id(self, thing: Any) -> str | None:
        """The user whose the thing is, if it is one's."""
        user_id: str | None = getattr(thing, "user_id", None) if self.kind in USER_OWNED_KINDS else None
        return user_id


def _is_same(before: Any, after: Any) -> bool:
    """True if they differ in nothing but what each version sets."""
    declared = entity_fields(type(after))
    return all(
        getattr(before, name) == getattr(after, name)
        for name, field in declared.items()
        if field.options.mutability is not Mutability.VERSIONED
    )


class DeactivatableEntityService(EntityService[EntityT]):
    """The same for things that can be deactivated."""

    def deactivate(self, id: str, *, principal: Principal) -> EntityT:  # noqa: A002
        """The thing, without effect until it is reactivated. Raises NotFound; Denied and Conflict by its rules."""
        before = self._get_authorized(id, principal)
        self._refuse_deactivation(before)
        return self._update(f"{self.kind}.deactivated", before, self._next_version(before, active=False))

    def reactivate(self, id: str, *, principal: Principal) -> EntityT:  # noqa: A002
        """Undo deactivate. Raises NotFound, Denied."""
        before = self._get_authorized(id, principal)
        return self._update(f"{self.kind}.reactivated", before, self._next_version(before, active=True))

"""Audit events about project grants, for both organizations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from identity.domain.audit import OTHER_ORGANIZATION, Actor
from identity.domain.projects import ProjectGrant
from identity.services.access_control import AccessControl
from identity.services.crud import EntityService

EntityT = TypeVar("EntityT")


@dataclass(eq=False, repr=False)
class GrantAuditedService(EntityService[EntityT]):
    """Service of entities that belong to a project grant, or may. Each side's audit trail gets its own event. The event
    for the other side is written without personal data, so that no page, API, export or filter can reveal it later."""

    #: Detail members with personal data of the side that owns the entity.
    personal_fields: ClassVar[frozenset[str]] = frozenset()
    #: False if only its own side may know the entity.
    is_visible_to_both: ClassVar[bool] = True

    _access: AccessControl

    def _project_grant(self, entity: Any) -> ProjectGrant | None:
        """The project grant that the entity is or belongs to; None if there is none."""
        raise NotImplementedError

    def _record_event(self, event: str, entity: Any, organization_id: str | None, detail: Mapping[str, object]) -> None:
        grant = self._project_grant(entity)
        project = None if grant is None else self._storage.projects.find(grant.project_id)
        if grant is None or project is None or organization_id is None:
            super()._record_event(event, entity, organization_id, detail)
            return
        owner, holder = project.organization_id, grant.organization_id
        other = owner if organization_id == holder else holder
        user_id = self._user_id(entity)
        # Pages show the last event of a kind: that of the entity's own side.
        self._audit.record(
            event,
            kind=self.kind,
            id=entity.id if self.is_visible_to_both else None,
            organization_id=other,
            detail={
                **{name: value for name, value in detail.items() if name not in self.personal_fields},
                OTHER_ORGANIZATION: organization_id,
            },
            actor=self._actor_for(other, organization_id),
            user_id=None if "user_id" in self.personal_fields else user_id,
        )
        self._audit.record(
            event,
            kind=self.kind,
            id=entity.id,
            organization_id=organization_id,
            detail={**detail, OTHER_ORGANIZATION: other},
            actor=self._actor_for(organization_id, other),
            user_id=user_id,
            group_id=getattr(entity, "group_id", None),
        )

    def _actor_for(self, organization_id: str, other: str) -> Actor:
        """The actor as far as the organization may know: people of the other organization are anonymous."""
        actor = self._audit.actor
        subject = None if actor.id is None else self._storage.users.find_subject(actor.id)
        if subject is None or subject.organization.id != other:
            return actor
        # An actor with a role in the organization is known there.
        known = self._access.can_see_organization(self._access.load_principal(subject), organization_id)
        return actor if known else Actor(kind=actor.kind)

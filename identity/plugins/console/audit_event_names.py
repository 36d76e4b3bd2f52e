"""Names of actors and objects of audit events, loaded in bulk for a page."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from identity.domain.applications import path_of_client_id
from identity.domain.audit import OTHER_ORGANIZATION, ActorKind, AuditEvent
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import Subject
from identity.pages.event_labels import OBJECT_KIND_LABELS
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.user_display import display_user, user_path
from identity.services.overview import RefusalSummary
from identity.storage.backend import Storage

_ACTOR_KIND_LABELS = {
    ActorKind.OPERATOR: _("The operator"),
    ActorKind.SYSTEM: _("The service itself"),
    ActorKind.ANONYMOUS: _("Unknown user"),
}
_USER_KINDS = frozenset({"user", "service_user"})
#: Named after their user: their own id means nothing to a reader.
_USER_OWNED_KINDS = frozenset(
    {
        *("manager", "user_grant", "group_member"),
        *("service_user_key", "service_user_secret", "personal_access_token", "legal_hold"),
        "federated_credential",
    }
)
_IDENTIFIED_ACTOR_KINDS = frozenset({ActorKind.USER, ActorKind.CLIENT})


#: Refusal summaries have no detail.
NamedEvent = AuditEvent | RefusalSummary


class AuditEventNames:
    """Names for a set of events. A deleted object keeps the name that its event recorded, else its id."""

    def __init__(self, page: ConsolePage, events: Iterable[NamedEvent]) -> None:
        self._page = page
        events = tuple(events)
        actors = [event.actor for event in events]
        ids_by_kind: dict[str, set[str]] = {}
        for event in events:
            if event.object_id is not None:
                ids_by_kind.setdefault(event.object_kind, set()).add(event.object_id)
        acting = {actor.id for actor in actors if actor.id is not None and actor.kind in _IDENTIFIED_ACTOR_KINDS}
        acting |= {actor.client_id for actor in actors if actor.client_id is not None}
        storage = page.services.storage
        owners = {(event.object_kind, event.object_id): _owner_user_id(event, storage) for event in events}
        users = acting.union(filter(None, owners.values()), *(ids_by_kind.get(kind, ()) for kind in _USER_KINDS))
        self._users: dict[str, Subject] = dict(storage.users.find_subjects(users))
        clients = ids_by_kind.get("application", set()) | (acting - self._users.keys())
        applications = storage.applications.find_many(clients)
        grants = storage.project_grants.find_many(ids_by_kind.get("project_grant", ()))
        of_projects = {application.project_id for application in applications.values()} | {
            grant.project_id for grant in grants.values()
        }
        projects = storage.projects.find_many(ids_by_kind.get("project", set()) | of_projects)
        groups = storage.groups.find_many(ids_by_kind.get("group", ()))
        other_ids = {_other_organization_id(event) for event in events} - {""}
        organizations = storage.organizations.find_many(ids_by_kind.get("organization", set()) | other_ids)
        # The organizations whose pages can show it.
        homes = {key: project.organization_id for key, project in projects.items()}
        self._named: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {
            **{
                ("application", key): (application.name, (homes[application.project_id],))
                for key, application in applications.items()
                if application.project_id in homes
            },
            **{("group", key): (group.name, (group.organization_id,)) for key, group in groups.items()},
            **{("project", key): (project.name, (homes[key],)) for key, project in projects.items()},
            **{
                ("project_grant", key): (
                    projects[grant.project_id].name,
                    (homes[grant.project_id], grant.organization_id),
                )
                for key, grant in grants.items()
                if grant.project_id in homes
            },
            **{("organization", key): (organization.name, (key,)) for key, organization in organizations.items()},
        }
        self._owners = {key: self._users[owner] for key, owner in owners.items() if owner in self._users}
        self._called = {
            (event.object_kind, event.object_id): called for event in events if (called := _recorded_name(event))
        }

    def actor_link(self, event: NamedEvent) -> EntityLink:
        """The actor, linked if visible to the caller. Actors of the other side of a project grant are shown by
        organization only.
        """
        translator, actor = self._page.translator, event.actor
        other = self.other_organization_name(event)
        if actor.kind is ActorKind.USER and actor.id is None and other:
            return EntityLink(translator.gettext("A user of {organization}", organization=other), "")
        if actor.id is None or actor.kind not in _IDENTIFIED_ACTOR_KINDS:
            return EntityLink(translator.gettext(_ACTOR_KIND_LABELS.get(actor.kind, _("Unknown"))), "")
        return self.actor_name(actor.id)

    def other_organization_name(self, event: NamedEvent) -> str:
        """The organization on the other side of a project grant: its name, else its id; empty if there is none."""
        identifier = _other_organization_id(event)
        return self._named.get(("organization", identifier), (identifier, ()))[0]

    def actor_name(self, identifier: str) -> EntityLink:
        """The name of a user or client of any organization."""
        subject = self._users.get(identifier)
        if subject is not None:
            is_visible = self._page.services.access_control.can_see_organization(
                self._page.principal, subject.organization.id
            )
            return EntityLink(subject.user.display_name, user_path(self._page, subject) if is_visible else "")
        name = self._named.get(("application", identifier), (identifier, ()))[0]
        return EntityLink(name, "")

    def object_name(self, kind: str, identifier: str | None) -> EntityLink:
        """The object's own name, or that of the user who owns it."""
        if identifier is None:
            return EntityLink(self.object_kind_label(kind), "")
        key = (kind, identifier)
        owner = self._users.get(identifier) if kind in _USER_KINDS else self._owners.get(key)
        if owner is not None:
            return display_user(self._page, owner)
        if key in self._named:
            name, homes = self._named[key]
            is_visible = any(
                self._page.services.access_control.can_see_organization(self._page.principal, home) for home in homes
            )
            path = f"{CONSOLE_PATH}/{kind.replace('_', '-')}s/{quote(path_of_client_id(identifier))}"
            return EntityLink(name, path if is_visible else "")
        # Events never record names of deleted users.
        bare = self._page.translator.gettext("Deleted user") if kind == "user" else identifier
        return EntityLink(self._called.get(key, bare), "")

    def object_kind_label(self, kind: str) -> str:
        return self._page.translator.gettext(OBJECT_KIND_LABELS.get(kind, kind))


def _owner_user_id(event: NamedEvent, storage: Storage) -> str | None:
    """The owner's id; events of changes record only the difference, so it is looked up."""
    if event.object_kind not in _USER_OWNED_KINDS or event.object_id is None:
        return None
    recorded = (isinstance(event, AuditEvent) and event.user_id) or _detail(event).get("user_id")
    if isinstance(recorded, str):
        return recorded
    stores: Mapping[str, Any] = {
        "manager": storage.managers,
        "user_grant": storage.user_grants,
        "group_member": storage.group_members,
    }
    stored = stores[event.object_kind].find(event.object_id) if event.object_kind in stores else None
    return None if stored is None else str(stored.user_id)


def _recorded_name(event: NamedEvent) -> str:
    """The name in the event's detail, present for creation, deletion and renaming."""
    for member in ("display_name", "name", "user_name"):
        value = _detail(event).get(member)
        if isinstance(value, Mapping):
            value = value.get("after")
        if isinstance(value, str) and value:
            return value
    return ""


def _other_organization_id(event: NamedEvent) -> str:
    other = _detail(event).get(OTHER_ORGANIZATION)
    return other if isinstance(other, str) else ""


def _detail(event: NamedEvent) -> Mapping[str, object]:
    return event.detail if isinstance(event, AuditEvent) else {}

"""Who acted, and on what: names for audit events, looked up for a whole page at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from identity.domain.audit import OTHER_ORGANIZATION, ActorKind, AuditEvent
from identity.domain.users import Subject
from identity.domain.words import say
from identity.pages.event_words import KIND_WORDS
from identity.plugins.console.badges import Named
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.shown import readable_href, shown_user
from identity.services.overview import Refusal
from identity.storage.backend import Storage

_NOBODY = {
    ActorKind.OPERATOR: say("The operator"),
    ActorKind.SYSTEM: say("The service itself"),
    ActorKind.ANONYMOUS: say("Nobody known"),
}
_USERS = frozenset({"user", "service_user"})
#: What people know by whose it is: its own id tells them nothing.
_OF_USERS = frozenset(
    {"manager", "user_grant", "service_user_key", "service_user_secret", "personal_access_token", "legal_hold"}
)
_WITH_ACTOR = frozenset({ActorKind.USER, ActorKind.CLIENT})


#: What names are wanted for; several refusals that say the same come without what each said.
Told = AuditEvent | Refusal


class Parties:
    """The parties of some events; what is gone by now is called as its event calls it, else by its id."""

    def __init__(self, page: ConsolePage, events: Iterable[Told]) -> None:
        self._page = page
        events = tuple(events)
        actors = [one.actor for one in events]
        things: dict[str, set[str]] = {}
        for one in events:
            if one.object_id is not None:
                things.setdefault(one.object_kind, set()).add(one.object_id)
        acting = {one.id for one in actors if one.id is not None and one.kind in _WITH_ACTOR}
        acting |= {one.client_id for one in actors if one.client_id is not None}
        storage = page.services.storage
        owners = {(one.object_kind, one.object_id): _owner(one, storage) for one in events}
        users = acting.union(filter(None, owners.values()), *(things.get(kind, ()) for kind in _USERS))
        self._users: dict[str, Subject] = dict(storage.users.find_subjects(users))
        # A client is an application or a service user.
        clients = things.get("application", set()) | (acting - self._users.keys())
        applications = storage.applications.find_many(clients)
        grants = storage.project_grants.find_many(things.get("project_grant", ()))
        of_projects = {one.project_id for one in applications.values()} | {one.project_id for one in grants.values()}
        projects = storage.projects.find_many(things.get("project", set()) | of_projects)
        others = {_other(one) for one in events} - {""}
        organizations = storage.organizations.find_many(things.get("organization", set()) | others)
        # With the organizations in which each can be looked at.
        homes = {key: one.organization_id for key, one in projects.items()}
        self._named: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {
            **{
                ("application", key): (one.name, (homes[one.project_id],))
                for key, one in applications.items()
                if one.project_id in homes
            },
            **{("project", key): (one.name, (homes[key],)) for key, one in projects.items()},
            **{
                ("project_grant", key): (projects[one.project_id].name, (homes[one.project_id], one.organization_id))
                for key, one in grants.items()
                if one.project_id in homes
            },
            **{("organization", key): (one.name, (key,)) for key, one in organizations.items()},
        }
        self._owners = {key: self._users[owner] for key, owner in owners.items() if owner in self._users}
        self._called = {(one.object_kind, one.object_id): called for one in events if (called := _called(one))}

    def actor(self, event: Told) -> Named:
        """Who acted; with a link if whoever looks may know of it. Of people on the other side of a project grant the
        event tells no more than where they belong."""
        words, actor = self._page.words, event.actor
        other = self.other_organization(event)
        if actor.kind is ActorKind.USER and actor.id is None and other:
            return Named(words.t("A user of {organization}", organization=other), "")
        if actor.id is None or actor.kind not in _WITH_ACTOR:
            return Named(words.t(_NOBODY.get(actor.kind, say("Unknown"))), "")
        return self.party(actor.id)

    def other_organization(self, event: Told) -> str:
        """The name of the organization on the other side of a project grant, or its id; empty if there is none."""
        identifier = _other(event)
        return self._named.get(("organization", identifier), (identifier, ()))[0]

    def party(self, identifier: str) -> Named:
        """A user, or a client: whoever acts here is told by name, wherever they belong."""
        subject = self._users.get(identifier)
        if subject is not None:
            seen = self._page.services.access.sees(self._page.principal, subject.organization.id)
            return Named(subject.user.display_name, readable_href(self._page, subject) if seen else "")
        name, _ = self._named.get(("application", identifier), (identifier, ()))
        return Named(name, "")

    def thing(self, kind: str, identifier: str | None) -> Named:
        """What an event is about, by its name or by that of the user whose it is."""
        if identifier is None:
            return Named(self.kind(kind), "")
        key = (kind, identifier)
        owner = self._users.get(identifier) if kind in _USERS else self._owners.get(key)
        if owner is not None:
            return shown_user(self._page, owner)
        if key in self._named:
            name, homes = self._named[key]
            seen = any(self._page.services.access.sees(self._page.principal, one) for one in homes)
            return Named(name, f"{CONSOLE}/{kind.replace('_', '-')}s/{identifier}" if seen else "")
        # Of people who are deleted no event tells what they were called.
        bare = self._page.words.t("Deleted user") if kind == "user" else identifier
        return Named(self._called.get(key, bare), "")

    def kind(self, kind: str) -> str:
        """The kind of thing, in words."""
        return self._page.words.t(KIND_WORDS.get(kind, kind))


def _owner(event: Told, storage: Storage) -> str | None:
    """The id of the user whose the thing is: of what was changed, the event tells the difference alone."""
    if event.object_kind not in _OF_USERS or event.object_id is None:
        return None
    told = (isinstance(event, AuditEvent) and event.user_id) or _detail(event).get("user_id")
    if isinstance(told, str):
        return told
    stores: Mapping[str, Any] = {"manager": storage.managers, "user_grant": storage.user_grants}
    stored = stores[event.object_kind].find(event.object_id) if event.object_kind in stores else None
    return None if stored is None else str(stored.user_id)


def _called(event: Told) -> str:
    """The name that the event itself tells, of what was made, removed or renamed."""
    for member in ("display_name", "name", "user_name"):
        told = _detail(event).get(member)
        if isinstance(told, Mapping):
            told = told.get("after")
        if isinstance(told, str) and told:
            return told
    return ""


def _other(event: Told) -> str:
    other = _detail(event).get(OTHER_ORGANIZATION)
    return other if isinstance(other, str) else ""


def _detail(event: Told) -> Mapping[str, object]:
    return event.detail if isinstance(event, AuditEvent) else {}

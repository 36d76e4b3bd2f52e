"""Who acted, and on what: names for audit events, looked up for a whole page at once."""

from collections.abc import Iterable
from typing import Any

from identity.domain.audit import Actor, ActorKind
from identity.domain.users import ServiceUser, Subject
from identity.domain.words import say
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.event_words import KIND_WORDS
from identity.plugins.console.holdings import Named

_NOBODY = {
    ActorKind.OPERATOR: say("The operator"),
    ActorKind.SYSTEM: say("The service itself"),
    ActorKind.ANONYMOUS: say("Nobody known"),
}
_USERS = frozenset({"user", "service_user"})
_WITH_ACTOR = frozenset({ActorKind.USER, ActorKind.CLIENT})


class Parties:
    """The parties of some events; what is gone by now is called by its id."""

    def __init__(self, page: ConsolePage, actors: Iterable[Actor], objects: Iterable[tuple[str, str | None]]) -> None:
        self._page = page
        things: dict[str, set[str]] = {}
        for kind, identifier in objects:
            if identifier is not None:
                things.setdefault(kind, set()).add(identifier)
        actors = tuple(actors)
        acting = {one.id for one in actors if one.id is not None and one.kind in _WITH_ACTOR}
        acting |= {one.client_id for one in actors if one.client_id is not None}
        storage = page.services.storage
        users = acting.union(*(things.get(kind, ()) for kind in _USERS))
        self._users: dict[str, Subject] = dict(storage.users.find_many(users))
        # A client is an application or a service user.
        clients = things.get("application", set()) | (acting - self._users.keys())
        self._named = {
            **{("application", one.id): one.name for one in storage.applications.find_many(clients).values()},
            **self._names("project", storage.projects, things),
            **self._names("organization", storage.organizations, things),
        }

    def actor(self, actor: Actor) -> Named:
        """Who acted; with a link if whoever looks may know of it."""
        words = self._page.words
        if actor.id is None or actor.kind not in _WITH_ACTOR:
            return Named(words.t(_NOBODY.get(actor.kind, say("Unknown"))), "")
        return self.party(actor.id)

    def party(self, identifier: str) -> Named:
        """A user, or a client."""
        if identifier in self._users:
            return self._user(self._users[identifier])
        return Named(self._named.get(("application", identifier), identifier), "")

    def thing(self, kind: str, identifier: str | None) -> Named:
        """What an event is about, by name where it has one."""
        if identifier is None:
            return Named(self.kind(kind), "")
        if kind in _USERS and identifier in self._users:
            return self._user(self._users[identifier])
        name = self._named.get((kind, identifier))
        return Named(identifier, "") if name is None else Named(name, f"{CONSOLE}/{kind}s/{identifier}")

    def kind(self, kind: str) -> str:
        """The kind of thing, in words."""
        return self._page.words.t(KIND_WORDS.get(kind, kind))

    def _user(self, subject: Subject) -> Named:
        name = subject.user.display_name
        if not self._page.services.access.sees(self._page.principal, subject.organization.id):
            return Named(name, "")
        place = "service-users" if isinstance(subject.user, ServiceUser) else "users"
        return Named(name, f"{CONSOLE}/{place}/{subject.user.id}")

    def _names(self, kind: str, store: Any, things: dict[str, set[str]]) -> dict[tuple[str, str], str]:
        found = store.find_many(things.get(kind, set()))
        return {(kind, one.id): one.name for one in found.values()}

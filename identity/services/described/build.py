"""Build: one walk through a document. It collects what changes, and every problem with its place in the document."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from identity.domain.effects import Effects, Removed
from identity.domain.entity import members
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.service_user_keys import KeyFile
from identity.domain.users import Address, HumanUser, Subject
from identity.domain.words import say
from identity.services.access import Principal
from identity.services.audit import json_value
from identity.services.bundle import Services
from identity.services.commands import Command
from identity.services.commands.documents import Reading
from identity.services.commands.spooled import MOST_PROBLEMS
from identity.services.commands.users import ChangeAddress
from identity.services.described.present import TWICE, named, organizations_named

#: What use cases call a member that documents call otherwise.
_MEMBERS = {"user_id": "user", "organization_id": "organization", "project_id": "user"}


class Action(StrEnum):
    """What happens to a thing."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that becomes different: its kind, its name in full, and in what, or what falls with it."""

    action: Action
    kind: str
    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """A described application: its name in full, its client id, and the secret that it was given just now."""

    name: str
    client_id: str
    secret: str | None = field(default=None, repr=False)


class Stored(Protocol):
    """What can be described."""

    @property
    def id(self) -> str:
        """The id."""

    @property
    def active(self) -> bool:
        """False while it is deactivated."""


Thing = TypeVar("Thing", bound=Stored)
Row = TypeVar("Row")
Stores = TypeVar("Stores", bound=Stored)
Made = TypeVar("Made")
Asked = TypeVar("Asked", bound=Command)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Kind(Generic[Thing]):
    """The use cases of one kind of thing, and the command that changes it."""

    use_cases: Any
    change_type: type[Command]

    @property
    def name(self) -> str:
        """How documents call the kind."""
        name: str = self.use_cases.kind
        return name.replace("_", " ")


class Build:
    """One document, as far as it could be read, and one transaction.

    Permissions on use cases that do not ask themselves are asked for here.

    ``fresh`` makes everything anew, with the ids of the document if ``keep_ids``; otherwise things are found by their
    names. ``prune`` removes what the document's lists do not name. ``with_secrets`` gives each described application
    that could have a secret and has none its first one. ``finish`` ends the walk.
    """

    def __init__(
        self,
        services: Services,
        reading: Reading,
        *,
        by: Principal,
        fresh: bool = False,
        keep_ids: bool = False,
        prune: bool = False,
        with_secrets: bool = False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.services = services
        self._reading = reading
        self.storage = services.storage
        self.by = by
        self.fresh = fresh
        self.with_secrets = with_secrets
        self.problems: dict[str, str] = {}
        self.changes: list[Change] = []
        self.applications: list[Registered] = []
        self.key_files: list[tuple[str, KeyFile]] = []
        #: Hears of each so many people that were made.
        self.progress = progress
        self._keep_ids = keep_ids
        # What could not be read is not gone.
        self._prune = prune and not reading.problems
        self._ids: dict[str, str] = {}
        self._seen: set[tuple[str, ...]] = set()
        self._at_the_end: list[Callable[[], None]] = []

    @property
    def own_organization_id(self) -> str | None:
        """The instance's own organization, which stays."""
        instance = self.services.instance()
        return None if instance is None else instance.organization_id

    @property
    def own_project_id(self) -> str | None:
        """The instance's own project, which stays."""
        instance = self.services.instance()
        return None if instance is None else instance.project_id

    def finish(self) -> None:
        """Do what had to wait: deactivate and remove, the last described first. Raises Invalid with all problems."""
        while self._at_the_end:
            self._at_the_end.pop()()
        problems = self._reading.together(self.problems)
        if problems:
            raise Invalid(self._reading.first_of(problems))

    def items(self, path: str, described: Sequence[Item]) -> Iterator[tuple[int, Item]]:
        """The items of a list with their numbers, wherever they are kept."""
        spooled = self._reading.spooled.get(path)
        return enumerate(described) if described or spooled is None else iter(spooled)

    def at_the_end(self, do: Callable[[], None]) -> None:
        """Put off what takes something away, so that nothing falls that the document still speaks of."""
        self._at_the_end.append(do)

    def note(self, action: Action, kind: str, name: str, detail: str = "") -> None:
        """Remember what becomes different."""
        self.changes.append(Change(action, kind, name, detail))

    def problem(self, path: str, sentence: str) -> None:
        """Remember what is wrong at this place; the first thing counts. Raises Invalid when it has become too much."""
        self.problems.setdefault(path, sentence)
        if len(self.problems) >= MOST_PROBLEMS:
            raise Invalid(self._reading.first_of(self._reading.together(self.problems)))

    @contextmanager
    def refusals_at(self, path: str) -> Iterator[None]:
        """Turn the refusal of a use case into problems at this place. Denied goes on: it is nobody's slip."""
        try:
            yield
        except Invalid as refusal:
            for name, sentence in refusal.fields.items():
                self.problem(f"{path}.{_MEMBERS.get(name, name)}", sentence)
        except (NotFound, Conflict) as refusal:
            self.problem(path, str(refusal))

    def attempt(self, path: str, do: Callable[[], Made]) -> Made | None:
        """What it returns; None if it was refused, which is a problem at this place then."""
        with self.refusals_at(path):
            return do()
        return None

    def require(self, permission: str, organization: Organization) -> None:
        """Raise Denied unless the caller may do this in the organization."""
        self.services.access.require(self.by, permission, organization_resource(organization.id))

    def id_for(self, described: Any) -> str | None:
        """The id that a new thing gets; None for one of its own."""
        return described.id if self._keep_ids else None

    def is_new(self, path: str, *key: str) -> bool:
        """True the first time; a problem the second time that the document speaks of the same thing."""
        if self.has_seen(*key):
            self.problem(path, TWICE)
            return False
        self._seen.add(key)
        return True

    def has_seen(self, *key: str) -> bool:
        """True if the document has spoken of the thing."""
        return key in self._seen

    def remember(self, path: str, described: Any, stored_id: str) -> None:
        """Which stored thing the document means by an id of its own."""
        own = getattr(described, "id", None)
        if own is not None and self._ids.setdefault(own, stored_id) != stored_id:
            self.problem(f"{path}.id", say("Something else in the document has this id."))

    def ensure(
        self,
        path: str,
        name: str,
        described: Any,
        kind: Kind[Thing],
        *,
        find: Callable[[], Thing | None],
        make: Callable[[], Thing],
    ) -> Thing | None:
        """The thing as it is described, found or made; None if that did not work."""
        with self.refusals_at(path):
            stored = None if self.fresh else find()
            if stored is None:
                thing = make()
                self.note(Action.ADD, kind.name, name)
            else:
                thing = stored
            if not self.is_new(path, kind.name, thing.id):
                return None
            self.remember(path, described, thing.id)
            before = thing
            self._refuse_other(described, thing)
            wanted = differences(described, thing, kind.change_type)
            if wanted:
                thing = kind.use_cases.change(thing.id, kind.change_type(**wanted), by=self.by)
                # Use cases tidy up what they are given: only what is stored otherwise than before has changed.
                changed = changes(before, thing, kind.change_type)
                if changed and stored is not None:
                    self.note(Action.CHANGE, kind.name, name, told(before, changed))
            self._set_state(path, name, described, kind, thing, told=stored is not None)
            return thing
        return None

    def _refuse_other(self, described: Any, thing: Any) -> None:
        """Raise Invalid for what is described otherwise than it is and can never be changed."""
        present, declared = facts_of(thing), members(type(thing))
        fixed = {
            name
            for name in described.model_fields_set & declared.keys()
            if declared[name].settable and not declared[name].changeable and getattr(described, name) is not None
        }
        problems = {
            name: say("This is never changed. It is {value} here.", value=_text(present[name]))
            for name in sorted(fixed)
            if getattr(described, name) != present[name]
        }
        if problems:
            raise Invalid(problems)

    def prune(
        self,
        path: str,
        kind: str,
        rows: Callable[[], Iterable[Row]],
        *,
        key: Callable[[Row], tuple[str, ...]],
        name: Callable[[Row], str],
        remove: Callable[[Row], object],
        effects: Callable[[Row], Effects] | None = None,
    ) -> None:
        """Remove, at the end, the rows that the document has not spoken of; nothing unless asked to prune."""
        if self._prune:
            self.at_the_end(lambda: self._remove_unseen(path, kind, rows, key, name, remove, effects))

    def prune_things(
        self, path: str, kind: Kind[Any], rows: Callable[[], Iterable[Stores]], name: Callable[[Stores], str]
    ) -> None:
        """The same for things that ``ensure`` makes."""
        self.prune(
            path,
            kind.name,
            rows,
            key=lambda thing: (kind.name, thing.id),
            name=name,
            remove=lambda thing: kind.use_cases.remove(thing.id, by=self.by),
            effects=lambda thing: self.services.effects(Removed.of_kind(kind.use_cases.kind), thing.id),
        )

    def user(self, path: str, reference: str, organization: Organization | None) -> Subject | None:
        """The user that the document means; None, and a problem, if there is no such."""
        users = self.storage.users
        found = None
        if reference in self._ids:
            found = users.find_subject(self._ids[reference])
        elif "@" in reference:
            found = users.find_by_login_name(reference)
        elif organization is not None:
            named = users.find_by_name(organization.id, reference)
            found = None if named is None else users.find_subject(named.id)
        if found is None and not self.fresh:
            found = users.find_subject(reference)
        if found is None and {reference, reference.partition("@")[0]} & self._reading.unread:
            return None
        if found is None or not self.services.access.sees(self.by, found.organization.id):
            self.problem(f"{path}.user", say("There is no user {name}.", name=reference))
            return None
        return found

    def organization(self, path: str, reference: str) -> Organization | None:
        """The organization that the document means; None, and a problem, if that is unclear."""
        stored = self.storage.organizations
        found = stored.find_by_domain(reference) or stored.find(self._ids.get(reference, reference))
        if found is None and not self.fresh:
            found = self.attempt(path, lambda: named(reference, organizations_named(self.storage, reference)))
        if found is None and reference in self._reading.unread:
            return None
        if found is None or not self.services.access.sees(self.by, found.id):
            self.problem(f"{path}.organization", say("There is no organization {name}.", name=reference))
            return None
        return found

    def _set_state(self, path: str, name: str, described: Any, kind: Kind[Thing], thing: Thing, *, told: bool) -> None:
        if "active" not in described.model_fields_set or described.active == thing.active:
            return
        if described.active:
            kind.use_cases.reactivate(thing.id, by=self.by)
            self.note(Action.CHANGE, kind.name, name, "reactivated")
            return

        def deactivate() -> None:
            if self.attempt(path, lambda: kind.use_cases.deactivate(thing.id, by=self.by)) and told:
                self.note(Action.CHANGE, kind.name, name, "deactivated")

        self.at_the_end(deactivate)

    def _remove_unseen(
        self,
        path: str,
        kind: str,
        rows: Callable[[], Iterable[Row]],
        key: Callable[[Row], tuple[str, ...]],
        name: Callable[[Row], str],
        remove: Callable[[Row], object],
        effects: Callable[[Row], Effects] | None,
    ) -> None:
        for row in list(rows()):
            if self.has_seen(*key(row)):
                continue
            words = "" if effects is None else _effect_words(effects(row))
            with self.refusals_at(path):
                remove(row)
                self.note(Action.REMOVE, kind, name(row), words)


def asked(described: Any, command: type[Asked]) -> Asked:
    """The command that makes what is described."""
    given = {name: getattr(described, name) for name in _given(described, command)}
    return command(**{name: value for name, value in given.items() if value is not None})


def differences(described: Any, thing: Any, command: type[Command]) -> dict[str, Any]:
    """What a command of this type has to change so that the thing is as described."""
    present, declared = facts_of(thing), members(type(thing))
    wanted = {name: getattr(described, name) for name in sorted(_given(described, command))}
    return {
        name: value
        for name, value in wanted.items()
        if not (value is None and not (name in declared and declared[name].nullable))
        and not _same(name, value, present.get(name))
    }


def changes(before: Any, after: Any, command: type[Command]) -> dict[str, Any]:
    """What such a command has changed, by its members."""
    was, is_ = facts_of(before), facts_of(after)
    return {name: is_[name] for name in command.model_fields if name in is_ and is_[name] != was[name]}


def facts_of(thing: Any) -> Mapping[str, object]:
    """The thing's values by the names that commands have for them."""
    if isinstance(thing, HumanUser):
        return {"user_name": thing.user_name, **facts_of(thing.profile)}
    return {one.name: getattr(thing, one.name) for one in fields(thing)}


def _given(described: Any, command: type[Command]) -> Set[str]:
    given: Set[str] = described.model_fields_set & command.model_fields.keys()
    return given


def _same(name: str, wanted: Any, present: Any) -> bool:
    """True if changing it would change nothing. The order of a response type's words means nothing."""
    if name == "response_types":
        wanted, present = ({frozenset(one.split()) for one in words} for words in (wanted, present))
    elif isinstance(wanted, tuple):
        wanted = tuple(dict.fromkeys(wanted))
    elif isinstance(wanted, ChangeAddress):
        wanted = Address(**wanted.model_dump())
    return bool(wanted == present)


def told(thing: Any, differing: Mapping[str, Any]) -> str:
    """What becomes different of the thing, for people."""
    before = facts_of(thing)
    return "; ".join(f"{name}: {_text(before.get(name))} → {_text(value)}" for name, value in differing.items())


def _text(value: Any) -> str:
    if isinstance(value, ChangeAddress):
        value = Address(**value.model_dump())
    return json.dumps(json_value(value), ensure_ascii=False)


def _effect_words(effects: Effects) -> str:
    numbers = {one.name.replace("_", " "): getattr(effects, one.name) for one in fields(effects)}
    return ", ".join(f"{name}: {number}" for name, number in numbers.items() if number)

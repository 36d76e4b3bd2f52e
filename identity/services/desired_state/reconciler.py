"""Reconciler: walks through one document, and collects changes and all problems with their paths."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.domain.entity import entity_fields
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.service_user_keys import KeyFile
from identity.domain.users import Address, HumanUser, Subject
from identity.services.access_control import Principal
from identity.services.audit import to_json_value
from identity.services.commands import Command, CommandT
from identity.services.commands.documents import ParseReport
from identity.services.commands.streaming_import import MAX_PROBLEMS
from identity.services.commands.users import ChangeAddress
from identity.services.container import Services
from identity.services.desired_state.existing_rows import (
    DUPLICATE_SPEC,
    find_organizations_by_name,
    require_unambiguous,
)
from identity.storage.backend import Storage

#: Members that services name differently than documents.
_MEMBERS = {"user_id": "user", "organization_id": "organization", "project_id": "user"}


class ChangeAction(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change to an entity: its kind, its qualified name, and what changes or is removed with it."""

    action: ChangeAction
    kind: str
    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RegisteredCredentials:
    """A described application: qualified name, client id, and its secret if it was just created."""

    name: str
    client_id: str
    secret: str | None = field(default=None, repr=False)


class StoredEntity(Protocol):
    """An entity that a document can describe."""

    @property
    def id(self) -> str:
        pass


EntityT = TypeVar("EntityT", bound=StoredEntity)
RowT = TypeVar("RowT")
Stores = TypeVar("Stores", bound=StoredEntity)
ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")


@dataclass(eq=False, repr=False)
class Reconciler:
    """One document, as far as it is valid, and one transaction.

    Checks the permissions that services do not check themselves.

    ``create_all`` creates everything, with the ids of the document if ``keep_ids``; otherwise entities are matched
    by name. ``prune`` removes what the document's lists do not contain. ``with_secrets`` gives each described
    application that can have a secret and has none its first one. Call ``finish`` at the end."""

    services: Services
    parse_report: ParseReport
    principal: Principal
    create_all: bool = False
    keep_ids: bool = False
    prune: bool = False
    with_secrets: bool = False
    #: Called with the number of users created.
    progress: Callable[[int], None] = lambda _: None
    problems: dict[str, str] = field(default_factory=dict, init=False)
    state_changes: list[StateChange] = field(default_factory=list, init=False)
    applications: list[RegisteredCredentials] = field(default_factory=list, init=False)
    key_files: list[tuple[str, KeyFile]] = field(default_factory=list, init=False)
    _ids: dict[str, str] = field(default_factory=dict, init=False)
    _seen_keys: set[tuple[str, ...]] = field(default_factory=set, init=False)
    _at_the_end: list[Callable[[], None]] = field(default_factory=list, init=False)

    @property
    def storage(self) -> Storage:
        return self.services.storage

    @property
    def own_organization_id(self) -> str | None:
        """The instance's own organization, which is never removed."""
        instance = self.services.find_instance()
        return None if instance is None else instance.organization_id

    @property
    def own_project_id(self) -> str | None:
        """The instance's own project, which is never removed."""
        instance = self.services.find_instance()
        return None if instance is None else instance.project_id

    def finish(self) -> None:
        """Run the deferred deactivations and removals in reverse order. Raises Invalid with all problems."""
        while self._at_the_end:
            self._at_the_end.pop()()
        problems = self.parse_report.merge_problems(self.problems)
        if problems:
            raise Invalid(self.parse_report.truncate_problems(problems))

    def iter_items(self, path: str, described: Sequence[ItemT]) -> Iterator[tuple[int, ItemT]]:
        """The items of a list with their numbers, in memory or spooled to a file."""
        spooled = self.parse_report.streamed_lists.get(path)
        return enumerate(described) if described or spooled is None else iter(spooled)

    def record_change(self, action: ChangeAction, kind: str, name: str, detail: str = "") -> None:
        self.state_changes.append(StateChange(action, kind, name, detail))

    def add_problem(self, path: str, sentence: str) -> None:
        """Record a problem at this path; the first one per path counts. Raises Invalid when there are too many."""
        self.problems.setdefault(path, sentence)
        if len(self.problems) >= MAX_PROBLEMS:
            raise Invalid(self.parse_report.truncate_problems(self.parse_report.merge_problems(self.problems)))

    @contextmanager
    def collect_problems(self, path: str) -> Iterator[None]:
        """Turn an Invalid or Conflict within the block into problems at this path. Denied propagates: it is not a
        mistake in the document."""
        try:
            yield
        except Invalid as refusal:
            for name, sentence in refusal.fields.items():
                self.add_problem(f"{path}.{_MEMBERS.get(name, name)}", sentence)
        except (NotFound, Conflict) as refusal:
            self.add_problem(path, str(refusal))

    def try_step(self, path: str, do: Callable[[], ResultT]) -> ResultT | None:
        """Call ``do``; if it is refused, record a problem at this path and return None."""
        with self.collect_problems(path):
            return do()
        return None

    def require(self, permission: str, organization: Organization) -> None:
        """Raise Denied unless the principal has the permission in the organization."""
        self.services.access_control.require(self.principal, permission, Resource.of_organization(organization.id))

    def new_entity_id(self, described: Any) -> str | None:
        """The id for a new entity; None to generate one."""
        return described.id if self.keep_ids else None

    def mark_seen(self, path: str, *key: str) -> bool:
        """True the first time; a problem if the document describes the same entity twice."""
        if self.has_seen(*key):
            self.add_problem(path, DUPLICATE_SPEC)
            return False
        self._seen_keys.add(key)
        return True

    def has_seen(self, *key: str) -> bool:
        return key in self._seen_keys

    def register_id(self, path: str, described: Any, stored_id: str) -> None:
        """Map an id in the document to the stored entity."""
        spec_id = getattr(described, "id", None)
        if spec_id is not None and self._ids.setdefault(spec_id, stored_id) != stored_id:
            self.add_problem(f"{path}.id", gettext_lazy("Another entry in the document has this id."))

    def ensure(
        self,
        path: str,
        name: str,
        spec: Any,
        service: Any,
        change_type: type[Command],
        *,
        find: Callable[[], EntityT | None],
        create: Callable[[], EntityT],
    ) -> EntityT | None:
        """Find or create the entity, by its service and the command that changes it, and bring it to the described
        state; None if that failed."""
        kind = service.kind_label
        with self.collect_problems(path):
            stored = None if self.create_all else find()
            entity = create() if stored is None else stored
            if stored is None:
                self.record_change(ChangeAction.ADD, kind, name)
            if not self.mark_seen(path, kind, entity.id):
                return None
            self.register_id(path, spec, entity.id)
            before = entity
            self._refuse_other(spec, entity)
            differences = diff_spec(spec, entity, change_type)
            if differences:
                entity = service.change(entity.id, change_type(**differences), principal=self.principal)
                # Services normalize their input: only a stored difference is a change.
                changed = diff_entities(before, entity, change_type)
                if changed and stored is not None:
                    self.record_change(ChangeAction.CHANGE, kind, name, describe_differences(before, changed))
            self._set_state(path, name, spec, service, entity, record=stored is not None)
            return entity
        return None

    def _refuse_other(self, described: Any, entity: Any) -> None:
        """Raise Invalid for differences in members that cannot be changed."""
        present, declared = command_values(entity), entity_fields(type(entity))
        fixed = {
            name
            for name in described.model_fields_set & declared.keys()
            if declared[name].is_settable and not declared[name].is_mutable and getattr(described, name) is not None
        }
        problems = {
            name: gettext_lazy("This cannot be changed. It is {value} here.", value=_text(present[name]))
            for name in sorted(fixed)
            if getattr(described, name) != present[name]
        }
        if problems:
            raise Invalid(problems)

    def prune_rows(
        self,
        path: str,
        kind: str,
        find_rows: Callable[[], Iterable[RowT]],
        *,
        key: Callable[[RowT], tuple[str, ...]],
        name: Callable[[RowT], str],
        remove: Callable[[RowT], object],
        effects: Callable[[RowT], DeletionImpact] = lambda _: DeletionImpact(),
    ) -> None:
        """Remove, at the end, the rows that the document has not described; does nothing without ``prune``."""

        def remove_unseen() -> None:
            for row in [row for row in find_rows() if not self.has_seen(kind, *key(row))]:
                detail = _format_impact(effects(row))
                with self.collect_problems(path):
                    remove(row)
                    self.record_change(ChangeAction.REMOVE, kind, name(row), detail)

        # An entity that could not be parsed must not count as missing.
        if self.prune and not self.parse_report.problems:
            # Last, so that nothing disappears that the document still refers to.
            self._at_the_end.append(remove_unseen)

    def prune_entities(
        self, path: str, service: Any, rows: Callable[[], Iterable[Stores]], name: Callable[[Stores], str]
    ) -> None:
        """Like ``prune_rows``, for entities that ``ensure`` creates."""
        self.prune_rows(
            path,
            service.kind_label,
            rows,
            key=lambda entity: (entity.id,),
            name=name,
            remove=lambda entity: service.remove(entity.id, principal=self.principal),
            effects=lambda entity: self.services.deletion_impact(DeletionTarget.from_kind(service.kind), entity.id),
        )

    def find_login_name(self, user_id: str) -> str:
        """The user's login name; the id if the user is gone."""
        subject = self.storage.users.find_subject(user_id)
        return user_id if subject is None else subject.login_name

    def resolve_user(self, path: str, reference: str, organization: Organization | None) -> Subject | None:
        """The user that the document refers to; None, and a problem, if there is no such user."""
        users = self.storage.users
        subject = None
        if reference in self._ids:
            subject = users.find_subject(self._ids[reference])
        elif "@" in reference:
            subject = users.find_by_login_name(reference)
        elif organization is not None:
            named = users.find_by_name(organization.id, reference)
            subject = None if named is None else users.find_subject(named.id)
        if subject is None and not self.create_all:
            subject = users.find_subject(reference)
        if subject is None and {reference, reference.partition("@")[0]} & self.parse_report.rejected_texts:
            return None
        if subject is None or not self.services.access_control.can_see_organization(
            self.principal, subject.organization.id
        ):
            self.add_problem(f"{path}.user", gettext_lazy("There is no user {name}.", name=reference))
            return None
        return subject

    def resolve_id(self, reference: str) -> str:
        """The id of the stored entity that has this id in the document; the reference itself if none has."""
        return self._ids.get(reference, reference)

    def resolve_organization(self, path: str, reference: str) -> Organization | None:
        """The organization that the document refers to; None, and a problem, if that is ambiguous."""
        stored = self.storage.organizations
        organization = stored.find_by_domain(reference) or stored.find(self._ids.get(reference, reference))
        if organization is None and not self.create_all:
            organization = self.try_step(
                path, lambda: require_unambiguous(reference, find_organizations_by_name(self.storage, reference))
            )
        if organization is None and reference in self.parse_report.rejected_texts:
            return None
        if organization is None or not self.services.access_control.can_see_organization(
            self.principal, organization.id
        ):
            self.add_problem(f"{path}.organization", gettext_lazy("There is no organization {name}.", name=reference))
            return None
        return organization

    def _set_state(self, path: str, name: str, described: Any, service: Any, entity: Any, *, record: bool) -> None:
        if "active" not in described.model_fields_set or described.active == entity.active:
            return
        if described.active:
            service.reactivate(entity.id, principal=self.principal)
            self.record_change(ChangeAction.CHANGE, service.kind_label, name, "reactivated")
            return

        def deactivate() -> None:
            if self.try_step(path, lambda: service.deactivate(entity.id, principal=self.principal)) and record:
                self.record_change(ChangeAction.CHANGE, service.kind_label, name, "deactivated")

        self._at_the_end.append(deactivate)


def command_from_spec(described: Any, command: type[CommandT]) -> CommandT:
    """The command that creates the described entity."""
    values = {name: getattr(described, name) for name in _described_fields(described, command)}
    return command(**{name: value for name, value in values.items() if value is not None})


def diff_spec(described: Any, entity: Any, command: type[Command]) -> dict[str, Any]:
    """The values that a command of this type has to set to reach the described state."""
    present, declared = command_values(entity), entity_fields(type(entity))
    values = {name: getattr(described, name) for name in sorted(_described_fields(described, command))}
    return {
        name: value
        for name, value in values.items()
        if not (value is None and not (name in declared and declared[name].nullable))
        and not _is_unchanged(name, value, present.get(name))
    }


def diff_entities(before: Any, after: Any, command: type[Command]) -> dict[str, Any]:
    """The values that such a command has changed."""
    was, is_ = command_values(before), command_values(after)
    return {name: is_[name] for name in command.model_fields if name in is_ and is_[name] != was[name]}


def command_values(entity: Any) -> Mapping[str, object]:
    """The entity's values by the names that commands use."""
    if isinstance(entity, HumanUser):
        return {"user_name": entity.user_name, **command_values(entity.profile)}
    return {field.name: getattr(entity, field.name) for field in fields(entity)}


def _described_fields(described: Any, command: type[Command]) -> Set[str]:
    names: Set[str] = described.model_fields_set & command.model_fields.keys()
    return names


def _is_unchanged(name: str, described: Any, present: Any) -> bool:
    """True if setting it would change nothing. The order of the values of a response type has no meaning."""
    if name == "response_types":
        described, present = ({frozenset(item.split()) for item in types} for types in (described, present))
    elif isinstance(described, tuple):
        described = tuple(dict.fromkeys(described))
    elif isinstance(described, ChangeAddress):
        described = Address(**described.model_dump())
    return bool(described == present)


def describe_differences(entity: Any, differing: Mapping[str, Any]) -> str:
    """The differences, in a form for people."""
    before = command_values(entity)
    return "; ".join(f"{name}: {_text(before.get(name))} → {_text(value)}" for name, value in differing.items())


def _text(value: Any) -> str:
    if isinstance(value, ChangeAddress):
        value = Address(**value.model_dump())
    return json.dumps(to_json_value(value), ensure_ascii=False)


def _format_impact(effects: DeletionImpact) -> str:
    numbers = {field.name.replace("_", " "): getattr(effects, field.name) for field in fields(effects)}
    at_least = "" if numbers.pop("is exact") else "at least "
    return ", ".join(f"{name}: {at_least}{number}" for name, number in numbers.items() if number)

"""CSV imports of people into an organization: stored sealed, checked line by line, and run in the background.

The starter's rights count, as they are when a line is imported. Records hold the import, its lines and its results;
they are deleted with the user who started it, and after a week.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import IO, Any

from identity.crypto.imported_hashes import ForeignHash, parse_foreign_hash
from identity.crypto.secrets import new_id
from identity.domain.attributes import AttributeDefinition, AttributeType
from identity.domain.errors import Conflict, Denied, DomainError, Invalid, NotFound
from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.records import Record
from identity.domain.user_imports import (
    ATTRIBUTE_COLUMN_PREFIX,
    ImportDefaults,
    ImportLine,
    LineOutcome,
    UserImportState,
    format_csv_row,
    read_import_lines,
)
from identity.services.access_control import AccessControl, Principal
from identity.services.attributes import AttributeService
from identity.services.base import Service, translate_storage_errors
from identity.services.commands.groups import AddGroupMember
from identity.services.commands.user_grants import AddUserGrant
from identity.services.commands.users import ImportHumanUser
from identity.services.groups import GroupMemberService, GroupService
from identity.services.mails import MailService, Notification
from identity.services.passwords import PasswordService
from identity.services.records import RecordService
from identity.services.user_grants import UserGrantService
from identity.services.users import UserService
from identity.storage.paging import iterate_rows

USER_IMPORTS_JOB = "user imports"

_KIND, _LINES_KIND, _RESULTS_KIND = "user_import", "user_import_lines", "user_import_results"
_QUEUE_KIND, _QUEUE_KEY = "user_import_queue", "queue"
_RETENTION_PERIOD = timedelta(days=7)
#: Lines of one transaction; others write between two of them.
_BATCH_LINES = 25
_BATCH_CHARACTERS = 24 * 1024
_MAX_SHOWN = 300
_MAX_PENDING = 5
_REPORT_HEADER = ["line", "user_name", "result", "problem"]
_YES, _NO = frozenset({"yes", "y", "true", "1"}), frozenset({"", "no", "n", "false", "0"})
#: Column and member of the command where they differ.
_MEMBERS = {"preferred_language": "locale"}
_TEXT_COLUMNS = ("user_name", "given_name", "family_name", "email", "phone", "preferred_language")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserImport:
    """A file of people on its way into an organization. ``position`` counts the lines of the current pass, and
    ``outcomes`` what became, or would become, of them."""

    id: str
    organization_id: str
    started_by: str
    state: UserImportState
    line_count: int
    batch_count: int
    created_at: datetime
    next_batch: int = 0
    position: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_pending(self) -> bool:
        """True while the background job works on it."""
        return self.state in (UserImportState.CHECKING, UserImportState.RUNNING)

    @property
    def created(self) -> int:
        return self.outcomes.get(LineOutcome.CREATED, 0)

    @property
    def existing(self) -> int:
        return self.outcomes.get(LineOutcome.EXISTS, 0)

    @property
    def refused(self) -> int:
        return self.outcomes.get(LineOutcome.REFUSED, 0)


@dataclass(frozen=True, slots=True)
class LineResult:
    """What became, or would become, of a line; ``problems`` are sentences by column, which is empty for the line."""

    number: int
    user_name: str
    outcome: LineOutcome
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """The next lines of an import. ``foreign_hashes`` are to be sealed before the lines are imported."""

    user_import: UserImport
    lines: Sequence[ImportLine]
    foreign_hashes: Mapping[int, ForeignHash] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class UserImportService(Service):
    """Managers of users see the imports into their organization. Only who started one can run it, because its lines act
    with their rights."""

    _access: AccessControl
    _users: UserService
    _user_grants: UserGrantService
    _groups: GroupService
    _group_members: GroupMemberService
    _attributes: AttributeService
    _passwords: PasswordService
    _mails: MailService
    _records: RecordService
    _on_queue: Callable[[str], None]

    # --- for managers ----------------------------------------------------------------------------------------------

    def start(
        self,
        organization_id: str,
        file: IO[bytes],
        *,
        principal: Principal,
        defaults: ImportDefaults | None = None,
        is_dry_run: bool = True,
    ) -> UserImport:
        """Store the file's lines; the background job then checks them, or imports them at once unless it
        ``is_dry_run``. Raises NotFound, Denied; Invalid for ``file``; Conflict if too many imports of the caller are
        waiting."""
        starter = self._require_starter(principal)
        self._access.require(principal, "user.write", Resource.of_organization(organization_id))
        if sum(item.is_pending for item in self._list_by_starter(starter)) >= _MAX_PENDING:
            raise Conflict(gettext_lazy("{n} imports of yours are waiting. Let one finish first.", n=_MAX_PENDING))
        import_id, line_count, number = new_id(), 0, 0
        lines_read = read_import_lines(file)
        if defaults is not None:
            lines_read = (replace(line, values=defaults.apply(line.values)) for line in lines_read)
        for number, lines in enumerate(_split(lines_read), 1):
            self._add(
                _LINES_KIND, f"{import_id}/{number - 1}", {"lines": [_dump_line(line) for line in lines]}, starter
            )
            line_count += len(lines)
        if not line_count:
            raise Invalid({"file": gettext_lazy("The file has no people.")})
        user_import = UserImport(
            id=import_id,
            organization_id=organization_id,
            started_by=starter,
            state=UserImportState.CHECKING if is_dry_run else UserImportState.RUNNING,
            line_count=line_count,
            batch_count=number,
            created_at=self._now,
        )
        self._add(_KIND, import_id, _dump(user_import), starter, seal=False)
        self._queue(import_id)
        if not is_dry_run:
            self._record("user_import.started", user_import, {"lines": line_count})
        return user_import

    def get(self, import_id: str, organization_id: str) -> UserImport:
        """Raises NotFound, also for imports into other organizations."""
        found = self._find(import_id)
        if found is None or found.organization_id != organization_id:
            raise NotFound("user import", import_id)
        return found

    def list_own(self, organization_id: str, *, principal: Principal) -> tuple[UserImport, ...]:
        """The caller's imports into the organization, newest first."""
        imports = self._list_by_starter(principal.id or "")
        return tuple(item for item in imports if item.organization_id == organization_id)

    def run(self, import_id: str, organization_id: str, *, principal: Principal) -> UserImport:
        """Import the lines that were checked. Raises NotFound; Denied; Conflict unless it waits for that."""
        before = self.get(import_id, organization_id)
        self._access.require(principal, "user.write", Resource.of_organization(organization_id))
        if before.started_by != principal.id:
            raise Denied(gettext_lazy("Only the person who uploaded this file can import it."))
        if before.state is not UserImportState.CHECKED:
            raise Conflict(gettext_lazy("This import cannot be started now."))
        after = replace(before, state=UserImportState.RUNNING, next_batch=0, position=0, outcomes={})
        self._replace(after)
        self._queue(import_id)
        self._record("user_import.started", after, {"lines": after.line_count})
        return after

    def cancel(self, import_id: str, organization_id: str, *, principal: Principal) -> UserImport:
        """End an import; people that it created stay, and so does its report. Raises NotFound, Denied; Conflict if it
        has ended."""
        found = self.get(import_id, organization_id)
        self._access.require(principal, "user.write", Resource.of_organization(organization_id))
        if found.state in (UserImportState.FINISHED, UserImportState.STOPPED):
            raise Conflict(gettext_lazy("This import has ended."))
        return self._stop(found, gettext_lazy("This import was cancelled."))

    def discard(self, import_id: str, organization_id: str, *, principal: Principal) -> None:
        """Delete the import with its report; people that it created stay. Raises NotFound, Denied."""
        found = self.get(import_id, organization_id)
        self._access.require(principal, "user.write", Resource.of_organization(organization_id))
        if found.state is UserImportState.RUNNING:
            self._record("user_import.finished", found, dict(found.outcomes))
        self._delete_lines(found)
        for number in range(found.batch_count):
            self._records.delete(_RESULTS_KIND, f"{import_id}/{number}")
        self._records.delete(_KIND, import_id)

    def read_results(self, user_import: UserImport) -> Iterator[LineResult]:
        """The results so far, in the order of the file."""
        for number in range(user_import.batch_count):
            record = self._records.find(_RESULTS_KIND, f"{user_import.id}/{number}")
            if record is None:
                return
            for line, user_name, outcome, problems in record.value["results"]:
                restored = {column: _restore_message(problem) for column, problem in problems.items()}
                yield LineResult(line, user_name, LineOutcome(outcome), restored)

    def write_report(self, user_import: UserImport) -> Iterator[str]:
        """The results as CSV, in pieces."""
        yield format_csv_row(_REPORT_HEADER)
        for result in self.read_results(user_import):
            problem = " ".join(f"{column}: {text}" if column else text for column, text in result.problems.items())
            yield format_csv_row([str(result.number), result.user_name, result.outcome.value, problem])

    # --- for the background job ------------------------------------------------------------------------------------

    def list_queued(self) -> tuple[str, ...]:
        """Ids of the imports that wait for the background job, oldest first."""
        record = self._records.find(_QUEUE_KIND, _QUEUE_KEY)
        return () if record is None else tuple(record.value["ids"])

    def remove_from_queue(self, import_id: str) -> None:
        """Raises Conflict if the queue was changed concurrently."""
        record = self._records.find(_QUEUE_KIND, _QUEUE_KEY)
        if record is not None:
            self._records.replace(record, {"ids": [item for item in record.value["ids"] if item != import_id]})

    def find_next_batch(self, import_id: str) -> ImportBatch | None:
        """The next lines; None if nothing is left to do."""
        user_import = self._find(import_id)
        if user_import is None or not user_import.is_pending or user_import.next_batch >= user_import.batch_count:
            return None
        record = self._records.find(_LINES_KIND, f"{import_id}/{user_import.next_batch}")
        if record is None:
            return None
        lines = [
            ImportLine(number, values, _restore_message(problem)) for number, values, problem in record.value["lines"]
        ]
        hashes: dict[int, ForeignHash] = {}
        for line in lines if user_import.state is UserImportState.RUNNING else ():
            text, name = line.values.get("password_hash", ""), line.values.get("user_name", "")
            if not text or line.problem or self._storage.users.find_by_name(user_import.organization_id, name):
                continue
            try:
                hashes[line.number] = parse_foreign_hash(text)
            except ValueError:
                # The line is refused later, with the sentence.
                continue
        return ImportBatch(user_import, lines, hashes)

    def import_lines(
        self, user_import: UserImport, lines: Sequence[ImportLine], sealed_hashes: Mapping[int, str]
    ) -> list[LineResult]:
        """Create the people of these lines, as the starter. Raises DomainError if one of them failed after it was
        begun: abort the transaction then, and import each line in its own."""
        subject = self._storage.users.find_subject(user_import.started_by)
        organization = self._storage.organizations.find(user_import.organization_id)
        if subject is None or organization is None:
            raise NotFound("user import", user_import.id)
        principal = self._access.load_principal(subject)
        self._access.require(principal, "user.write", Resource.of_organization(organization.id))
        names = _Names(self._storage, organization.id)
        definitions = self._attributes.list_definitions(organization.id)
        return [self._import_line(organization, line, sealed_hashes, principal, names, definitions) for line in lines]

    def store_results(self, user_import: UserImport, results: Sequence[LineResult]) -> None:
        """Store what became of the next batch, and end the pass with the last one. Raises NotFound if the import was
        discarded meanwhile, Conflict if another process did the batch."""
        number = user_import.next_batch
        current = self._find(user_import.id)
        if current is None:
            raise NotFound("user import", user_import.id)
        if (current.state, current.next_batch) != (user_import.state, number):
            raise Conflict("Another process did this batch.")
        outcomes = Counter(current.outcomes) + Counter(result.outcome.value for result in results)
        key = f"{current.id}/{number}"
        self._records.delete(_RESULTS_KIND, key)
        self._add(_RESULTS_KIND, key, {"results": [_dump_result(result) for result in results]}, current.started_by)
        is_running = current.state is UserImportState.RUNNING
        if is_running:
            self._records.delete(_LINES_KIND, key)
        after = replace(
            current, next_batch=number + 1, position=current.position + len(results), outcomes=dict(outcomes)
        )
        if after.next_batch >= after.batch_count:
            after = replace(after, state=UserImportState.FINISHED if is_running else UserImportState.CHECKED)
            if is_running:
                self._record("user_import.finished", after, dict(outcomes))
        self._replace(after)

    def stop(self, import_id: str, problem: str) -> None:
        """End an import that cannot go on, because its starter lost their rights. Its lines are deleted."""
        found = self._find(import_id)
        if found is not None and found.is_pending:
            self._stop(found, problem)

    def _stop(self, found: UserImport, problem: str) -> UserImport:
        if found.state is UserImportState.RUNNING:
            self._record("user_import.finished", found, dict(found.outcomes))
        self._delete_lines(found)
        after = replace(found, state=UserImportState.STOPPED, problem=problem)
        self._replace(after)
        return after

    # --- lines -----------------------------------------------------------------------------------------------------

    def _import_line(
        self,
        organization: Organization,
        line: ImportLine,
        sealed_hashes: Mapping[int, str],
        principal: Principal,
        names: "_Names",
        definitions: Sequence[AttributeDefinition],
    ) -> LineResult:
        user_name = line.values.get("user_name", "")
        if line.problem:
            return _refused(line, {"": line.problem})
        if user_name and self._storage.users.find_by_name(organization.id, user_name) is not None:
            return LineResult(line.number, user_name, LineOutcome.EXISTS)
        try:
            grants = self._parse(line, names)
            for project_id, roles in grants.items():
                self._user_grants.require_addable(organization.id, project_id, roles, principal=principal)
            foreign = _parse_hash(line.values.get("password_hash", ""))
            groups = [names.find_group(name) for name in _split_names(line.values.get("groups", ""))]
            for group in groups:
                self._groups.require_giving(group, principal, None)
            is_invited = self._is_invited(line)
            if foreign is not None:
                self._passwords.add_imported_scheme(foreign.scheme)
            command = _decode(line, definitions)
            detail = {} if foreign is None else {"imported_password": foreign.scheme.name}
            user = self._users.create(organization.id, command, detail=detail)
        except (Invalid, Denied) as refusal:
            return _refused(line, _problems(refusal))
        # From here on nothing is expected to be refused.
        for project_id, roles in grants.items():
            command_of_grant = AddUserGrant(user_id=user.id, project_id=project_id, roles=roles)
            self._user_grants.add(command_of_grant, principal=principal)
        for group in {group.id: group for group in groups}.values():
            self._group_members.add(group.id, AddGroupMember(user_id=user.id), principal=principal)
        sealed = sealed_hashes.get(line.number)
        if sealed is not None:
            self._passwords.set_imported(user.id, sealed)
        if is_invited:
            self._invite(user.id, organization, principal)
        return LineResult(line.number, user.user_name, LineOutcome.CREATED)

    def _parse(self, line: ImportLine, names: "_Names") -> dict[str, frozenset[str]]:
        """Roles by project id. Raises Invalid."""
        grants: dict[str, frozenset[str]] = {}
        for entry in _split_roles(line.values.get("roles", "")):
            name, separator, role = entry.rpartition(":")
            if not separator or not role.strip():
                raise Invalid({"roles": gettext_lazy("Write each role as project:role, separated by |.")})
            project_id = names.find_id(name.strip())
            grants[project_id] = grants.get(project_id, frozenset()) | {role.strip()}
        return grants

    def _is_invited(self, line: ImportLine) -> bool:
        answer = line.values.get("invite", "").casefold()
        if answer not in _YES | _NO:
            raise Invalid({"invite": gettext_lazy("Write yes or no.")})
        if answer not in _YES:
            return False
        if not line.values.get("email"):
            raise Invalid({"invite": gettext_lazy("An invitation needs an email address.")})
        if not self._mails.is_enabled:
            raise Invalid({"invite": gettext_lazy("The service sends no mails, so it cannot invite anybody.")})
        return True

    def _invite(self, user_id: str, organization: Organization, principal: Principal) -> None:
        subject = self._get_subject(user_id)
        email = self._users.get(user_id).profile.email
        inviter = "" if principal.subject is None else principal.subject.user.display_name
        self._mails.queue_invitation(
            Notification(
                to=email,
                template="invitation",
                values={
                    "login_name": subject.login_name,
                    "person_name": self._users.get(user_id).display_name,
                    "organization": organization.name,
                    "inviter": inviter,
                    "link": self._users.issue_password_link(user_id, principal=principal, mailed_to=email),
                    "lifetime_seconds": str(int(self._passwords.reset_link_lifetime(user_id).total_seconds())),
                },
                languages=(self._users.get(user_id).profile.locale,),
                organization_id=organization.id,
                at=self._now.isoformat(),
            ),
            user_id=user_id,
        )

    # --- records ---------------------------------------------------------------------------------------------------

    def _require_starter(self, principal: Principal) -> str:
        if principal.id is None:
            raise Denied("An import acts as a user.")
        return principal.id

    def _list_by_starter(self, user_id: str) -> tuple[UserImport, ...]:
        return tuple(_load(record) for record in self._records.list_by_owner(_KIND, user_id=user_id)) if user_id else ()

    def _find(self, import_id: str) -> UserImport | None:
        record = self._records.find(_KIND, import_id)
        return None if record is None else _load(record)

    def _add(self, kind: str, key: str, value: Mapping[str, Any], user_id: str, *, seal: bool = True) -> None:
        with translate_storage_errors("user", user_id):
            self._records.add(kind, key, value, user_id=user_id, expires_at=self._now + _RETENTION_PERIOD, seal=seal)

    def _replace(self, user_import: UserImport) -> None:
        record = self._records.find(_KIND, user_import.id)
        if record is None:
            raise NotFound("user import", user_import.id)
        self._records.replace(record, _dump(user_import))

    def _queue(self, import_id: str) -> None:
        record = self._records.find(_QUEUE_KIND, _QUEUE_KEY)
        if record is None:
            record = self._records.add(_QUEUE_KIND, _QUEUE_KEY, {"ids": [import_id]})
        if record is not None and import_id not in record.value["ids"]:
            self._records.replace(record, {"ids": [*record.value["ids"], import_id]})
        self._on_queue(USER_IMPORTS_JOB)

    def _delete_lines(self, user_import: UserImport) -> None:
        for number in range(user_import.batch_count):
            self._records.delete(_LINES_KIND, f"{user_import.id}/{number}")

    def _record(self, event: str, user_import: UserImport, detail: Mapping[str, object]) -> None:
        self._audit.record(
            event, kind="user_import", id=user_import.id, organization_id=user_import.organization_id, detail=detail
        )


class _Names:
    """Finds projects of an organization, and those granted to it, by id or name, and its groups by name."""

    def __init__(self, storage: Any, organization_id: str) -> None:
        self._storage, self._organization_id = storage, organization_id
        self._ids: dict[str, str] | None = None
        self._groups: dict[str, Group] | None = None

    def find_group(self, name: str) -> Group:
        """Raises Invalid."""
        if self._groups is None:
            rows = iterate_rows(partial(self._storage.groups.page, self._organization_id))
            self._groups = {name_key(group.name): group for group in rows}
        group = self._groups.get(name_key(name))
        if group is None:
            raise Invalid({"groups": gettext_lazy("There is no group {name}.", name=name[:60])})
        return group

    def find_id(self, name: str) -> str:
        """Raises Invalid. An unknown id is refused later, like a project that the caller may not see."""
        if self._ids is None:
            self._ids = {}
            for project in iterate_rows(partial(self._storage.projects.page, self._organization_id)):
                key = name_key(project.name)
                # An ambiguous name names none.
                self._ids[key] = "" if key in self._ids else project.id
        found = self._ids.get(name_key(name))
        if found == "":
            raise Invalid({"roles": gettext_lazy("Several projects have the name {name}. Use the id.", name=name[:60])})
        if found is not None:
            return found
        if self._storage.projects.find(name) is None:
            raise Invalid({"roles": gettext_lazy("There is no project {name}.", name=name[:60])})
        return name


def _split(lines: Iterator[ImportLine]) -> Iterator[list[ImportLine]]:
    """Batches for one record and one transaction each."""
    batch: list[ImportLine] = []
    size = 0
    for line in lines:
        length = sum(map(len, line.values.values())) + 200
        if batch and (len(batch) >= _BATCH_LINES or size + length > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += length
    if batch:
        yield batch


def _split_roles(text: str) -> list[str]:
    """Entries separated by ``|``, or by spaces if each of them names a role. Names of projects can contain spaces."""
    if "|" not in text and all(":" in part for part in text.split()):
        return text.split()
    return _split_names(text)


def _split_names(text: str) -> list[str]:
    return [part.strip() for part in text.split("|") if part.strip()]


def _parse_hash(text: str) -> ForeignHash | None:
    try:
        return parse_foreign_hash(text) if text else None
    except ValueError as problem:
        raise Invalid({"password_hash": problem.args[0]}) from None


def _decode(line: ImportLine, definitions: Sequence[AttributeDefinition]) -> ImportHumanUser:
    types = {item.key: item.type for item in definitions}
    values: dict[str, object] = {
        _MEMBERS.get(column, column): line.values[column] for column in _TEXT_COLUMNS if column in line.values
    }
    attributes = {
        key: _attribute_value(types.get(key), text)
        for column, text in line.values.items()
        if column.startswith(ATTRIBUTE_COLUMN_PREFIX) and (key := column.removeprefix(ATTRIBUTE_COLUMN_PREFIX))
    }
    return ImportHumanUser.decode(values | ({"attributes": attributes} if attributes else {}))


def _attribute_value(kind: AttributeType | None, text: str) -> object:
    """The value that a cell means. Its definition validates it."""
    if kind is AttributeType.BOOLEAN:
        answer = text.casefold()
        return True if answer in _YES else False if answer in _NO else text
    if kind is AttributeType.NUMBER:
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
    return text


def _problems(refusal: DomainError) -> Mapping[str, str]:
    if isinstance(refusal, Invalid):
        columns = {member: column for column, member in _MEMBERS.items()}
        return {columns.get(name, name): sentence for name, sentence in refusal.fields.items()}
    return {"": refusal.args[0] if refusal.args else str(refusal)}


def refuse_line(line: ImportLine, refusal: DomainError) -> LineResult:
    """The result of a line that was refused while it was imported."""
    return _refused(line, _problems(refusal))


def _refused(line: ImportLine, problems: Mapping[str, str]) -> LineResult:
    return LineResult(line.number, line.values.get("user_name", ""), LineOutcome.REFUSED, problems)


# --- records as JSON --------------------------------------------------------------------------------------------------


def _dump(user_import: UserImport) -> dict[str, Any]:
    return {
        "id": user_import.id,
        "organization_id": user_import.organization_id,
        "started_by": user_import.started_by,
        "state": user_import.state.value,
        "line_count": user_import.line_count,
        "batch_count": user_import.batch_count,
        "next_batch": user_import.next_batch,
        "position": user_import.position,
        "outcomes": dict(user_import.outcomes),
        "problem": _dump_message(user_import.problem),
    }


def _load(record: Record) -> UserImport:
    value = dict(record.value)
    state, problem = UserImportState(value.pop("state")), _restore_message(value.pop("problem"))
    return UserImport(**value, state=state, problem=problem, created_at=record.created_at)


def _dump_line(line: ImportLine) -> list[Any]:
    return [line.number, dict(line.values), _dump_message(line.problem)]


def _dump_result(result: LineResult) -> list[Any]:
    problems = {column[:100]: _dump_message(problem) for column, problem in list(result.problems.items())[:20]}
    return [result.number, result.user_name[:_MAX_SHOWN], result.outcome.value, problems]


def _dump_message(message: str) -> list[Any]:
    """Template and values, so that the sentence can be translated later."""
    template = str(getattr(message, "template", message))
    values = {
        name: value if isinstance(value, int) else str(value)[:_MAX_SHOWN]
        for name, value in getattr(message, "values", {}).items()
    }
    return [template[:_MAX_SHOWN], values]


def _restore_message(stored: list[Any]) -> str:
    template, values = stored
    if not template:
        return ""
    try:
        return gettext_lazy(template, **values)
    except (LookupError, ValueError):
        # A plain text with braces.
        return str(template)

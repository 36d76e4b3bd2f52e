"""User imports: files of people, checked or imported in the background with the rights of who started them."""

from io import BytesIO
from typing import IO, Annotated, Literal

from pydantic import Field
from pyramid.response import Response

from identity.domain.organizations import Organization
from identity.domain.user_imports import ImportDefaults, UserImportState
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import ORGANIZATION
from identity.plugins.management.operation import CSV_MEDIA_TYPE, EmptyCommand, Operation, OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.services.commands import Command
from identity.services.user_imports import UserImport

_IMPORT = ORGANIZATION / "user-imports/{user_import}"


class UserImportRepresentation(Representation):
    """An import and its progress. `position` of `line_count` lines are done; the counts say what became of them, or
    would become of them in a dry run. `problem` is why it was stopped."""

    id: str
    organization_id: str
    started_by: str
    state: UserImportState
    line_count: int
    position: int
    created: int
    existing: int
    refused: int
    problem: str
    created_at: DateTime


class StartUserImport(Command):
    """People as CSV. `roles` and `groups` are added to those of each line, and `invite` is for lines without a column
    of this name. A dry run only checks the lines."""

    csv: Annotated[str, Field(min_length=1)]
    invite: bool = False
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    dry_run: bool = False


class UserImportOptions(Command):
    """The options of a file in the query; `roles` and `groups` are separated by `|`."""

    invite: Literal["true", "false"] = "false"
    roles: str = ""
    groups: str = ""
    dry_run: Literal["true", "false"] = "false"


def _start(
    call: OperationCall[Organization], file: IO[bytes], defaults: ImportDefaults, is_dry_run: bool
) -> UserImport:
    return call.services.user_imports.start(
        call.entity.id, file, principal=call.principal, defaults=defaults, is_dry_run=is_dry_run
    )


def _start_from_command(call: OperationCall[Organization], command: StartUserImport) -> UserImport:
    defaults = ImportDefaults(invite=command.invite, roles=command.roles, groups=command.groups)
    return _start(call, BytesIO(command.csv.encode()), defaults, command.dry_run)


def _start_from_file(call: OperationCall[Organization], file: IO[bytes]) -> UserImport:
    options = call.filters_as(UserImportOptions)
    defaults = ImportDefaults(
        invite=options.invite == "true", roles=_split(options.roles), groups=_split(options.groups)
    )
    return _start(call, file, defaults, options.dry_run == "true")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("|") if part)


def _find(call: OperationCall[Organization]) -> UserImport:
    return call.services.user_imports.get(call.child_id, call.entity.id)


def _report(call: OperationCall[Organization], _: EmptyCommand) -> Response:
    text = "".join(call.services.user_imports.write_report(_find(call)))
    response = Response(text, content_type=CSV_MEDIA_TYPE, charset="utf-8")
    response.cache_control = "no-store"
    return response


_IMPORTS = ApiResource[UserImport](
    "user_import",
    UserImportRepresentation,
    lambda call, found: UserImportRepresentation.from_value(found, state=found.state),
    permission_subject="user",
)

OPERATIONS = (
    _IMPORTS.list(
        ORGANIZATION / "user-imports",
        "Lists the imports that the caller started, newest first.",
        lambda call: call.services.user_imports.list_own(call.entity.id, principal=call.principal),
        permission="user.write",
        is_paged=False,
    ),
    _IMPORTS.create(
        "start_user_import",
        ORGANIZATION / "user-imports",
        "Imports people from CSV in the background.",
        StartUserImport,
        _start_from_command,
        file_handler=_start_from_file,
        filters=UserImportOptions,
        location="/organizations/{organization_id}/user-imports/{id}",
        description="Send the file as `text/csv` with the options in the query, or both as JSON. The columns are those "
        "of the console. The import acts with the caller's manager roles, as they are while a line is imported.",
    ),
    _IMPORTS.get(_IMPORT, "Shows an import and its progress.", _find, permission="user.write"),
    Operation(
        name="show_user_import_report",
        method="GET",
        path=(_IMPORT / "report").template,
        summary="Returns what became of each line so far, as CSV.",
        permission="user.write",
        context_factory=ORGANIZATION.context_factory,
        handler=_report,
        media_type=CSV_MEDIA_TYPE,
        is_streamed=True,
    ),
    _IMPORTS.action(
        "run_user_import",
        _IMPORT / "run",
        "Imports the lines of a dry run that is checked.",
        EmptyCommand,
        lambda call, _: call.services.user_imports.run(call.child_id, call.entity.id, principal=call.principal),
    ),
    _IMPORTS.action(
        "cancel_user_import",
        _IMPORT / "cancel",
        "Ends an import; people that it created stay, and so does its report.",
        EmptyCommand,
        lambda call, _: call.services.user_imports.cancel(call.child_id, call.entity.id, principal=call.principal),
    ),
    _IMPORTS.delete(
        "delete_user_import",
        _IMPORT,
        "Deletes an import with its report; people that it created stay.",
        lambda call: call.services.user_imports.discard(call.child_id, call.entity.id, principal=call.principal),
        permission="user.write",
    ),
)

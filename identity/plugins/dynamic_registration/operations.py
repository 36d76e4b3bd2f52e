"""Operations of the management API for the initial access tokens of a project."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from identity.api.entities import Project
from identity.api.services import RecordNamespace
from identity.plugins.dynamic_registration.client_records import (
    MAX_LIFETIME_DAYS,
    MAX_USES,
    ClientRecords,
    InitialAccessToken,
)
from identity.plugins.management.api import (
    Command,
    EmptyCommand,
    Operation,
    OperationCall,
    OperationGroup,
    Representation,
    ResultPage,
    project_context,
)

_PATH = "/projects/{project}/initial-access-tokens"


class AddInitialAccessToken(Command):
    """Let clients register in a project, so many times, for so many days."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    uses: Annotated[int, Field(ge=1, le=MAX_USES)] = 1
    days: Annotated[int, Field(ge=1, le=MAX_LIFETIME_DAYS)] = 7


class InitialAccessTokenRepresentation(Representation):
    """An initial access token: how often it can be used, and was."""

    id: str
    name: str
    uses: int
    used: int
    created_at: AwareDatetime
    expires_at: AwareDatetime


class AddedInitialAccessToken(InitialAccessTokenRepresentation):
    """With the token, which is never shown again."""

    token: str


def build_operations(namespace: RecordNamespace) -> OperationGroup:
    """List, add and revoke."""

    def members(token: InitialAccessToken, records: ClientRecords) -> dict[str, object]:
        names = ("id", "name", "uses", "created_at", "expires_at")
        return {**{name: getattr(token, name) for name in names}, "used": records.count_uses(token)}

    def list_tokens(call: OperationCall[Project], _: object) -> ResultPage[InitialAccessTokenRepresentation]:
        records = ClientRecords(call.services, namespace)
        tokens = records.list_tokens(call.entity.id)
        rows = (InitialAccessTokenRepresentation.model_validate(members(token, records)) for token in tokens)
        return ResultPage(tuple(rows))

    def add(call: OperationCall[Project], command: AddInitialAccessToken) -> AddedInitialAccessToken:
        records = ClientRecords(call.services, namespace)
        token, text = records.add_token(call.entity, name=command.name, uses=command.uses, days=command.days)
        return AddedInitialAccessToken.model_validate({**members(token, records), "token": text})

    def remove(call: OperationCall[Project], _: object) -> None:
        ClientRecords(call.services, namespace).remove_token(call.entity, call.child_id)

    return OperationGroup(
        "Initial access tokens",
        "Tokens with which clients register in a project (RFC 7591).",
        (
            Operation(
                name="list_initial_access_tokens",
                method="GET",
                path=_PATH,
                summary="Lists the unexpired initial access tokens of a project, newest first.",
                permission="application.read",
                context_factory=project_context,
                handler=list_tokens,
                representation=InitialAccessTokenRepresentation,
                returns_list=True,
            ),
            Operation(
                name="add_initial_access_token",
                method="POST",
                path=_PATH,
                summary="Adds an initial access token to a project.",
                permission="application.write",
                context_factory=project_context,
                handler=add,
                command=AddInitialAccessToken,
                representation=AddedInitialAccessToken,
            ),
            Operation(
                name="remove_initial_access_token",
                method="DELETE",
                path=_PATH + "/{token}",
                summary="Revokes an initial access token; clients that used it stay.",
                permission="application.write",
                context_factory=project_context,
                handler=remove,
                command=EmptyCommand,
            ),
        ),
    )

"""Service users: programs' accounts."""

from typing import Any, Literal

from identity.domain.organizations import Organization
from identity.domain.users import Agent, ServiceUser
from identity.plugins.management.access_revocation import (
    REVOCATION_DESCRIPTION,
    RevokedAccessRepresentation,
    represent_revocation,
)
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import ORGANIZATION, SERVICE_USER, USER
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import DateTime, Representation, representation_fields
from identity.services.commands import Command
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import ResultPage
from identity.storage.stores.users import SERVICE_USER_SORT_KEYS, UserKind


@representation_fields(ServiceUser)
class ServiceUserRepresentation(Representation):
    """A program's account. It gets tokens with a key, a secret or a personal access token. An agent acts for its owner,
    the person `owner_user_id`; with `may_manage` it can use this API. From `stopped_at` on it gets no tokens, until its
    owner confirms it."""

    owner_user_id: str | None
    may_manage: bool
    stopped_at: DateTime | None


def _represent(call: OperationCall[Any], user: ServiceUser) -> ServiceUserRepresentation:
    agent = user if isinstance(user, Agent) else None
    return ServiceUserRepresentation.from_value(
        user,
        owner_user_id=None if agent is None else agent.owner_user_id,
        may_manage=agent is not None and agent.may_manage,
        stopped_at=None if agent is None else agent.stopped_at,
    )


class StoppedAgentsRepresentation(Representation):
    """How many agents stopped."""

    agents: int


class FilterServiceUsers(Command):
    """Filters of service users."""

    kind: Literal["service", "agent"] | None = None
    owner_user_id: str = ""


def _list(call: OperationCall[Organization]) -> ResultPage[ServiceUser]:
    filters = call.filters_as(FilterServiceUsers)
    return call.services.service_users.page(
        call.entity.id,
        call.page,
        kind=None if filters.kind is None else UserKind(filters.kind),
        owner_user_id=filters.owner_user_id,
    )


_SERVICE_USERS = EntityApiResource(
    "service_user",
    ServiceUserRepresentation,
    _represent,
    at=SERVICE_USER,
    change_command=ChangeServiceUser,
    service=lambda services: services.service_users,
)

OPERATIONS = (
    _SERVICE_USERS.list(
        ORGANIZATION / "service-users",
        "Lists the service users of an organization, by user name by default.",
        _list,
        orders=SERVICE_USER_SORT_KEYS,
        filters=FilterServiceUsers,
        description="`kind` is `agent` for agents alone, `service` for all others. `owner_user_id` is the person for "
        "whom agents act.",
    ),
    _SERVICE_USERS.list(
        USER / "agents",
        "Lists the agents of a person, oldest first. Only the person creates agents and their keys.",
        lambda call: call.services.agents.list_by_owner(call.entity.id),
        name="list_agents",
        is_paged=False,
    ),
    _SERVICE_USERS.action(
        "stop_agents",
        USER / "stop-agents",
        "Stops all agents of a person at once, until the person confirms them.",
        EmptyCommand,
        lambda call, _: StoppedAgentsRepresentation(
            agents=call.services.agents.stop_all_of(call.entity.id, principal=call.principal)
        ),
        permission="user.write",
        representation=StoppedAgentsRepresentation,
    ),
    _SERVICE_USERS.create(
        "create_service_user",
        ORGANIZATION / "service-users",
        "Creates a service user. Give it a key next.",
        CreateServiceUser,
        lambda call, command: call.services.service_users.create(call.entity.id, command),
        location="/service-users/{id}",
    ),
    _SERVICE_USERS.show("Shows a service user."),
    _SERVICE_USERS.update("Changes a service user."),
    _SERVICE_USERS.deactivate(
        "Deactivates a service user: its keys, secrets and tokens stop working until it is reactivated."
    ),
    _SERVICE_USERS.reactivate("Reactivates a service user."),
    _SERVICE_USERS.action(
        "revoke_service_user_access",
        SERVICE_USER / "revoke-access",
        "Ends all tokens of a service user at once.",
        EmptyCommand,
        lambda call, _: represent_revocation(
            call.services.access_revocations.revoke_service_user(call.entity.id, principal=call.principal)
        ),
        description=REVOCATION_DESCRIPTION,
        representation=RevokedAccessRepresentation,
    ),
    _SERVICE_USERS.remove("Deletes a service user with its keys, secrets, roles, grants and tokens."),
)

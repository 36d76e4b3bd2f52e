"""Service users: programs' accounts."""

from identity.domain.organizations import Organization
from identity.domain.users import ServiceUser
from identity.plugins.management.access_revocation import (
    REVOCATION_DESCRIPTION,
    RevokedAccessRepresentation,
    represent_revocation,
)
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import ORGANIZATION, SERVICE_USER
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import ResultPage
from identity.storage.stores.users import SERVICE_USER_SORT_KEYS, UserKind


@representation_fields(ServiceUser)
class ServiceUserRepresentation(Representation):
    """A program's account. It gets tokens with a key, a secret or a personal access token."""


def _list(call: OperationCall[Organization]) -> ResultPage[ServiceUser]:
    page = call.services.storage.users.page(call.entity.id, UserKind.SERVICE, call.page)
    return page.with_items(user for user in page if isinstance(user, ServiceUser))


_SERVICE_USERS = EntityApiResource(
    "service_user",
    ServiceUserRepresentation,
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

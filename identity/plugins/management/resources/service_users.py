"""Service users: programs' accounts."""

from identity.domain import users
from identity.http import targets
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.stores.users import SERVICE_USER_ORDERS, UserKind


@showing(users.ServiceUser)
class ServiceUser(Representation):
    """A program's account. It gets tokens with a key, a secret or a personal access token."""


_SERVICE_USERS = Resource(
    kind="service_user",
    answers=ServiceUser,
    path="/service-users/{service_user}",
    list_path="/organizations/{organization}/service-users",
    target=targets.service_user,
    owner=targets.organization,
)

OPERATIONS = (
    _SERVICE_USERS.lists(
        "Lists the service users of an organization, by user name unless said otherwise.",
        lambda call: call.services.storage.users.page(call.value.id, UserKind.SERVICE, call.page),
        orders=SERVICE_USER_ORDERS,
    ),
    _SERVICE_USERS.makes(
        "create",
        "Creates a service user. Give it a key next.",
        CreateServiceUser,
        lambda call: call.services.service_users.create(call.value.id, call.command),
    ),
    _SERVICE_USERS.shows("Shows a service user."),
    _SERVICE_USERS.changes("Changes a service user.", ChangeServiceUser),
    _SERVICE_USERS.deactivates(
        "Deactivates a service user: its keys, secrets and tokens stop working until it is reactivated."
    ),
    _SERVICE_USERS.reactivates("Reactivates a service user."),
    _SERVICE_USERS.removes("Deletes a service user with its keys, secrets, roles, grants and tokens."),
)

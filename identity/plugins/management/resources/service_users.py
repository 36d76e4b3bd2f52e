"""Service users: programs' accounts."""

from identity.domain import users
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.stores.users import SERVICE_USER_SORT_KEYS, UserKind


@representation_fields(users.ServiceUser)
class ServiceUserRepresentation(Representation):
    """A program's account. It gets tokens with a key, a secret or a personal access token."""


_SERVICE_USERS = ApiResource(
    kind="service_user",
    representation=ServiceUserRepresentation,
    path="/service-users/{service_user}",
    list_path="/organizations/{organization}/service-users",
    context_factory=route_contexts.service_user_context,
    parent_context_factory=route_contexts.organization_context,
)

OPERATIONS = (
    _SERVICE_USERS.list_operation(
        "Lists the service users of an organization, by user name unless said otherwise.",
        lambda call: call.services.storage.users.page(call.entity.id, UserKind.SERVICE, call.page),
        orders=SERVICE_USER_SORT_KEYS,
    ),
    _SERVICE_USERS.create_operation(
        "create",
        "Creates a service user. Give it a key next.",
        CreateServiceUser,
        lambda call: call.services.service_users.create(call.entity.id, call.command),
    ),
    _SERVICE_USERS.get_operation("Shows a service user."),
    _SERVICE_USERS.update_operation("Changes a service user.", ChangeServiceUser),
    _SERVICE_USERS.deactivate_operation(
        "Deactivates a service user: its keys, secrets and tokens stop working until it is reactivated."
    ),
    _SERVICE_USERS.reactivate_operation("Reactivates a service user."),
    _SERVICE_USERS.delete_operation("Deletes a service user with its keys, secrets, roles, grants and tokens."),
)

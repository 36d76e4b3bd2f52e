"""Service users: programs' accounts."""

from typing import Any

from identity.domain.users import TokenFormat
from identity.http import targets
from identity.plugins.management.operation import PAGED, SEARCH, STATES, Call, Operation, shown, sorted_by
from identity.plugins.management.representation import State, Versioned
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.storage.paging import Page
from identity.storage.stores.users import SERVICE_USER_ORDERS, UserKind


class ServiceUser(Versioned):
    """A program's account. It gets tokens with a key, a secret or a personal access token."""

    organization_id: str
    user_name: str
    display_name: str
    description: str
    access_token_type: TokenFormat
    state: State


def _list(call: Call) -> Page[ServiceUser]:
    return shown(ServiceUser, call.services.storage.users.page(call.value.id, UserKind.SERVICE, call.page))


def _create(call: Call) -> ServiceUser:
    return ServiceUser.of(call.services.service_users.create(call.value.id, call.command))


def _show(call: Call) -> ServiceUser:
    return ServiceUser.of(call.value)


def _change(call: Call) -> ServiceUser:
    changed = call.services.service_users.change(
        call.value.id, call.command, by=call.by, expected_version=call.expected_version
    )
    return ServiceUser.of(changed)


def _deactivate(call: Call) -> ServiceUser:
    return ServiceUser.of(call.services.service_users.deactivate(call.value.id, by=call.by))


def _reactivate(call: Call) -> ServiceUser:
    return ServiceUser.of(call.services.service_users.reactivate(call.value.id, by=call.by))


def _delete(call: Call) -> None:
    call.services.service_users.remove(call.value.id, by=call.by)


_LIST = "/organizations/{organization}/service-users"
_PATH = "/service-users/{service_user}"
_WRITE: dict[str, Any] = {"permission": "service_user.write", "target": targets.service_user}

OPERATIONS = (
    Operation(
        name="list_service_users",
        method="GET",
        path=_LIST,
        summary="Lists the service users of an organization, by user name unless said otherwise.",
        permission="service_user.read",
        target=targets.organization,
        handle=_list,
        answers=ServiceUser,
        many=True,
        parameters=(*PAGED, SEARCH, STATES, sorted_by(SERVICE_USER_ORDERS)),
    ),
    Operation(
        name="create_service_user",
        method="POST",
        path=_LIST,
        summary="Creates a service user. Give it a key next.",
        permission="service_user.write",
        target=targets.organization,
        handle=_create,
        command=CreateServiceUser,
        answers=ServiceUser,
        location="/service-users/{id}",
    ),
    Operation(
        name="show_service_user",
        method="GET",
        path=_PATH,
        summary="Shows a service user.",
        permission="service_user.read",
        target=targets.service_user,
        handle=_show,
        answers=ServiceUser,
    ),
    Operation(
        name="change_service_user",
        method="PATCH",
        path=_PATH,
        summary="Changes a service user.",
        handle=_change,
        command=ChangeServiceUser,
        answers=ServiceUser,
        **_WRITE,
    ),
    Operation(
        name="deactivate_service_user",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates a service user: its keys, secrets and tokens stop working until it is reactivated.",
        handle=_deactivate,
        answers=ServiceUser,
        **_WRITE,
    ),
    Operation(
        name="reactivate_service_user",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates a service user.",
        handle=_reactivate,
        answers=ServiceUser,
        **_WRITE,
    ),
    Operation(
        name="delete_service_user",
        method="DELETE",
        path=_PATH,
        summary="Deletes a service user with its keys, secrets, roles, grants and tokens.",
        permission="service_user.delete",
        target=targets.service_user,
        handle=_delete,
    ),
)

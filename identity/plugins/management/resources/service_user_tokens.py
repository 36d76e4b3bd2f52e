"""Personal access tokens: tokens that programs use as they are."""

from typing import Any

from identity.domain.errors import Invalid, NotFound
from identity.domain.words import say
from identity.http import targets
from identity.plugins.management.operation import PAGED, Call, Operation, shown
from identity.plugins.management.representation import Expiration, Moment, Representation
from identity.provider.errors import InvalidScope
from identity.provider.scope import granted_alone
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.storage.paging import Page


class PersonalAccessToken(Representation):
    """A personal access token, without the token itself."""

    id: str
    name: str
    scope: tuple[str, ...]
    created_at: Moment
    expires_at: Expiration
    last_used_at: Moment | None


class NewPersonalAccessToken(PersonalAccessToken):
    """A new personal access token, which is shown this once."""

    token: str


def _list(call: Call) -> Page[PersonalAccessToken]:
    return shown(PersonalAccessToken, call.services.service_users.tokens(call.value.id, call.page))


def _add(call: Call) -> NewPersonalAccessToken:
    command = call.command.model_copy(update={"scope": _granted(call)})
    added, text = call.services.service_users.add_token(call.value.id, command, by=call.by)
    return NewPersonalAccessToken.of(added, token=text)


def _granted(call: Call) -> str:
    """The scope, as the service user would be granted it with its key: words can say where somebody belongs.

    Raises Invalid.
    """
    asked, subject = tuple(call.command.scope.split()), call.services.storage.users.find_subject(call.value.id)
    if not asked or subject is None:
        return ""
    try:
        words = granted_alone(subject, asked, call.context())
    except InvalidScope as refused:
        raise Invalid({"scope": refused.description}) from None
    if not words:
        raise Invalid({"scope": say("There is no such scope.")})
    return " ".join(words)


def _show(call: Call) -> PersonalAccessToken:
    identifier = call.names["token"]
    found = call.services.storage.personal_access_tokens.find(identifier, call.value.id)
    if found is None:
        raise NotFound("personal access token", identifier)
    return PersonalAccessToken.of(found)


def _remove(call: Call) -> None:
    call.services.service_users.remove_token(call.value.id, call.names["token"], by=call.by)


_LIST = "/service-users/{service_user}/personal-access-tokens"
_PATH = f"{_LIST}/{{token}}"
_READ: dict[str, Any] = {"permission": "service_user.read", "target": targets.service_user}
_WRITE: dict[str, Any] = {"permission": "service_user.write", "target": targets.service_user}

OPERATIONS = (
    Operation(
        name="list_personal_access_tokens",
        method="GET",
        path=_LIST,
        summary="Lists the personal access tokens of a service user, newest first, without the tokens themselves.",
        handle=_list,
        answers=PersonalAccessToken,
        many=True,
        parameters=PAGED,
        **_READ,
    ),
    Operation(
        name="add_personal_access_token",
        method="POST",
        path=_LIST,
        summary="Adds a personal access token to a service user; the answer carries it, once.",
        description="It is meant for this service, and for the projects named in `project_ids`. Without `expires_at` it"
        " works for a year, or what the operator set; `never` has to be said.",
        handle=_add,
        command=AddPersonalAccessToken,
        answers=NewPersonalAccessToken,
        location="/service-users/{service_user}/personal-access-tokens/{id}",
        **_WRITE,
    ),
    Operation(
        name="show_personal_access_token",
        method="GET",
        path=_PATH,
        summary="Shows what a personal access token is for, when it was last used, and when it expires.",
        handle=_show,
        answers=PersonalAccessToken,
        **_READ,
    ),
    Operation(
        name="remove_personal_access_token",
        method="DELETE",
        path=_PATH,
        summary="Ends a personal access token at once.",
        handle=_remove,
        **_WRITE,
    ),
)

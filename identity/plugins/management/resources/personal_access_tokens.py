"""Personal access tokens: tokens that programs use as they are."""

from typing import Any

from identity.domain import personal_access_tokens
from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Expiration, Representation, representation_fields
from identity.provider.errors import InvalidScope
from identity.provider.scope import resolve_scopes_without_client
from identity.services.commands.service_users import AddPersonalAccessToken


@representation_fields(personal_access_tokens.PersonalAccessToken, without={"user_id"})
class PersonalAccessTokenRepresentation(Representation):
    """A personal access token, without the token itself."""

    id: str
    expires_at: Expiration


class NewPersonalAccessTokenRepresentation(PersonalAccessTokenRepresentation):
    """A new personal access token, which is shown this once."""

    token: str


def _create_token(call: OperationCall) -> NewPersonalAccessTokenRepresentation:
    command = call.command.model_copy(update={"scope": _grant_scope(call)})
    added, text = call.services.service_users.add_personal_access_token(
        call.entity.id, command, principal=call.principal
    )
    return NewPersonalAccessTokenRepresentation.from_value(added, token=text)


def _grant_scope(call: OperationCall) -> str:
    """The scope that the service user would be granted with its key; scopes may name its organization. Raises
    Invalid.
    """
    requested, subject = tuple(call.command.scope.split()), call.services.storage.users.find_subject(call.entity.id)
    if not requested or subject is None:
        return ""
    try:
        scopes = resolve_scopes_without_client(subject, requested, call.context())
    except InvalidScope as refused:
        raise Invalid({"scope": refused.description}) from None
    if not scopes:
        raise Invalid({"scope": gettext_lazy("There is no such scope.")})
    return " ".join(scopes)


def _find_token(call: OperationCall) -> Any:
    identifier = _TOKENS.child_id(call)
    personal_access_token = call.services.storage.credentials.find(
        personal_access_tokens.PersonalAccessToken, identifier, call.entity.id
    )
    if personal_access_token is None:
        raise NotFound("personal access token", identifier)
    return personal_access_token


_TOKENS = ApiResource(
    kind="personal_access_token",
    representation=PersonalAccessTokenRepresentation,
    path="/service-users/{service_user}/personal-access-tokens/{token}",
    context_factory=route_contexts.service_user_context,
    permission_subject="service_user",
    service="service_users",
    delete_permission="write",
)

OPERATIONS = (
    _TOKENS.list_operation(
        "Lists the personal access tokens of a service user, newest first, without the tokens themselves.",
        lambda call: call.services.service_users.page_personal_access_tokens(call.entity.id, call.page),
        states=False,
    ),
    _TOKENS.create_operation(
        "add",
        "Adds a personal access token to a service user; the answer carries it, once.",
        AddPersonalAccessToken,
        _create_token,
        description="It is meant for this service, and for the projects named in `project_ids`. Without `expires_at` it"
        " works for a year, or what the operator set; `never` has to be said.",
        representation=NewPersonalAccessTokenRepresentation,
    ),
    _TOKENS.get_operation(
        "Shows what a personal access token is for, when it was last used, and when it expires.", _find_token
    ),
    _TOKENS.delete_operation(
        "Ends a personal access token at once.",
        _TOKENS.child_handler("remove_personal_access_token"),
        verb="remove",
    ),
)

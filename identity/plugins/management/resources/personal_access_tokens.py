"""Personal access tokens: tokens that programs send as they are."""

from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.users import ServiceUser
from identity.http.endpoint_routes import request_context
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import SERVICE_USER
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Expiration, Representation, representation_fields
from identity.provider.errors import InvalidScope
from identity.provider.scope import resolve_scopes_without_client
from identity.services.commands.service_users import AddPersonalAccessToken


@representation_fields(PersonalAccessToken, without={"user_id"})
class PersonalAccessTokenRepresentation(Representation):
    """A personal access token, without the token itself."""

    id: str
    expires_at: Expiration


class NewPersonalAccessTokenRepresentation(PersonalAccessTokenRepresentation):
    """A new personal access token, which is shown only once."""

    token: str


def _create_token(
    call: OperationCall[ServiceUser], command: AddPersonalAccessToken
) -> NewPersonalAccessTokenRepresentation:
    command = command.model_copy(update={"scope": _grant_scope(call, command.scope)})
    added, text = call.services.service_users.add_personal_access_token(
        call.entity.id, command, principal=call.principal
    )
    return NewPersonalAccessTokenRepresentation.from_value(added, token=text)


def _grant_scope(call: OperationCall[ServiceUser], scope: str) -> str:
    """The scope that the service user would be granted with its key; scopes may name its organization. Raises
    Invalid.
    """
    requested, subject = tuple(scope.split()), call.services.storage.users.find_subject(call.entity.id)
    if not requested or subject is None:
        return ""
    try:
        scopes = resolve_scopes_without_client(subject, requested, request_context(call.request))
    except InvalidScope as refused:
        raise Invalid({"scope": refused.description}) from None
    if not scopes:
        raise Invalid({"scope": gettext_lazy("There is no such scope.")})
    return " ".join(scopes)


def _find_token(call: OperationCall[ServiceUser]) -> PersonalAccessToken:
    found = call.services.storage.credentials.find(PersonalAccessToken, call.child_id, call.entity.id)
    if found is None:
        raise NotFound("personal access token", call.child_id)
    return found


_TOKENS = ApiResource[PersonalAccessToken](
    "personal_access_token", PersonalAccessTokenRepresentation, permission_subject="service_user"
)
_LIST = SERVICE_USER / "personal-access-tokens"
_TOKEN = _LIST / "{token}"

OPERATIONS = (
    _TOKENS.list(
        _LIST,
        "Lists the personal access tokens of a service user, newest first, without the tokens themselves.",
        lambda call: call.services.service_users.page_personal_access_tokens(call.entity.id, call.page),
        has_states=False,
    ),
    _TOKENS.create(
        "add_personal_access_token",
        _LIST,
        "Adds a personal access token to a service user; the response contains it, once.",
        AddPersonalAccessToken,
        _create_token,
        description="Its audience is this service and the projects in `project_ids`. Without `expires_at` "
        "it is valid for a year, or as long as the operator set; `never` must be explicit.",
        representation=NewPersonalAccessTokenRepresentation,
    ),
    _TOKENS.get(
        _TOKEN, "Shows what a personal access token is for, when it was last used, and when it expires.", _find_token
    ),
    _TOKENS.delete(
        "remove_personal_access_token",
        _TOKEN,
        "Revokes a personal access token.",
        lambda call: call.services.service_users.remove_personal_access_token(
            call.entity.id, call.child_id, principal=call.principal
        ),
        permission="service_user.write",
    ),
)

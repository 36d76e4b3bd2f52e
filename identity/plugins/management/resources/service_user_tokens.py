"""Personal access tokens: tokens that programs use as they are."""

from typing import Any

from identity.domain import personal_access_tokens
from identity.domain.errors import Invalid, NotFound
from identity.domain.words import say
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Expiration, Representation, showing
from identity.plugins.management.resource import Resource
from identity.provider.errors import InvalidScope
from identity.provider.scope import granted_alone
from identity.services.commands.service_users import AddPersonalAccessToken


@showing(personal_access_tokens.PersonalAccessToken, without={"user_id"})
class PersonalAccessToken(Representation):
    """A personal access token, without the token itself."""

    id: str
    expires_at: Expiration


class NewPersonalAccessToken(PersonalAccessToken):
    """A new personal access token, which is shown this once."""

    token: str


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


def _find(call: Call) -> Any:
    identifier = _TOKENS.part(call)
    found = call.services.storage.credentials.find(
        personal_access_tokens.PersonalAccessToken, identifier, call.value.id
    )
    if found is None:
        raise NotFound("personal access token", identifier)
    return found


_TOKENS = Resource(
    kind="personal_access_token",
    answers=PersonalAccessToken,
    path="/service-users/{service_user}/personal-access-tokens/{token}",
    target=targets.service_user,
    of="service_user",
    use_cases="service_users",
    delete="write",
)

OPERATIONS = (
    _TOKENS.lists(
        "Lists the personal access tokens of a service user, newest first, without the tokens themselves.",
        lambda call: call.services.service_users.tokens(call.value.id, call.page),
        states=False,
    ),
    _TOKENS.makes(
        "add",
        "Adds a personal access token to a service user; the answer carries it, once.",
        AddPersonalAccessToken,
        _add,
        description="It is meant for this service, and for the projects named in `project_ids`. Without `expires_at` it"
        " works for a year, or what the operator set; `never` has to be said.",
        answers=NewPersonalAccessToken,
    ),
    _TOKENS.shows("Shows what a personal access token is for, when it was last used, and when it expires.", _find),
    _TOKENS.removes(
        "Ends a personal access token at once.",
        _TOKENS.of_part("remove_token"),
        verb="remove",
    ),
)

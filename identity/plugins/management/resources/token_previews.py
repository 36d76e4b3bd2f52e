"""Token preview: which tokens and claims would come out for a user and an application, and why."""

from typing import Any

from identity.domain.users import TokenFormat
from identity.http import targets
from identity.http.token_previews import preview_of
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource
from identity.provider import preview
from identity.provider.reasons import Carrier
from identity.provider.scope import OPENID
from identity.services.commands import Command


class AskForTokens(Command):
    """Whose tokens: a user by id or login name, the client id of an application, or both."""

    user_id: str = ""
    application_id: str = ""
    scope: str = OPENID
    response_type: str = "code"


class Claim(Representation):
    """A claim with the reason for which it is there; `value` is null where it is a new one each time."""

    name: str
    value: Any
    why: str


class Carried(Representation):
    """A token, or an answer about the access token, with its claims."""

    carrier: Carrier
    format: TokenFormat | None
    expires_at: Moment | None
    claims: list[Claim]


class LeftOut(Representation):
    """What was asked for or could be expected, and why it is not there."""

    what: str
    why: str


class Refused(Representation):
    """The error that the client would be told."""

    error: str
    error_description: str


class Way(Representation):
    """What one way brings: a grant type, or (null) a sign-in by an authorization request."""

    grant_type: str | None
    scope: list[str]
    audience: list[str]
    carried: list[Carried]
    left_out: list[LeftOut]
    refusal: Refused | None


class TokenPreview(Representation):
    """What would come out, way by way. Nothing is issued or recorded. `untold` are grant types that do not tell."""

    moves = True

    ways: list[Way]
    untold: list[str]


def _show(call: Call) -> TokenPreview:
    asked: AskForTokens = call.filters
    found = preview_of(
        call.context(),
        call.by,
        user=asked.user_id,
        application=asked.application_id,
        scope=asked.scope,
        response_type=asked.response_type,
    )
    return TokenPreview(ways=[_way(one) for one in found.ways], untold=list(found.untold))


def _way(way: preview.Way) -> Way:
    refusal = way.refusal
    return Way(
        grant_type=way.grant_type,
        scope=list(way.granted),
        audience=list(way.audience),
        carried=[Carried.of(one, claims=[Claim.of(claim) for claim in one.claims]) for one in way.carried],
        left_out=[LeftOut.of(one) for one in way.left_out],
        refusal=None if refusal is None else Refused(error=refusal.error, error_description=refusal.description or ""),
    )


_PREVIEWS = Resource(
    kind="token_preview",
    answers=TokenPreview,
    path="/organizations/{organization}/token-preview",
    target=targets.organization,
    of="user",
)

OPERATIONS = (
    _PREVIEWS.shows(
        "Tells which tokens and claims a user and an application would get, and why.",
        _show,
        name="preview_tokens",
        description="A person signs in to the application; then each grant type tells what it would bring: after that "
        "sign-in, for a service user, or for an application alone. Nothing is issued.",
        filters=AskForTokens,
    ),
)

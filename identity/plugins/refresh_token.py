"""Grant refresh_token, with rotation (service description §4.3; RFC 6749 §6; RFC 9700 §4.14).

A token request::

    POST /oauth/v2/token
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    grant_type=refresh_token&refresh_token=…&scope=openid
"""

from collections.abc import Iterable
from dataclasses import dataclass

from identity import hookimpl
from identity.domain.applications import Client
from identity.domain.tokens import AccessToken, PresentedRefreshToken, RefreshToken
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant, InvalidScope
from identity.provider.grant import Authorization, ClientRule, Grant, Refreshing, Supposed, TokenRequest
from identity.provider.one_time import OneTime, told
from identity.provider.scope import check_words


@dataclass(frozen=True, slots=True)
class RefreshInHand(OneTime):
    """A refresh token that was judged good: exchanged for its successor together with what it brings."""

    token: RefreshToken
    client: Client

    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Rotate. Raises InvalidGrant; a replay revokes the family."""
        if refresh is None:
            raise ValueError("a refresh brings a refresh token")
        with told():
            context.services.tokens.rotate(self.token, self.client, access=access, successor=refresh)


class RefreshTokenGrant(Grant):
    """Every use brings a new refresh token. One that was used before has been stolen: the family ends."""

    grant_type = "refresh_token"
    parameters = frozenset({"refresh_token"})
    client = ClientRule.REQUIRED
    takes_refresh_tokens = True

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """Whom the token is about. Raises InvalidGrant, InvalidScope, InvalidRequest."""
        client = request.client
        if client is None:
            raise ValueError("the token endpoint authenticates the client first")
        presented = context.services.tokens.find_refresh(request.parameters.required("refresh_token"))
        if presented is None or presented.token.client_id != client.id:
            raise InvalidGrant("the refresh token is unknown, or was issued to another client")
        token = presented.token
        if token.rotated_at is not None and not context.services.tokens.within_grace(token):
            with told():
                raise context.services.tokens.replayed(token.family_id, client, "refresh_token")
        problem = _problem(presented, context)
        if problem is not None:
            raise InvalidGrant(problem)
        return _authorization(presented, client, _asked(request, token))

    def preview(self, supposed: Supposed, context: Context) -> Authorization | None:
        """What the first refresh token brings, if a way before brought one."""
        if supposed.refresh_token is None or supposed.client is None:
            return None
        return _authorization(supposed.refresh_token, supposed.client, supposed.refresh_token.token.scope)


def _authorization(presented: PresentedRefreshToken, client: Client, asked: tuple[str, ...]) -> Authorization:
    token = presented.token
    return Authorization(
        subject=presented.subject,
        client=client,
        client_id=client.id,
        asked=asked,
        authenticated_at=token.authenticated_at,
        # What outlives the session is not tied to it any more.
        session_id=None if presented.session_ended else token.session_id,
        family_id=token.family_id,
        refreshing=Refreshing(ends_at=token.ends_at, scope=token.scope, predecessor_id=token.id),
        one_time=RefreshInHand(token, client),
        methods=presented.family.methods,
        acr=presented.family.acr,
        userinfo_claims=presented.family.userinfo_claims,
        id_token_claims=presented.family.id_token_claims,
    )


def _problem(presented: PresentedRefreshToken, context: Context) -> str | None:
    token = presented.token
    if presented.family.revoked_at is not None or token.revoked_at is not None:
        return "the refresh token is revoked"
    if context.now >= min(token.expires_at, token.ends_at):
        return "the refresh token has expired"
    if presented.session_ended and not presented.family.offline:
        return "the session has ended"
    if presented.subject is None or not presented.subject.active:
        return "the user is deactivated"
    return None


def _asked(request: TokenRequest, token: RefreshToken) -> tuple[str, ...]:
    """A subset of what was granted at first; all of it where nothing is asked. Raises InvalidScope."""
    words = request.parameters.words("scope")
    if not words:
        return token.scope
    check_words(words)
    wider = [word for word in words if word not in token.scope]
    if wider:
        raise InvalidScope(f"{wider[0]} was not granted at first")
    return words


class Plugin:
    """Offers the refresh grant."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_grant_types(self) -> Iterable[Grant]:
        """The refresh grant."""
        return [RefreshTokenGrant()]

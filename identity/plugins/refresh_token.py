"""Grant refresh_token, with rotation (service description §4.3; RFC 6749 §6; RFC 9700 §4.14).

A token request::

    POST /oauth/v2/token
    Authorization: Basic …
    Content-Type: application/x-www-form-urlencoded

    grant_type=refresh_token&refresh_token=…&scope=openid
"""

from collections.abc import Iterable
from dataclasses import dataclass

from identity.api.endpoints import Context, InvalidGrant, InvalidScope
from identity.api.entities import ApplicationClient
from identity.api.grants import (
    AccessToken,
    Authorization,
    ClientRequirement,
    GrantType,
    PresentedRefreshToken,
    PreviewInput,
    RefreshToken,
    RefreshTokenTerms,
    Scope,
    SingleUseCredential,
    TokenRequest,
)
from identity.api.plugins import hookimpl


@dataclass(frozen=True, slots=True)
class RefreshTokenCredential(SingleUseCredential):
    """A valid refresh token, replaced by its successor when its tokens are stored."""

    token: RefreshToken
    client: ApplicationClient

    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Rotate. Raises InvalidGrant; a replay revokes the family."""
        if refresh is None:
            raise ValueError("a refresh brings a refresh token")
        with SingleUseCredential.translate_errors():
            context.services.tokens.rotate_refresh_token(self.token, self.client, access=access, successor=refresh)


class RefreshTokenGrant(GrantType):
    """Each use returns a new refresh token. A reused one has been stolen: the family is revoked.

    Not so for an application with a security profile, whose refresh token is worthless without its key: a lost response
    must not cost the sign-in, so the token stays (FAPI 2.0 Security Profile §5.3.2.1), until its idle timeout after
    the sign-in, used or not."""

    grant_type = "refresh_token"
    parameters = frozenset({"refresh_token"})
    client_requirement = ClientRequirement.REQUIRED
    accepts_refresh_tokens = True

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        """The token's authorization. Raises InvalidGrant, InvalidScope, InvalidRequest."""
        client = request.client
        if client is None:
            raise ValueError("the token endpoint authenticates the client first")
        presented = context.services.tokens.find_refresh_token(request.parameters.require_value("refresh_token"))
        if presented is None or presented.token.client_id != client.id:
            raise InvalidGrant("the refresh token is unknown, or was issued to another client")
        token = presented.token
        if token.rotated_at is not None and not context.services.tokens.is_within_grace(token):
            with SingleUseCredential.translate_errors():
                raise context.services.tokens.revoke_replayed_family(token.family_id, client, "refresh_token")
        problem = _find_mismatch(presented, context)
        if problem is not None:
            raise InvalidGrant(problem)
        return _build_authorization(presented, client, _requested_scopes(request, token))

    def preview(self, preview_input: PreviewInput, context: Context) -> Authorization | None:
        """The authorization of the first refresh token, if an earlier grant issued one."""
        if preview_input.refresh_token is None or preview_input.client is None:
            return None
        return _build_authorization(
            preview_input.refresh_token, preview_input.client, preview_input.refresh_token.token.scope
        )


def _build_authorization(
    presented: PresentedRefreshToken, client: ApplicationClient, requested: tuple[str, ...]
) -> Authorization:
    token = presented.token
    is_rotated = client.application.security_profile is None
    return Authorization(
        subject=presented.subject,
        client=client,
        client_id=client.id,
        requested_scopes=requested,
        authenticated_at=token.authenticated_at,
        # A token that outlives its session is no longer bound to it.
        session_id=None if presented.session_ended else token.session_id,
        family_id=token.family_id,
        refresh_token_terms=(
            RefreshTokenTerms(ends_at=token.ends_at, scope=token.scope, predecessor_id=token.id) if is_rotated else None
        ),
        single_use_credential=RefreshTokenCredential(token, client) if is_rotated else None,
        methods=presented.family.methods,
        acr=presented.family.acr,
        userinfo_claims=presented.family.userinfo_claims,
        id_token_claims=presented.family.id_token_claims,
        confirmation=token.confirmation,
        resources=presented.family.resources or (),
    )


def _find_mismatch(presented: PresentedRefreshToken, context: Context) -> str | None:
    token = presented.token
    if presented.family.revoked_at is not None or token.revoked_at is not None:
        return "the refresh token is revoked"
    if context.now >= min(token.expires_at, token.ends_at):
        return "the refresh token has expired"
    if presented.session_ended and not presented.family.offline:
        return "the session has ended"
    if presented.subject is None or not presented.subject.is_active:
        return "the user is deactivated"
    return None


def _requested_scopes(request: TokenRequest, token: RefreshToken) -> tuple[str, ...]:
    """A subset of the granted scopes; all of them if none is requested. Raises InvalidScope."""
    requested = request.parameters.get_space_delimited("scope")
    if not requested:
        return token.scope
    Scope.require_openid(requested)
    wider = [scope_name for scope_name in requested if scope_name not in token.scope]
    if wider:
        raise InvalidScope(f"{wider[0]} was not granted at first")
    return requested


class RefreshTokenPlugin:
    """The refresh token grant."""

    hookspecs = 1

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        """The refresh grant."""
        return [RefreshTokenGrant()]

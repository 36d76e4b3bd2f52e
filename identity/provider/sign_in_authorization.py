"""The Authorization of a sign-in, for the authorization endpoint and its preview."""

from collections.abc import Iterable
from datetime import datetime

from identity.crypto.secrets import new_id
from identity.domain.applications import ApplicationClient
from identity.domain.users import Subject
from identity.provider.claims_request import ClaimsRequest
from identity.provider.grant_type import Authorization
from identity.provider.response_type import Artifact
from identity.provider.scope import Scope


def authorization_from_sign_in(
    subject: Subject,
    client: ApplicationClient,
    requested_scopes: Iterable[str],
    artifacts: frozenset[Artifact],
    *,
    authenticated_at: datetime,
    session_id: str,
    nonce: str | None,
    methods: tuple[str, ...],
    acr: str = "",
    claims: ClaimsRequest,
) -> Authorization:
    """The authorization of a signed-in person for these artifacts, in a new family."""
    return Authorization(
        subject=subject,
        client=client,
        client_id=client.id,
        # Without a code there is no refresh token (OpenID Connect Core §11).
        requested_scopes=tuple(
            requested_scope
            for requested_scope in requested_scopes
            if requested_scope != Scope.OFFLINE_ACCESS or Artifact.CODE in artifacts
        ),
        authenticated_at=authenticated_at,
        session_id=session_id,
        family_id=new_id(),
        nonce=nonce,
        includes_id_token=Artifact.ID_TOKEN in artifacts,
        methods=methods,
        acr=acr,
        userinfo_claims=claims.userinfo,
        id_token_claims=claims.id_token,
    )

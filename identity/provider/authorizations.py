"""What each way of proving oneself authorizes: tokens start from here, and so does their preview."""

from collections.abc import Iterable
from datetime import datetime

from identity.domain.applications import Client
from identity.domain.authorization_codes import PresentedCode
from identity.domain.users import Subject
from identity.provider.claims_request import ClaimsRequest
from identity.provider.grant import Authorization, Refreshing
from identity.provider.request import Context
from identity.provider.response_type import Artifact
from identity.provider.scope import OFFLINE_ACCESS


def by_sign_in(
    subject: Subject,
    client: Client,
    asked: Iterable[str],
    issues: frozenset[Artifact],
    *,
    authenticated_at: datetime,
    session_id: str,
    nonce: str | None,
    methods: tuple[str, ...],
    claims: ClaimsRequest,
) -> Authorization:
    """A person who is signed in, for an answer that issues these artifacts."""
    return Authorization(
        subject=subject,
        client=client,
        client_id=client.id,
        # Without a code there is no refresh token (OpenID Connect Core §11).
        asked=tuple(word for word in asked if word != OFFLINE_ACCESS or Artifact.CODE in issues),
        authenticated_at=authenticated_at,
        session_id=session_id,
        nonce=nonce,
        id_token=Artifact.ID_TOKEN in issues,
        methods=methods,
        userinfo_claims=claims.userinfo,
        id_token_claims=claims.id_token,
    )


def by_code(presented: PresentedCode, client: Client, context: Context) -> Authorization:
    """The client that redeems a code."""
    code, family = presented.code, presented.family
    refreshing = None
    if OFFLINE_ACCESS in code.scope:
        ends_at = code.issued_at + context.settings.refresh_token_max_age
        refreshing = Refreshing(ends_at=ends_at, scope=code.scope)
    return Authorization(
        subject=presented.subject,
        client=client,
        client_id=client.id,
        asked=code.scope,
        authenticated_at=code.authenticated_at,
        session_id=code.session_id,
        nonce=code.nonce,
        family_id=code.family_id,
        refreshing=refreshing,
        methods=family.methods,
        userinfo_claims=family.userinfo_claims,
        id_token_claims=family.id_token_claims,
    )


def by_assertion(subject: Subject, asked: tuple[str, ...], at: datetime, *, key_id: str | None) -> Authorization:
    """A service user that signed an assertion with this key."""
    return Authorization(
        subject=subject, client=None, client_id=subject.user.id, asked=asked, authenticated_at=at, key_id=key_id
    )

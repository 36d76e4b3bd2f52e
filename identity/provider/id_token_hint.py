"""id_token_hint: one of our ID tokens that names the user of a request; it may be expired."""

from dataclasses import dataclass

from identity.crypto.jwt import InvalidTokenSignature, MalformedToken, UnverifiedToken
from identity.provider.context import Context
from identity.provider.errors import InvalidRequest
from identity.services.signing_keys import ALGORITHM

_TYPES = frozenset({None, "JWT", "jwt"})


@dataclass(frozen=True, slots=True)
class IdTokenHint:
    """The token's user, client and session."""

    subject: str
    client_id: str
    session_id: str | None


def verify_id_token_hint(text: str, context: Context) -> IdTokenHint:
    """The hint, if its signature is valid under one of our published keys. Raises InvalidRequest otherwise, also for
    access tokens (their ``typ`` is at+jwt)."""
    refused = InvalidRequest("id_token_hint is not an ID token of this issuer")
    try:
        token = UnverifiedToken.parse(text)
        key = next(
            (
                public
                for key, public in context.services.signing_keys.published_keys()
                if key.id == token.header.get("kid")
            ),
            None,
        )
        if key is None or token.header.get("typ") not in _TYPES:
            raise refused
        claims = token.verify(key, algorithm=ALGORITHM)
    except (MalformedToken, InvalidTokenSignature):
        raise refused from None
    subject, client_id, session_id = claims.get("sub"), claims.get("azp"), claims.get("sid")
    if claims.get("iss") != context.issuer or not isinstance(subject, str) or not isinstance(client_id, str):
        raise refused
    return IdTokenHint(subject, client_id, session_id if isinstance(session_id, str) else None)

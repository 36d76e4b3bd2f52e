"""ENDPOINTS: the table of protocol endpoints. One file, one endpoint, one handle function."""

from identity.provider.endpoint import Endpoint
from identity.provider.endpoints import (
    authorization,
    end_session,
    introspection,
    jwks,
    metadata,
    revocation,
    token,
    userinfo,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    metadata.ENDPOINT,
    authorization.ENDPOINT,
    authorization.RESUME,
    token.ENDPOINT,
    userinfo.ENDPOINT,
    introspection.ENDPOINT,
    revocation.ENDPOINT,
    end_session.ENDPOINT,
    end_session.RESUME,
    jwks.ENDPOINT,
)

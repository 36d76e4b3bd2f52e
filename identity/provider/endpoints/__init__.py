"""ENDPOINTS: the table of protocol endpoints. One file, one endpoint, one handle function."""

from identity.provider.endpoint import Endpoint
from identity.provider.endpoints import authorize, end_session, introspect, keys, metadata, revoke, token, userinfo

ENDPOINTS: tuple[Endpoint, ...] = (
    metadata.ENDPOINT,
    authorize.ENDPOINT,
    authorize.RESUME,
    token.ENDPOINT,
    introspect.ENDPOINT,
    userinfo.ENDPOINT,
    revoke.ENDPOINT,
    end_session.ENDPOINT,
    end_session.RESUME,
    keys.ENDPOINT,
)

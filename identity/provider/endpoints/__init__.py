"""ENDPOINTS: the table of protocol endpoints. One file, one endpoint, one handle function."""

from identity.provider.endpoint import Endpoint
from identity.provider.endpoints import introspect, keys, metadata, revoke, token, userinfo

ENDPOINTS: tuple[Endpoint, ...] = (
    metadata.ENDPOINT,
    token.ENDPOINT,
    introspect.ENDPOINT,
    userinfo.ENDPOINT,
    revoke.ENDPOINT,
    keys.ENDPOINT,
)

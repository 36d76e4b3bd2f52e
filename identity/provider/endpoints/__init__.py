"""The service's own endpoints, one file each. Plugins add theirs with ``identity_endpoints``."""

from identity.provider.endpoint import Endpoint
from identity.provider.endpoints import (
    authorization,
    jwks,
    metadata,
    token,
    userinfo,
)

CORE_ENDPOINTS: tuple[Endpoint, ...] = (
    metadata.ENDPOINT,
    authorization.ENDPOINT,
    authorization.RESUME,
    token.ENDPOINT,
    userinfo.ENDPOINT,
    jwks.ENDPOINT,
)

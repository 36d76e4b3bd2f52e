"""Model Context Protocol: its clients read the metadata of the authorization server from the address of RFC 8414.

The document is the one of discovery. The issuer has no path, so there is one address::

    GET /.well-known/oauth-authorization-server
"""

from collections.abc import Iterable

from identity.api.endpoints import Endpoint, EndpointHost, discovery_response
from identity.api.plugins import hookimpl

_ENDPOINT = Endpoint(
    name="mcp.metadata",
    path="/.well-known/oauth-authorization-server",
    host=EndpointHost.ISSUER,
    methods=("GET",),
    discovery_member=None,
    writes=False,
    allows_cors=True,
    uses_storage=False,
    handle=discovery_response,
)


class McpPlugin:
    """OAuth 2.0 Authorization Server Metadata (RFC 8414) for clients of MCP."""

    hookspecs = 1

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        """The metadata at its own address."""
        return [_ENDPOINT]

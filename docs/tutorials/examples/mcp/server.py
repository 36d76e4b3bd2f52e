"""An MCP server whose users sign in with the service."""

import os

import httpx2
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

ISSUER, URL = os.environ["ISSUER"], os.environ["MCP_URL"]
CREDENTIALS = os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"]


class Introspection(TokenVerifier):
    """Asks the service about each token (RFC 7662)."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """None for a token that is not live, or that is for others."""
        async with httpx2.AsyncClient(auth=CREDENTIALS) as http:
            discovery = (await http.get(f"{ISSUER}/.well-known/openid-configuration")).json()
            claims = (await http.post(discovery["introspection_endpoint"], data={"token": token})).json()
        if not claims["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=URL if URL in claims["aud"] else None,
            subject=claims["sub"],
            claims=claims,
        )


server = MCPServer(
    "Notes",
    token_verifier=Introspection(),
    auth=AuthSettings(
        issuer_url=ISSUER, resource_server_url=URL, required_scopes=["openid"], validate_token_resource=True
    ),
)


@server.tool()
def whoami() -> str:
    """The identifier of the person who signed in."""
    token = get_access_token()
    return "" if token is None else str(token.subject)


app = server.streamable_http_app()

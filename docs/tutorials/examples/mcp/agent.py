"""An MCP client that signs a person in by the browser, and calls a tool as them."""

import asyncio
import os
import webbrowser
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

CALLBACK = "http://127.0.0.1:8002/callback"


class Memory(TokenStorage):
    """Keeps tokens until the program ends."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def open_browser(url: str) -> None:
    webbrowser.open(url)


async def wait_for_browser() -> AuthorizationCodeResult:
    """The parameters with which the browser returns."""

    class Callback(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.server.answer = dict(parse_qsl(urlsplit(self.path).query))  # type: ignore[attr-defined]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"You can close this window.")

    with HTTPServer(("127.0.0.1", 8002), Callback) as listener:
        await asyncio.to_thread(listener.handle_request)
        return AuthorizationCodeResult(**listener.answer)  # type: ignore[attr-defined]


async def call_whoami(
    url: str,
    client_metadata_url: str,
    *,
    visit: Callable[[str], Awaitable[None]] = open_browser,
    callback: Callable[[], Awaitable[AuthorizationCodeResult]] = wait_for_browser,
) -> str:
    """The person who signs in, as the MCP server knows them."""
    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="Agent", redirect_uris=[CALLBACK]),
        Memory(),
        redirect_handler=visit,
        callback_handler=callback,
        client_metadata_url=client_metadata_url,
    )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=300) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        result = await client.call_tool("whoami")
        return str(result.content[0].text)


if __name__ == "__main__":
    print(asyncio.run(call_whoami(os.environ["MCP_URL"], os.environ["CLIENT_METADATA_URL"])))

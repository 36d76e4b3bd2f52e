"""identity mcp: an MCP server on stdin and stdout, through which a language model uses the management API."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from identity.cli.command_context import CommandError
from identity.cli.token import DEFAULT_ISSUER, ISSUER_ENVIRONMENT_VARIABLE, read_key_file
from identity.domain.audiences import AudienceScope
from identity.extension_points import CliCommand

_SCOPE = f"openid {AudienceScope.build('service')}"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        type=Path,
        required=True,
        help="the key file of a service user with a manager role",
    )
    parser.add_argument(
        "--issuer", metavar="URL", help=f"the issuer; by default ${ISSUER_ENVIRONMENT_VARIABLE}, else {DEFAULT_ISSUER}"
    )
    parser.add_argument("--allow-changes", action="store_true", help="also offer the operations that change something")


def run(arguments: Namespace) -> int:
    """Serve until stdin ends."""
    try:
        from identity.cli.management_tools import ManagementTools, build_server
    except ModuleNotFoundError:
        raise CommandError('This needs the extra mcp: pip install "identity-iam[mcp]".') from None
    from identity.cli.service_client import ServiceClient, sign_assertion

    client = ServiceClient(
        (arguments.issuer or os.environ.get(ISSUER_ENVIRONMENT_VARIABLE) or DEFAULT_ISSUER).rstrip("/")
    )
    key_file = read_key_file(arguments.key_file)

    def request_token() -> Mapping[str, Any]:
        return client.request_token(sign_assertion(key_file, client.issuer), _SCOPE).document

    # The management API is at the address of the token endpoint.
    token_endpoint = urlsplit(client.endpoint_url("token"))
    tools = ManagementTools(client, f"{token_endpoint.scheme}://{token_endpoint.netloc}", request_token)
    # A wrong key file is reported now, not at the first tool call.
    request_token()
    build_server(tools, allow_changes=arguments.allow_changes).run("stdio")
    return 0


COMMAND = CliCommand("mcp", "let a language model use the management API (Model Context Protocol)", add_arguments, run)

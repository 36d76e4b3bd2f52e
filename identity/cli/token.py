"""identity token: get an access token with a key file, as any client of the service does."""

import json
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from identity.cli.command_context import CommandError
from identity.domain.audiences import AudienceScope
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.domain.service_user_keys import KeyFile

DEFAULT_ISSUER = "http://localhost:8080"
ISSUER_ENVIRONMENT_VARIABLE = "IDENTITY_ISSUER"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--key-file", metavar="FILE", type=Path, required=True, help="the service user's key file")
    parser.add_argument(
        "--issuer", metavar="URL", help=f"the issuer; by default ${ISSUER_ENVIRONMENT_VARIABLE}, else {DEFAULT_ISSUER}"
    )
    parser.add_argument("--scope", metavar="SCOPES", default="openid", help='for example "openid profile"')
    parser.add_argument(
        "--project",
        metavar="ID",
        action="append",
        default=[],
        help='the project that the token is for; "service" means the management API',
    )
    parser.add_argument(
        "--algorithm", metavar="NAME", help="the key's algorithm, if it is not the usual one of its type: PS256"
    )
    parser.add_argument("--assertion-only", action="store_true", help="print the signed assertion and send nothing")


def run(arguments: Namespace) -> int:
    """Sign an assertion, send it to the token endpoint, and print the response as JSON."""
    from identity.cli.service_client import ServiceClient, sign_assertion

    issuer = (arguments.issuer or os.environ.get(ISSUER_ENVIRONMENT_VARIABLE) or DEFAULT_ISSUER).rstrip("/")
    key_file = read_key_file(arguments.key_file)
    assertion = sign_assertion(key_file, issuer, arguments.algorithm)
    if arguments.assertion_only:
        print(assertion.text)
        return 0
    scope = " ".join([*arguments.scope.split(), *map(AudienceScope.build, arguments.project)])
    answer = ServiceClient(issuer).request_token(assertion, scope)
    print(json.dumps(answer.document, indent=2))
    return 0


def read_key_file(path: Path) -> "KeyFile":
    """Raises CommandError if the file does not exist or is not a key file."""
    from identity.domain.errors import Invalid
    from identity.domain.service_user_keys import KeyFile

    try:
        return KeyFile.from_json(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except OSError as problem:
        raise CommandError(f"{path} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: This is not a JSON file.") from None
    except Invalid as problem:
        raise CommandError(f"{path}: {' '.join(problem.fields.values())}") from None


COMMAND = CliCommand("token", "get an access token with a key file", add_arguments, run)

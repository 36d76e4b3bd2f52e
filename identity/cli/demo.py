"""identity demo: sections 5.1 and 5.2 of the service description against the running service, step by step."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identity.cli.command_context import CommandError, add_ini_arguments, open_application
from identity.domain.audiences import AudienceScope
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.cli.service_client import HttpExchange, ServiceClient
    from identity.domain.service_user_keys import KeyFile

_ROLE = "ORG_OWNER"
_SCOPE = "openid profile"

#: Credentials: only their beginning is printed.
_SECRETS = frozenset({"access_token", "id_token", "assertion", "token", "client_secret"})
_MAX_SECRET_PREFIX = 16


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--key-file", metavar="FILE", type=Path, help="by default the one that the first start created")
    parser.add_argument(
        "--client-file", metavar="FILE", type=Path, help="by default the one that the first start created"
    )


def run(arguments: Namespace) -> int:
    """Run all steps; stop with status 1 at the first unexpected response."""
    with open_application(arguments) as identity:
        from identity import bootstrap
        from identity.cli.service_client import ServiceClient
        from identity.cli.token import read_key_file

        settings = identity.settings
        client = ServiceClient(settings.issuer_url)
        try:
            client.discovery()
        except CommandError as failure:
            start = bootstrap.make_command("run", settings)
            raise CommandError(f"{failure} Start it in another terminal: {start}") from None
        key_file = read_key_file(arguments.key_file or settings.data / bootstrap.EXAMPLE_KEY_FILE_NAME)
        credentials = _read_client_file(
            arguments.client_file or settings.data / bootstrap.INTROSPECTION_CLIENT_FILE_NAME
        )
        _DemoRun(identity, client, key_file, credentials).run()
    return 0


class _DemoRun:
    """One run; each step prints its request and response."""

    def __init__(
        self,
        identity: "IdentityApplication",
        client: "ServiceClient",
        key_file: "KeyFile",
        credentials: tuple[str, str],
    ) -> None:
        self._identity = identity
        self._client = client
        self._key_file = key_file
        self._credentials = credentials
        self._number = 0

    def run(self) -> None:
        """All steps in the order of the service description."""
        self._discover()
        token = self._request_first_token()
        self._request_userinfo(token)
        self._introspect(token, expected=False, why="the client is not in this token's audience, and learns nothing")
        self._assign_role()
        token, project_id = self._request_management_token()
        self._introspect(token, expected=True, why="the token is meant for the client's project now")
        self._call_management_api(token, project_id)
        print(
            f"\nAll {self._number} steps went as the service description says: the service user signs an assertion,"
            "\ngets a token for it, is known by it, and manages its organization with it."
        )

    def _discover(self) -> None:
        self._print_step("Discovery (4.1): where everything is")
        document = self._client.discovery()
        self._print_request("GET", f"{self._client.issuer}/.well-known/openid-configuration")
        _print_members({name: value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))})

    def _request_first_token(self) -> str:
        from identity.cli.service_client import sign_assertion

        self._print_step("A signed assertion (2.3): the service user says who it is")
        assertion = sign_assertion(self._key_file, self._client.issuer)
        print("  header")
        _print_members(assertion.header)
        print("  claims")
        _print_members(assertion.claims)
        self._print_step("The token (4.3): the assertion exchanged for it")
        answer = self._client.request_token(assertion, _SCOPE)
        self._print_exchange(answer, {"grant_type": "…:jwt-bearer", "scope": _SCOPE, "assertion": assertion.text})
        _expect(answer.document.get("token_type") == "Bearer", "the token_type is Bearer")
        return str(answer.document["access_token"])

    def _request_userinfo(self, token: str) -> None:
        self._print_step("Userinfo (4.5): whose token is this?")
        answer = self._client.send("GET", self._client.endpoint_url("userinfo"), headers=_bearer_header(token))
        self._print_exchange(answer)
        _expect(answer.status == 200 and answer.document.get("sub") == self._key_file.user_id, "sub is the userId")

    def _introspect(self, token: str, *, expected: bool, why: str) -> None:
        self._print_step("Introspection (4.4): an API asks about the token")
        answer = self._client.send(
            "POST", self._client.endpoint_url("introspection"), data={"token": token}, auth=self._credentials
        )
        self._print_exchange(answer, {"token": token, "client_id": self._credentials[0]})
        print(f"  ({why})")
        _expect(answer.document.get("active") is expected, f"active is {str(expected).lower()}")

    def _assign_role(self) -> None:
        from identity.cli.add_manager import assign_manager_roles, find_user
        from identity.domain.permissions import Resource

        self._print_step(f"A manager role (5.2): the service user becomes {_ROLE} of its organization")
        with self._identity.transaction() as services:
            subject = find_user(services, self._key_file.user_id)
            organization = subject.organization
            manager = assign_manager_roles(
                services, subject, Resource.of_organization(organization.id), frozenset({_ROLE})
            )
        print(f"  identity add-manager --user {subject.login_name} --role {_ROLE} --organization {organization.id}")
        _print_members({"roles": sorted(manager.roles)})

    def _request_management_token(self) -> tuple[str, str]:
        from identity.cli.service_client import sign_assertion

        self._print_step("A token with the audience scope (2.7): meant for the service itself")
        with self._identity.read_session() as services:
            instance = services.storage.organizations.find_instance()
        if instance is None:
            raise CommandError("There is no instance. Run `identity bootstrap`.")
        scope = f"{_SCOPE} {AudienceScope.build(instance.project_id)}"
        assertion = sign_assertion(self._key_file, self._client.issuer)
        answer = self._client.request_token(assertion, scope)
        self._print_exchange(answer, {"grant_type": "…:jwt-bearer", "scope": scope, "assertion": assertion.text})
        return str(answer.document["access_token"]), instance.project_id

    def _call_management_api(self, token: str, project_id: str) -> None:
        base = self._identity.settings.base_url
        self._print_step("The management API (4.9): who am I?")
        answer = self._client.send("GET", f"{base}/management/v1/me", headers=_bearer_header(token))
        self._print_exchange(answer)
        roles = [role for manager in answer.document.get("roles", ()) for role in manager["roles"]]
        _expect(answer.status == 200 and _ROLE in roles, f"{_ROLE} is among the roles")
        self._print_step("The management API: which instance is this?")
        answer = self._client.send("GET", f"{base}/management/v1/instance", headers=_bearer_header(token))
        self._print_exchange(answer)
        _expect(answer.document.get("project_id") == project_id, "project_id is the own project's")

    def _print_step(self, title: str) -> None:
        self._number += 1
        print(f"\n{self._number}. {title}")

    def _print_exchange(self, answer: "HttpExchange", form: Mapping[str, Any] | None = None) -> None:
        self._print_request(answer.method, answer.url)
        _print_members(form or {})
        print(f"  answer {answer.status}")
        _print_members(answer.document)

    @staticmethod
    def _print_request(method: str, url: str) -> None:
        print(f"  {method} {url}")


def _read_client_file(path: Path) -> tuple[str, str]:
    try:
        members = json.loads(path.read_text("utf-8"))
        return str(members["client_id"]), str(members["client_secret"])
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except (ValueError, KeyError, TypeError):
        raise CommandError(f"{path} does not hold a client_id and a client_secret.") from None


def _bearer_header(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _print_members(members: Mapping[str, Any]) -> None:
    width = max(map(len, members), default=0) + 2
    for name, value in members.items():
        printable = f"{value[:_MAX_SECRET_PREFIX]}… ({len(value)} characters)" if name in _SECRETS else _redact(value)
        print(f"    {name:<{width}}{printable}")


def _redact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _expect(right: bool, expectation: str) -> None:
    """Print the confirmation. Raises Failed if ``right`` is False."""
    if not right:
        raise CommandError(f"This step did not go as expected: {expectation}, says the service description.")
    print(f"  ✓ {expectation}")


COMMAND = CliCommand(
    "demo", "show every request from key file to management API, against the running service", add_arguments, run
)

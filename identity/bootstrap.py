"""The first start: creates schema, instance, owner, example service user and introspecting application.

A second run changes nothing. Secrets are written to files that only their owner can read (mode 0600); the owner's
one-time password is printed once.
"""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from identity.development_mailbox import MAILBOX_PATH, DevelopmentMailbox
from identity.domain.errors import Invalid
from identity.domain.service_user_keys import KeyFile
from identity.domain.users import ServiceUser
from identity.secret_files import secret_file_transaction
from identity.services import instance_bootstrap
from identity.storage.errors import DuplicateValue, StorageUnavailable

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.settings import Settings

EXAMPLE_SERVICE_USER_NAME = "example"
EXAMPLE_KEY_FILE_NAME = "example-service-user.json"
INTROSPECTION_CLIENT_FILE_NAME = "introspection-client.json"

#: The default port of development.ini and the Makefile.
DEFAULT_PORT = 8080
DEFAULT_DATA = "var"


@dataclass(frozen=True)
class BootstrapResult:
    """What bootstrap found or made; ``owner`` only if this run made it, ``written_paths`` the files that it wrote."""

    organization_id: str
    project_id: str
    owner: instance_bootstrap.InitialOwner | None
    service_user: ServiceUser | None = None
    key_file: Path | None = None
    client_file: Path | None = None
    written_paths: tuple[Path, ...] = ()


def run_bootstrap(
    identity: "IdentityApplication",
    *,
    user_name: str | None = None,
    role: str | None = None,
    key_out: Path | None = None,
    client_out: Path | None = None,
    owner_email: str = "",
) -> BootstrapResult:
    """Create what is missing, together with the files, in one transaction: everything or nothing.

    Raises Invalid for an unknown role, or a file that cannot be written or is something else.
    """
    try:
        return _run(identity, user_name, role, key_out, client_out, owner_email)
    except DuplicateValue:
        # Another process was faster; return what it created.
        return _run(identity, user_name, role, key_out, client_out, owner_email)


def _run(
    identity: "IdentityApplication",
    user_name: str | None,
    role: str | None,
    key_out: Path | None,
    client_out: Path | None,
    owner_email: str,
) -> BootstrapResult:
    with secret_file_transaction() as write, identity.transaction() as services:
        instance, owner = instance_bootstrap.ensure_instance(
            services, registration=identity.settings.development, email=owner_email
        )
        user = None
        if user_name is not None:
            user = instance_bootstrap.ensure_service_user(services, instance.organization_id, user_name)
            if role is not None:
                resource = instance_bootstrap.resolve_role_resource(services, role, instance.organization_id)
                instance_bootstrap.ensure_roles(services, user.id, resource, frozenset({role}))
        if user is not None and key_out is not None:
            present = _read_existing_key_file(key_out)
            key_file = instance_bootstrap.ensure_key(services, user, present)
            if key_file is not present:
                if present is not None and present.user_id != user.id:
                    known = services.storage.users.find(present.user_id) is not None
                    _refuse_overwrite(identity, known, "key_out", f"{key_out} is the key file of another service user")
                write(key_out, key_file.to_json())
        if client_out is not None:
            present_id = _read_existing_client_id(client_out)
            application, secret = instance_bootstrap.ensure_introspection_client(services, instance, present_id)
            if secret is not None:
                if present_id is not None:
                    known = services.storage.applications.find(present_id) is not None
                    _refuse_overwrite(identity, known, "client_out", f"{client_out} holds the secret of another client")
                write(client_out, json.dumps({"client_id": application.id, "client_secret": secret}))
    return BootstrapResult(
        instance.organization_id, instance.project_id, owner, user, key_out, client_out, tuple(write.written_paths)
    )


def _refuse_overwrite(identity: "IdentityApplication", known: bool, field: str, sentence: str) -> None:
    """Raise Invalid rather than overwrite the only copy of a secret that belongs to something else.

    In development, deleting the database is a fresh start, beside files of owners that are no longer ``known``.
    """
    if known or not identity.settings.development:
        raise Invalid({field: f"{sentence}; move it away, or choose another file."})


def prepare_development(identity: "IdentityApplication", *, print_getting_started: bool) -> BootstrapResult:
    """Everything a developer needs at the first start; says where to go next if ``print_getting_started``.

    Raises Invalid or StorageUnavailable, saying what to mend; OSError if the data folder cannot be made.
    """
    data = identity.settings.data
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        identity.backend.check()
    except StorageUnavailable:
        # Conditional, because loading the migration tool takes time.
        identity.backend.migrate()
    outcome = run_bootstrap(
        identity,
        user_name=EXAMPLE_SERVICE_USER_NAME,
        key_out=data / EXAMPLE_KEY_FILE_NAME,
        client_out=data / INTROSPECTION_CLIENT_FILE_NAME,
    )
    if print_getting_started:
        print(getting_started_text(identity, outcome), flush=True)  # noqa: T201
    return outcome


def getting_started_text(identity: "IdentityApplication", outcome: BootstrapResult) -> str:
    """The getting-started text for the terminal."""
    settings = identity.settings
    program = _relative_path(Path(sys.prefix) / "bin" / "identity")
    key_file = shlex.quote(_relative_path(outcome.key_file))
    token = f"    {shlex.quote(program)} token --issuer {settings.issuer_url} --key-file {key_file}"
    lines = [
        "",
        f"  identity is served at {settings.issuer_url}",
        "",
        f"  sign in        {settings.login_url}/",
        *(
            [f"  mails          {settings.login_url}{MAILBOX_PATH}"]
            if isinstance(identity.mailer, DevelopmentMailbox)
            else []
        ),
        f"  discovery      {settings.issuer_url}/.well-known/openid-configuration",
        f"  key file       {_relative_path(outcome.key_file)}   (service user {EXAMPLE_SERVICE_USER_NAME})",
        f"  introspection  {_relative_path(outcome.client_file)}   (client id and secret)",
    ]
    if outcome.owner is not None:
        lines += [
            "",
            f"  first owner    {outcome.owner.login_name}",
            f"  password       {outcome.owner.password}   (one-time; shown only now)",
        ]
    lines += [
        "",
        "  A first token, and one for the management API:",
        f'{token} --scope "openid profile"',
        f"{token} --project service",
        "",
        f"  The whole way, step by step: {make_command('demo', settings)}     Stop: Ctrl-C",
        "",
    ]
    return "\n".join(lines)


def make_command(target: str, settings: "Settings") -> str:
    """The make command for a target, with the variables that differ from their defaults."""
    arguments = [f"make {target}"]
    port = urlsplit(settings.issuer_url).port
    if port != DEFAULT_PORT:
        arguments.append(f"PORT={port}")
    folder = _relative_path(settings.data)
    if folder != DEFAULT_DATA:
        arguments.append(f"DATA={shlex.quote(folder)}")
    return " ".join(arguments)


def _relative_path(path: Path | None) -> str:
    if path is None:
        return "-"
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _read_existing_key_file(path: Path) -> KeyFile | None:
    if not path.exists():
        return None
    try:
        return KeyFile.from_json(path.read_text("utf-8"))
    except OSError as problem:
        raise Invalid({"key_out": f"{path} cannot be read: {problem.strerror}."}) from None
    except (UnicodeDecodeError, Invalid):
        raise Invalid({"key_out": f"{path} exists and is no key file; move it away."}) from None


def _read_existing_client_id(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        return str(json.loads(path.read_text("utf-8"))["client_id"])
    except OSError as problem:
        raise Invalid({"client_out": f"{path} cannot be read: {problem.strerror}."}) from None
    except (ValueError, KeyError, TypeError):
        raise Invalid({"client_out": f"{path} exists and holds no client id; move it away."}) from None

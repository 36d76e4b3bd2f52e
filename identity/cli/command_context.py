"""Shared by the commands: opens the ini file's service and turns errors into one line."""

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from identity.domain.errors import DomainError, Invalid
from identity.settings_parser import InvalidSetting
from identity.storage.errors import StorageError

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.domain.organizations import Organization
    from identity.services.container import Services


class CommandError(Exception):
    """A command failed; the message is the line that is printed."""


def add_ini_arguments(parser: ArgumentParser) -> None:
    """Add ``-c INI`` and ``NAME=VALUE``, as pserve has them."""
    parser.add_argument("-c", "--config", dest="ini", metavar="INI", required=True, help="the service's ini file")
    parser.add_argument(
        "variables",
        metavar="NAME=VALUE",
        nargs="*",
        help="a variable of the ini file's [DEFAULT], as for pserve (%% is written %%%%)",
    )


def read_app_settings(arguments: Namespace) -> dict[str, str]:
    """The strings in the ini file's [app:main] with interpolated variables. Raises InvalidSetting or OSError."""
    from identity.ini_file import APP_SECTION, read_section

    return read_section(arguments.ini, APP_SECTION, read_variables(arguments))


def read_variables(arguments: Namespace) -> dict[str, str]:
    """The given variables. Raises InvalidSetting or OSError.

    Without any, those with which the service was last started, if the ini file records them.
    """
    from identity.ini_file import check_variables, read_last_run

    variables = dict(variable.split("=", 1) for variable in arguments.variables)
    check_variables(arguments.ini, variables)
    return variables or read_last_run(arguments.ini)


def load_application(arguments: Namespace, *, create_missing_key: bool = False) -> "IdentityApplication":
    """The service that the ini file describes, nothing opened yet. Raises CommandError; the caller closes it.

    ``create_missing_key`` is for commands that create a service in development.
    """
    # Commands print their results; warnings in the log are meant for the service.
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    with translate_errors():
        settings = read_app_settings(arguments)
        from identity.application_factory import create_application
        from identity.ini_file import read_server_section
        from identity.server_settings import is_loopback_only

        server = read_server_section(arguments.ini, read_variables(arguments))
        return create_application(
            settings, create_missing_key=create_missing_key, is_loopback_only=is_loopback_only(server)
        )


@contextmanager
def open_application(arguments: Namespace, *, create_missing_key: bool = False) -> Iterator["IdentityApplication"]:
    """The service that the ini file describes, open inside the block; expected errors become CommandError."""
    identity = load_application(arguments, create_missing_key=create_missing_key)
    try:
        with translate_errors():
            yield identity
    finally:
        identity.close()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn expected errors into CommandError with a one-line message."""
    try:
        yield
    except (CommandError, BrokenPipeError):
        raise
    except Exception as problem:
        sentence = _error_message(problem)
        if sentence is None:
            raise
        raise CommandError(" ".join(sentence.split())) from None


def find_organization(services: "Services", name: str) -> "Organization":
    """The organization with this primary domain or id. Raises CommandError."""
    organizations = services.storage.organizations
    organization = organizations.find_by_domain(name) or organizations.find(name)
    if organization is None:
        raise CommandError(f"There is no organization {name}. Give its id or its primary domain.")
    return organization


def open_document(path: Path | str) -> IO[bytes]:
    """Raises CommandError."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except OSError as problem:
        raise CommandError(f"{path} cannot be read: {problem.strerror}.") from None


def print_field(label: str, value: object, *, width: int = 18) -> None:
    print(f"{label:<{width}}{value}")


def _error_message(problem: Exception) -> str | None:
    if isinstance(problem, Invalid):
        return " ".join(problem.fields.values())
    if isinstance(problem, (InvalidSetting, DomainError)):
        return str(problem)
    if isinstance(problem, StorageError):
        return str(problem) or "The storage cannot do this."
    if isinstance(problem, OSError):
        name = "" if problem.filename is None else f"{problem.filename}: "
        return f"{name}{problem.strerror or problem}"
    # By name, because commands without plugins do not import this module.
    if _is_instance_of(problem, "identity.plugin_host", "PluginError"):
        return str(problem)
    if _is_instance_of(problem, "identity.crypto.sealing", "UnsealingError"):
        return f"A stored key cannot be opened: {problem}. Look at identity.master_keys."
    return None


def _is_instance_of(problem: Exception, module: str, name: str) -> bool:
    kind: Any = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(problem, kind)

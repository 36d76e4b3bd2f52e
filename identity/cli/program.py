"""What the subcommands share: the ini file opened as a service, and failures told in one line."""

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from identity.domain.errors import DomainError, Invalid
from identity.ini_values import BadSetting
from identity.storage.errors import StorageError

if TYPE_CHECKING:
    from identity.process import Identity


class Failed(Exception):
    """A command cannot do what was asked; the message is the one line that is shown."""


def add_ini_arguments(parser: ArgumentParser) -> None:
    """Let the command take ``-c INI`` and ``NAME=VALUE``, as pserve does."""
    parser.add_argument("-c", "--config", dest="ini", metavar="INI", required=True, help="the service's ini file")
    parser.add_argument(
        "variables",
        metavar="NAME=VALUE",
        nargs="*",
        help="a variable of the ini file's [DEFAULT], as for pserve (%% is written %%%%)",
    )


def settings_of(arguments: Namespace) -> dict[str, str]:
    """The strings in the ini file's [app:main], the variables put in. Raises BadSetting or OSError."""
    from identity.ini_file import APPLICATION, read_section

    return read_section(arguments.ini, APPLICATION, variables_of(arguments))


def variables_of(arguments: Namespace) -> dict[str, str]:
    """The variables that are given. Raises BadSetting or OSError.

    Where none are given, they are those that the service was last started with, if the ini file has that noted.
    """
    from identity.ini_file import check_variables, last_run

    given = dict(one.split("=", 1) for one in arguments.variables)
    check_variables(arguments.ini, given)
    return given or last_run(arguments.ini)


def assembled(arguments: Namespace, *, may_make_key: bool = False) -> "Identity":
    """The service that the ini file describes, nothing opened yet. Raises Failed; the caller closes it.

    Only what begins a service ``may_make_key``, in development.
    """
    # What a command has to say it prints; warnings in the log are for the service.
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    with problems_told():
        settings = settings_of(arguments)
        from identity.app import assemble
        from identity.ini_file import server_section
        from identity.server_settings import listens_on_loopback

        server = server_section(arguments.ini, variables_of(arguments))
        return assemble(settings, may_make_key=may_make_key, listens_locally=listens_on_loopback(server))


@contextmanager
def opened(arguments: Namespace, *, may_make_key: bool = False) -> Iterator["Identity"]:
    """The service that the ini file describes, for the length of a block; what goes wrong becomes Failed."""
    identity = assembled(arguments, may_make_key=may_make_key)
    try:
        with problems_told():
            yield identity
    finally:
        identity.close()


@contextmanager
def problems_told() -> Iterator[None]:
    """Turn what can be expected to go wrong into Failed, whose message is one clear line."""
    try:
        yield
    except (Failed, BrokenPipeError):
        raise
    except Exception as problem:
        sentence = _sentence(problem)
        if sentence is None:
            raise
        raise Failed(" ".join(sentence.split())) from None


def show(label: str, value: object, *, width: int = 18) -> None:
    """Print one fact in two columns."""
    print(f"{label:<{width}}{value}")


def _sentence(problem: Exception) -> str | None:
    if isinstance(problem, Invalid):
        return " ".join(problem.fields.values())
    if isinstance(problem, (BadSetting, DomainError)):
        return str(problem)
    if isinstance(problem, StorageError):
        return str(problem) or "The storage cannot do this."
    if isinstance(problem, OSError):
        name = "" if problem.filename is None else f"{problem.filename}: "
        return f"{name}{problem.strerror or problem}"
    # Named, not imported: a command that loads no plugin does not need the machinery for them.
    if _is_loaded(problem, "identity.plugin_host", "PluginProblem"):
        return str(problem)
    if _is_loaded(problem, "identity.crypto.sealing", "Unsealable"):
        return f"A stored key cannot be opened: {problem}. Look at identity.master_keys."
    return None


def _is_loaded(problem: Exception, module: str, name: str) -> bool:
    kind: Any = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(problem, kind)

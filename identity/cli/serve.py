"""identity serve: the service itself, under one web server or the other."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from identity.cli.program import Failed, add_ini_arguments, variables_of
from identity.operations import Command

if TYPE_CHECKING:
    from identity.server.serving import Serving

_SERVERS = ("waitress", "granian")


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --server."""
    add_ini_arguments(parser)
    parser.add_argument(
        "--server",
        choices=_SERVERS,
        default=_SERVERS[0],
        help="the web server: waitress, or granian, which has to be installed and wants a proxy in front",
    )


def run(arguments: Namespace) -> int:
    """Answer requests until told to stop."""
    from identity.ini_file import SERVER, application, read_section, set_up_logging
    from identity.server.serving import taken

    variables = variables_of(arguments)
    set_up_logging(arguments.ini, variables)
    serve = taken(_kind(arguments.server), read_section(arguments.ini, SERVER, variables))
    serve(application(arguments.ini, variables))
    return 0


def _kind(name: str) -> "Callable[[Mapping[str, str]], Serving]":
    try:
        server = import_module(f"identity.server.{name}_server")
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] != name:
            raise
        raise Failed(f"{name} is not installed: pip install 'identity[{name}]'.") from None
    kind: Callable[[Mapping[str, str]], Serving] = server.Server
    return kind


COMMAND = Command(
    "serve", "answer requests until told to stop, as pserve does, or under another web server", add_arguments, run
)

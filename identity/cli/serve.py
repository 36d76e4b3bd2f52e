"""identity serve: the service itself, under one web server or the other, in one process or several."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from identity.cli.program import Failed, add_ini_arguments, variables_of
from identity.operations import Command

if TYPE_CHECKING:
    from identity.server.serving import Serving

_SERVERS = ("waitress", "granian")


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --server, --workers."""
    add_ini_arguments(parser)
    parser.add_argument(
        "--server",
        choices=_SERVERS,
        default=_SERVERS[0],
        help="the web server: waitress, or granian, which has to be installed and wants a proxy in front",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        help="serve with so many processes, or auto for one per processor, under a supervisor that replaces what dies"
        " and reloads on SIGHUP; by default as workers in [server:main] says, without which one process serves",
    )


def run(arguments: Namespace) -> int:
    """Answer requests until told to stop."""
    from identity.ini_file import SERVER, read_section, set_up_logging
    from identity.server.listening import WORKERS, read_workers

    variables = variables_of(arguments)
    settings = read_section(arguments.ini, SERVER, variables)
    set_up_logging(arguments.ini, variables)
    if find_spec(arguments.server) is None:
        raise Failed(f"{arguments.server} is not installed. The extra {arguments.server} of this package brings it.")
    workers = read_workers(settings.get(WORKERS, "") if arguments.workers is None else arguments.workers)
    if workers is not None:
        return _supervise(arguments, settings, variables, workers)
    from identity.ini_file import application
    from identity.server.serving import taken

    serve = taken(_kind(arguments.server), settings)
    serve(application(arguments.ini, variables))
    return 0


def _supervise(arguments: Namespace, settings: Mapping[str, str], variables: Mapping[str, str], count: int) -> int:
    from functools import partial

    from identity.server.listening import WHERE, made, take
    from identity.server.plan import Plan
    from identity.server.supervisor import Supervisor

    sockets = made(partial(take, count=count), settings)
    plan = Plan(
        ini=arguments.ini,
        variables=variables,
        server=arguments.server,
        where={name: value for name, value in settings.items() if name in WHERE},
        sockets=tuple(tuple(one.fileno() for one in own) for own in sockets),
        counted=arguments.workers is None,
    )
    return Supervisor(plan, {one for own in sockets for one in own}).run()


def _kind(name: str) -> "Callable[[Mapping[str, str]], Serving]":
    kind: Callable[[Mapping[str, str]], Serving] = import_module(f"identity.server.{name}_server").Server
    return kind


COMMAND = Command(
    "serve", "answer requests until told to stop, as pserve does, or with several processes", add_arguments, run
)

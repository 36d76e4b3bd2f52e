"""What an operator runs, as plugins offer it: checks and subcommands."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity.instrumentation import PoolUsage

if TYPE_CHECKING:
    from identity.services.container import Services
    from identity.settings import Settings

#: Opens services on a read connection: ``with open_services() as services``.
ServicesFactory = Callable[[], AbstractContextManager["Services"]]


@dataclass(frozen=True)
class ServingProcess:
    """What a process that answers requests shows of itself.

    ``settings`` are the core's. ``open_services`` opens services to read what is stored. ``pool_usages`` tells what is
    in use at this moment: passwords that are hashed, and connections to the storage. ``worker_replacements`` tells, in
    a worker of ``identity serve``, which group of workers it belongs to, and how many of that replaced another one
    until now; all of them tell the same.
    """

    settings: "Settings"
    open_services: ServicesFactory
    pool_usages: Callable[[], Sequence[PoolUsage]]
    worker_replacements: Callable[[], tuple[str, int] | None] = lambda: None


@dataclass(frozen=True)
class SystemCheck:
    """A named check; ``run`` returns None, or a sentence that tells an operator what to fix.

    A node that fails a check that ``affects_readiness`` gets no requests. What every node shares and can do without for
    a while, such as a mail server, is no reason for that.
    """

    name: str
    run: Callable[[], str | None]
    affects_readiness: bool = True


@dataclass(frozen=True)
class CliCommand:
    """A subcommand of the ``identity`` program.

    ``run`` gets the parsed arguments, with the assembled service as ``arguments.identity``; it returns the exit status.
    """

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]

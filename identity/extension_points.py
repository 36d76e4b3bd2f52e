"""Checks, subcommands and process information that plugins offer to operators."""

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
    """What a serving process shows to plugins.

    ``settings`` are the core settings. ``open_services`` opens services for reading. ``pool_usages`` returns the
    current use of the pools: password hashing and storage connections. In a worker of ``identity serve``,
    ``worker_replacements`` is its worker group and the number of workers that group has replaced so far.
    """

    settings: "Settings"
    open_services: ServicesFactory
    pool_usages: Callable[[], Sequence[PoolUsage]]
    worker_replacements: Callable[[], tuple[str, int] | None] = lambda: None


@dataclass(frozen=True)
class SystemCheck:
    """A named check. ``run`` returns None, or a sentence that tells the operator what to fix.

    A node that fails a check with ``affects_readiness`` receives no requests. Do not set it for what all nodes share
    and can do without for a while, such as a mail server.
    """

    name: str
    run: Callable[[], str | None]
    affects_readiness: bool = True


@dataclass(frozen=True)
class CliCommand:
    """A subcommand of the ``identity`` program.

    ``run`` gets the parsed arguments, with the assembled service as ``arguments.identity``, and returns the exit
    status.
    """

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]

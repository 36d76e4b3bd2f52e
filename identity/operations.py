"""What an operator runs, as plugins offer it: checks and subcommands."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from identity.services.bundle import Services

#: Opens services on a read connection: ``with reading() as services``.
OpenServices = Callable[[], AbstractContextManager["Services"]]


@dataclass(frozen=True)
class Check:
    """A named check; ``run`` returns None, or a sentence that tells an operator what to fix.

    A node that fails a check of ``readiness`` gets no requests. What every node shares and can do without for a while,
    such as a mail server, is no reason for that.
    """

    name: str
    run: Callable[[], str | None]
    readiness: bool = True


@dataclass(frozen=True)
class Command:
    """A subcommand of the ``identity`` program.

    ``run`` gets the parsed arguments, with the assembled service as ``arguments.identity``; it returns the exit status.
    """

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]

"""identity purge: expired rows deleted now."""

from argparse import Namespace

from identity.cli.program import add_ini_arguments, opened
from identity.operations import Command


def run(arguments: Namespace) -> int:
    """Delete what has expired, in small batches beside the running service."""
    with opened(arguments) as identity:
        deleted = identity.jobs.purge()
    for kind, count in deleted.items():
        print(f"{count:>8}  {kind}")
    if not deleted:
        print("There was nothing to delete.")
    return 0


COMMAND = Command("purge", "delete what has expired; the service does it by itself, too", add_ini_arguments, run)

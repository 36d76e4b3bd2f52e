"""identity purge: what has expired deleted now, and accounts whose people asked for it two weeks ago."""

from argparse import Namespace

from identity.cli.program import add_ini_arguments, opened
from identity.operations import Command


def run(arguments: Namespace) -> int:
    """Delete what has expired and the accounts whose day has come, in small batches beside the running service."""
    with opened(arguments) as identity:
        accounts = identity.jobs.delete_accounts()
        deleted = identity.jobs.purge()
    if accounts:
        deleted["accounts"] = accounts
    for kind, count in deleted.items():
        print(f"{count:>8}  {kind}")
    if not deleted:
        print("There was nothing to delete.")
    return 0


COMMAND = Command(
    "purge",
    "delete what has expired and accounts that are to go; the service does so by itself",
    add_ini_arguments,
    run,
)

"""identity purge: what has expired deleted now, and accounts whose people asked for it two weeks ago."""

from argparse import Namespace

from identity import watching
from identity.cli.program import add_ini_arguments, opened
from identity.operations import Command


class _Longest(watching.Watcher):
    """For how many seconds others could not write, at most."""

    seconds = 0.0

    def took(self, what: str, name: str, seconds: float) -> None:
        if what == watching.PURGE:
            self.seconds = max(self.seconds, seconds)


def run(arguments: Namespace) -> int:
    """Delete what has expired and the accounts whose day has come, in small batches beside the running service."""
    longest = _Longest()
    with opened(arguments) as identity:
        accounts = identity.jobs.delete_accounts()
        watching.begin([longest])
        try:
            deleted = identity.jobs.purge()
        finally:
            watching.end([longest])
    if accounts:
        deleted["accounts"] = accounts
    for kind, count in deleted.items():
        print(f"{count:>8}  {kind}")
    if not deleted:
        print("There was nothing to delete.")
    if longest.seconds:
        print(f"The longest batch took {longest.seconds * 1000:.0f} ms.")
    return 0


COMMAND = Command(
    "purge",
    "delete what has expired and accounts that are to go; the service does so by itself",
    add_ini_arguments,
    run,
)

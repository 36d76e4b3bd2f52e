"""identity purge: what has expired deleted now, and accounts whose people asked for it two weeks ago."""

from argparse import Namespace

from identity import instrumentation
from identity.cli.command_context import add_ini_arguments, open_application
from identity.extension_points import CliCommand


class _LongestBatchObserver(instrumentation.InstrumentationObserver):
    """For how many seconds others could not write, at most."""

    seconds = 0.0

    def record_duration(self, kind: str, name: str, seconds: float) -> None:
        if kind == instrumentation.PURGE:
            self.seconds = max(self.seconds, seconds)


def run(arguments: Namespace) -> int:
    """Delete what has expired and the accounts whose day has come, in small batches beside the running service."""
    longest = _LongestBatchObserver()
    with open_application(arguments) as identity:
        accounts = identity.background_jobs.delete_due_accounts()
        instrumentation.add_observers([longest])
        try:
            deleted = identity.background_jobs.purge()
        finally:
            instrumentation.remove_observers([longest])
    if accounts:
        deleted["accounts"] = accounts
    for kind, count in deleted.items():
        print(f"{count:>8}  {kind}")
    if not deleted:
        print("There was nothing to delete.")
    if longest.seconds:
        print(f"The longest batch took {longest.seconds * 1000:.0f} ms.")
    return 0


COMMAND = CliCommand(
    "purge",
    "delete what has expired and accounts that are to go; the service does so by itself",
    add_ini_arguments,
    run,
)

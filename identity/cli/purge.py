"""identity purge: delete what has expired, and accounts whose deletion is due."""

from argparse import Namespace

from identity import instrumentation
from identity.cli.command_context import add_ini_arguments, open_application
from identity.extension_points import CliCommand


class _LongestBatchObserver(instrumentation.InstrumentationObserver):
    """The longest time in seconds for which other writers were blocked."""

    seconds = 0.0

    def record_duration(self, kind: str, name: str, seconds: float) -> None:
        if kind == instrumentation.Measurement.PURGE:
            self.seconds = max(self.seconds, seconds)


def run(arguments: Namespace) -> int:
    """Delete expired rows and due accounts in small batches while the service runs."""
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
    "delete expired data and accounts due for deletion; the service also does so itself",
    add_ini_arguments,
    run,
)

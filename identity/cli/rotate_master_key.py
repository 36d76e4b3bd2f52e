"""identity rotate-master-key: reseal everything under the first master key."""

from argparse import Namespace
from collections import Counter

from identity.cli.command_context import CommandError, add_ini_arguments, open_application
from identity.cli.progress import ProgressReporter
from identity.extension_points import CliCommand


def run(arguments: Namespace) -> int:
    """Reseal in batches while the service runs; then check that nothing is left."""
    with open_application(arguments) as identity, ProgressReporter() as progress:
        from identity.services.rekeying import count_remaining, rekey

        sealer = identity.process_state.sealer
        done = rekey(identity.transaction, sealer, lambda more: progress.add(more, "{:,} values resealed"))
        remaining = count_remaining(identity.read_session, sealer)
    print(f"{done.count:,} values were resealed under the master key {sealer.active_id}.")
    if done.unreadable:
        signing_keys = f" Signing keys among it: {', '.join(done.signing_keys)}." if done.signing_keys else ""
        raise CommandError(
            "What was sealed under these master keys cannot be opened, and was left as it is: "
            f"{_count_lines(done.unreadable)}.{signing_keys} Name the keys in identity.master_keys and run"
            " this again; what expires goes by itself."
        )
    if remaining:
        raise CommandError(
            f"Meanwhile something was sealed under other master keys: {_count_lines(remaining)}. A process of the"
            " service still has an old setting: restart all of them with this ini file, then run this again."
        )
    other_ids = [key for key in sealer.ids if key != sealer.active_id]
    if other_ids:
        print(f"Nothing is sealed under {', '.join(other_ids)} any more: take it out of identity.master_keys.")
    return 0


def _count_lines(values: Counter[str]) -> str:
    return ", ".join(f"{key} ({count})" for key, count in sorted(values.items()))


COMMAND = CliCommand("rotate-master-key", "reseal everything under the first master key", add_ini_arguments, run)

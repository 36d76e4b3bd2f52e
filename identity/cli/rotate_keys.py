"""identity rotate-keys: the next signing key, or the present ones sealed anew."""

from argparse import ArgumentParser, Namespace

from identity.cli.program import add_ini_arguments, opened
from identity.operations import Command


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --emergency or --rewrap."""
    add_ini_arguments(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--emergency", action="store_true", help="sign with the new key after 30 seconds, without announcing it first"
    )
    how.add_argument(
        "--rewrap",
        action="store_true",
        help="make no key; seal the present ones under the first of identity.master_keys",
    )


def run(arguments: Namespace) -> int:
    """Announce the next signing key, unless one is waiting already; or seal anew."""
    with opened(arguments) as identity:
        if arguments.rewrap:
            with identity.transaction() as services:
                count = services.signing_keys.rewrap()
            print(f"{count} signing keys were sealed under the master key {identity.process.ring.sealer.active_id}.")
            return 0
        with identity.transaction() as services:
            present = {key.id for key in services.storage.signing_keys.all()}
            key = services.signing_keys.rotate(emergency=arguments.emergency)
            new = key.id not in present
    print(
        f"{'The new signing key' if new else 'No key was made: the signing key'} {key.id}"
        f" {'' if new else 'waits already; it '}signs from {key.active_at:%Y-%m-%d %H:%M:%S} UTC."
    )
    return 0


COMMAND = Command("rotate-keys", "announce the next signing key, or seal the present ones anew", add_arguments, run)

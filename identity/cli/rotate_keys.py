"""identity rotate-keys: the next signing key."""

from argparse import ArgumentParser, Namespace

from identity.cli.program import add_ini_arguments, opened
from identity.operations import Command


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --emergency."""
    add_ini_arguments(parser)
    parser.add_argument(
        "--emergency", action="store_true", help="sign with the new key after 30 seconds, without announcing it first"
    )


def run(arguments: Namespace) -> int:
    """Announce the next signing key, unless one is waiting already."""
    with opened(arguments) as identity, identity.transaction() as services:
        present = {key.id for key in services.storage.signing_keys.all()}
        key = services.signing_keys.rotate(emergency=arguments.emergency)
        new = key.id not in present
    print(
        f"{'The new signing key' if new else 'No key was made: the signing key'} {key.id}"
        f" {'' if new else 'waits already; it '}signs from {key.active_at:%Y-%m-%d %H:%M:%S} UTC."
    )
    return 0


COMMAND = Command("rotate-keys", "announce the next signing key", add_arguments, run)

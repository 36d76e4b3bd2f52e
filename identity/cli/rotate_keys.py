"""identity rotate-keys: announce the next signing key, or withdraw compromised ones."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from identity.cli.command_context import CommandError, add_ini_arguments, open_application
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.domain.signing_keys import WithdrawalImpact
    from identity.services.signing_keys import SigningKeyState

_ALL_KEYS = "all"


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--algorithm", metavar="NAME", help="the algorithm of the key; by default the service's first")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--emergency", action="store_true", help="sign with the new key after 30 seconds, without announcing it first"
    )
    mode.add_argument(
        "--withdraw",
        metavar="KID",
        action="append",
        default=[],
        help="stop publishing and accepting a compromised key at once; a new key signs"
        " in place of the active one; may be given several times; all withdraws every key",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="with --withdraw: say what would end, and change nothing"
    )


def run(arguments: Namespace) -> int:
    """Announce the next signing key unless one is announced already; or withdraw keys."""
    if arguments.dry_run and not arguments.withdraw:
        raise CommandError("--dry-run is for --withdraw.")
    return _withdraw_keys(arguments) if arguments.withdraw else _rotate_key(arguments)


def _rotate_key(arguments: Namespace) -> int:
    from identity.domain.signature_algorithms import SignatureAlgorithm

    algorithm = None if arguments.algorithm is None else SignatureAlgorithm.from_name(arguments.algorithm)
    if arguments.algorithm is not None and algorithm is None:
        raise CommandError(f"There is no algorithm {arguments.algorithm}.")
    with open_application(arguments) as identity, identity.transaction() as services:
        present = {key_state.key.id for key_state in services.signing_keys.list_key_states()}
        key = services.signing_keys.rotate(algorithm, emergency=arguments.emergency)
        new = key.id not in present
    print(
        f"{'The new signing key' if new else 'No key was made: the signing key'} {key.id}"
        f" {'' if new else 'waits already; it '}signs from {key.active_at:%Y-%m-%d %H:%M:%S} UTC."
    )
    return 0


def _withdraw_keys(arguments: Namespace) -> int:
    with open_application(arguments) as identity:
        from identity.services.signing_keys import CACHE_AGE

        with identity.transaction() as services:
            states = services.signing_keys.list_key_states()
            chosen = _select_key_ids(arguments.withdraw, states)
            impacts = [services.signing_keys.withdrawal_impact(key_id) for key_id in chosen]
            new = () if arguments.dry_run else services.signing_keys.withdraw(chosen)
    for impact in impacts:
        verb = "would be" if arguments.dry_run else "is"
        print(f"The signing key {impact.key.id} ({impact.key.algorithm}) {verb} withdrawn.")
        print(f"  {_describe_impact(impact)}")
    if arguments.dry_run:
        print("Nothing was changed.")
        return 0
    for key in new:
        print(f"The new signing key {key.id} signs from now on.")
    replaced = {key.algorithm for key in new}
    unreplaced = {
        state.key.algorithm for state in states if state.state == "active" and state.key.id in chosen
    } - replaced
    if unreplaced:
        print(
            f"No key could be created for {', '.join(sorted(unreplaced))}: see the log. Run `identity rotate-keys"
            " --emergency` once the signer is back, or `identity bootstrap` if there is no key any more."
        )
    elif not new:
        print("The active signing key goes on signing.")
    print(f"Every process follows within {CACHE_AGE.seconds} seconds, clients when they fetch the key list again.")
    return 0


def _describe_impact(impact: "WithdrawalImpact") -> str:
    number = f"{'' if impact.is_exact else 'more than '}{impact.live_tokens}"
    return (
        f"The service refuses the JWT access tokens that it signed, of {number} issued while it was active, and its ID"
        f" tokens as hints. Others may accept both until {impact.accepted_until:%Y-%m-%d %H:%M:%S} UTC, longer if they"
        " ignore the age of the key list."
    )


def _select_key_ids(requested: Sequence[str], stored: "Sequence[SigningKeyState]") -> tuple[str, ...]:
    """The distinct requested ids. Raises CommandError, listing the existing ids, if one is unknown."""
    ids = tuple(key_state.key.id for key_state in stored)
    chosen = ids if _ALL_KEYS in requested else tuple(dict.fromkeys(requested))
    for key_id in chosen:
        if key_id not in ids:
            listed = ", ".join(f"{key_state.key.id} ({key_state.state})" for key_state in stored)
            raise CommandError(f"There is no signing key {key_id}. There are: {listed or 'none'}.")
    return chosen


COMMAND = CliCommand("rotate-keys", "announce the next signing key, or withdraw a compromised one", add_arguments, run)

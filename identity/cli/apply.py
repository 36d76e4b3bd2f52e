"""identity apply: bring the instance to the state that a file describes."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identity.cli.command_context import CommandError, add_ini_arguments, open_application
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.secret_files import SecretFileWriter
    from identity.services.commands.desired_state import DesiredState
    from identity.services.container import Services
    from identity.services.desired_state.apply import ApplyResult
    from identity.services.desired_state.reconciler import StateChange

_ACTION_SIGNS = {"add": "+", "change": "~", "remove": "-"}
_EXIT_WOULD_CHANGE = 2


class _DryRunRollback(Exception):
    """Rolls back the transaction of a dry run."""


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        type=Path,
        required=True,
        help="the desired state as YAML, or as JSON if the name ends in .json",
    )
    parser.add_argument("--plan", action="store_true", help="change nothing; exit with 2 if something would change")
    parser.add_argument(
        "--prune", action="store_true", help="remove what the lists in the file do not name; asks for confirmation"
    )
    parser.add_argument("--yes", action="store_true", help="remove without asking for confirmation")
    parser.add_argument(
        "--keys-out", metavar="FOLDER", type=Path, help="folder for the files of generated keys, mode 0600"
    )
    parser.add_argument(
        "--secrets-out",
        metavar="FILE",
        type=Path,
        help="create a secret for applications without one and add it to this JSON file, mode 0600",
    )


def run(arguments: Namespace) -> int:
    """Show the differences and apply them in one transaction."""
    from identity.cli.desired_state_file import read_desired_state_file

    values = read_desired_state_file(arguments.file)
    with open_application(arguments) as identity:
        from identity.domain.errors import Invalid
        from identity.services.desired_state.apply import parse_desired_state

        try:
            return _apply_state(identity, parse_desired_state(values), arguments)
        except Invalid as problem:
            for path, sentence in problem.fields.items():
                print(f"{path}: {sentence}", file=sys.stderr)
            raise CommandError(f"{arguments.file} was not applied; nothing is changed.") from None


def _apply_state(identity: "IdentityApplication", state: "DesiredState", arguments: Namespace) -> int:
    if arguments.plan:
        planned = _dry_run(identity, state, arguments)
        _print_changes(planned)
        print(_summary_line(planned, "Plan: {} to add, {} to change, {} to remove."))
        return _EXIT_WOULD_CHANGE if planned else 0
    agreed = None
    if arguments.prune and not arguments.yes:
        agreed = _confirm_removals(_dry_run(identity, state, arguments))
    applied = _apply_confirmed(identity, state, arguments, agreed)
    if not agreed:
        _print_changes(applied.state_changes)
    print(_summary_line(applied.state_changes, "Done: {} added, {} changed, {} removed."))
    if applied.applications:
        print("\nApplications, with their client ids:")
    for application in applied.applications:
        print(f"  {application.client_id}  {application.name}")
    return 0


def _dry_run(identity: "IdentityApplication", state: "DesiredState", arguments: Namespace) -> "Sequence[StateChange]":
    """The changes, applied and rolled back."""
    changes: list[StateChange] = []
    with suppress(_DryRunRollback), identity.transaction() as services:
        changes += _run_apply(services, state, arguments).state_changes
        raise _DryRunRollback
    return changes


def _apply_confirmed(
    identity: "IdentityApplication", state: "DesiredState", arguments: Namespace, agreed: "Set[tuple[str, str]] | None"
) -> "ApplyResult":
    """The applied changes. Files and transaction succeed together or not at all. Raises CommandError."""
    from identity.secret_files import secret_file_transaction

    with secret_file_transaction() as write, identity.transaction() as services:
        applied = _run_apply(services, state, arguments)
        if agreed is not None and _list_removals(applied.state_changes) != agreed:
            raise CommandError("Something else would be removed by now. Nothing is changed; run it again.")
        _write_key_files(write, applied, arguments.keys_out)
        _write_secrets(write, applied, arguments.secrets_out)
    return applied


def _run_apply(services: "Services", state: "DesiredState", arguments: Namespace) -> "ApplyResult":
    from identity.services.access_control import Principal
    from identity.services.desired_state.apply import apply_desired_state

    with_secrets = arguments.secrets_out is not None
    return apply_desired_state(
        services, state, principal=Principal.OPERATOR, prune=arguments.prune, with_secrets=with_secrets
    )


def _write_key_files(write: "SecretFileWriter", applied: "ApplyResult", folder: Path | None) -> None:
    if applied.key_files and folder is None:
        raise CommandError("A key is to be generated. Name a folder for its file with --keys-out. Nothing is changed.")
    for login_name, file in applied.key_files:
        path = Path(folder or "") / f"{login_name}.json"
        if path.exists():
            raise CommandError(f"{path} exists already; move it away, or choose another folder. Nothing is changed.")
        write(path, file.to_json())


def _write_secrets(write: "SecretFileWriter", applied: "ApplyResult", path: Path | None) -> None:
    new = {
        registered_credentials.client_id: {
            "name": registered_credentials.name,
            "client_secret": registered_credentials.secret,
        }
        for registered_credentials in applied.applications
        if registered_credentials.secret is not None
    }
    if path is not None and new:
        write(path, json.dumps({**_read_existing_secrets(path), **new}, indent=2, ensure_ascii=False))


def _read_existing_secrets(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    try:
        present = json.loads(path.read_text("utf-8"))
    except ValueError:
        present = None
    if not isinstance(present, dict) or not all(map(_is_secret_entry, present.values())):
        raise CommandError(f"{path} exists and holds something else; choose another file. Nothing is changed.")
    return present


def _is_secret_entry(value: object) -> bool:
    return isinstance(value, dict) and "client_secret" in value


def _confirm_removals(changes: "Sequence[StateChange]") -> "Set[tuple[str, str]]":
    """The removals, once confirmed. Raises CommandError."""
    removals = _list_removals(changes)
    if not removals:
        return removals
    _print_changes(changes)
    if not sys.stdin.isatty():
        raise CommandError("Something is to be removed, and nobody is there to agree. Add --yes. Nothing is changed.")
    if not _prompt_yes(f"\nRemove {len(removals)}? Type yes: "):
        raise CommandError("Nothing is changed.")
    return removals


def _prompt_yes(question: str) -> bool:
    try:
        return input(question).strip() == "yes"
    except EOFError:
        return False


def _list_removals(changes: "Sequence[StateChange]") -> set[tuple[str, str]]:
    return {(change.kind, change.name) for change in changes if change.action == "remove"}


def _print_changes(changes: "Sequence[StateChange]") -> None:
    for change in changes:
        detail = f"   ({change.detail})" if change.detail else ""
        print(f"{_ACTION_SIGNS[change.action]} {change.kind} {change.name}{detail}")


def _summary_line(changes: "Sequence[StateChange]", template: str) -> str:
    if not changes:
        return "Everything is as described; nothing to change."
    actions = [change.action.value for change in changes]
    return template.format(*map(actions.count, _ACTION_SIGNS))


COMMAND = CliCommand("apply", "bring the instance to the state that a file describes", add_arguments, run)

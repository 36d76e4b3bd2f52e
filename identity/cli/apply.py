"""identity apply: an instance brought to the state that a file describes."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identity.cli.program import Failed, add_ini_arguments, opened
from identity.operations import Command

if TYPE_CHECKING:
    from identity.process import Identity
    from identity.secret_files import SecretFiles
    from identity.services.apply import Applied
    from identity.services.bundle import Services
    from identity.services.commands.descriptions import State
    from identity.services.described.build import Change

_SIGNS = {"add": "+", "change": "~", "remove": "-"}
_WOULD_CHANGE = 2


class _OnlyPlanned(Exception):
    """Ends a transaction of which nothing is to stay."""


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, -f FILE, --plan, --prune, --yes, --keys-out, --secrets-out."""
    add_ini_arguments(parser)
    parser.add_argument(
        "-f", "--file", metavar="FILE", type=Path, required=True, help="the state as YAML, or JSON if it ends in .json"
    )
    parser.add_argument("--plan", action="store_true", help="change nothing; exit with 2 if something would change")
    parser.add_argument("--prune", action="store_true", help="remove what the file's lists do not name; asks first")
    parser.add_argument("--yes", action="store_true", help="do not ask before something is removed")
    parser.add_argument("--keys-out", metavar="FOLDER", type=Path, help="where files of generated keys go, mode 0600")
    parser.add_argument(
        "--secrets-out",
        metavar="FILE",
        type=Path,
        help="give applications without a secret one, and add it to this JSON file, mode 0600",
    )


def run(arguments: Namespace) -> int:
    """Say what is different, and make it so in one transaction."""
    from identity.cli.state_file import read_state_file

    values = read_state_file(arguments.file)
    with opened(arguments) as identity:
        from identity.domain.errors import Invalid
        from identity.services.apply import read_state

        try:
            return _apply(identity, read_state(values), arguments)
        except Invalid as problem:
            for path, sentence in problem.fields.items():
                print(f"{path}: {sentence}", file=sys.stderr)
            raise Failed(f"{arguments.file} was not applied; nothing is changed.") from None


def _apply(identity: "Identity", state: "State", arguments: Namespace) -> int:
    if arguments.plan:
        planned = _planned(identity, state, arguments)
        _tell(planned)
        print(_summary(planned, "Plan: {} to add, {} to change, {} to remove."))
        return _WOULD_CHANGE if planned else 0
    agreed = None
    if arguments.prune and not arguments.yes:
        agreed = _agreed(_planned(identity, state, arguments))
    applied = _applied(identity, state, arguments, agreed)
    if not agreed:
        _tell(applied.changes)
    print(_summary(applied.changes, "Done: {} added, {} changed, {} removed."))
    if applied.applications:
        print("\nApplications, with their client ids:")
    for application in applied.applications:
        print(f"  {application.client_id}  {application.name}")
    return 0


def _planned(identity: "Identity", state: "State", arguments: Namespace) -> "Sequence[Change]":
    """What would change: it is done, and then taken back."""
    changes: list[Change] = []
    with suppress(_OnlyPlanned), identity.transaction() as services:
        changes += _walked(services, state, arguments).changes
        raise _OnlyPlanned
    return changes


def _applied(
    identity: "Identity", state: "State", arguments: Namespace, agreed: "Set[tuple[str, str]] | None"
) -> "Applied":
    """What was applied: the files and the transaction are made together, or neither is. Raises Failed."""
    from identity.secret_files import secret_files

    with secret_files() as write, identity.transaction() as services:
        applied = _walked(services, state, arguments)
        if agreed is not None and _removals(applied.changes) != agreed:
            raise Failed("Something else would be removed by now. Nothing is changed; run it again.")
        _write_key_files(write, applied, arguments.keys_out)
        _write_secrets(write, applied, arguments.secrets_out)
    return applied


def _walked(services: "Services", state: "State", arguments: Namespace) -> "Applied":
    from identity.services.access import THE_OPERATOR
    from identity.services.apply import apply

    with_secrets = arguments.secrets_out is not None
    return apply(services, state, by=THE_OPERATOR, prune=arguments.prune, with_secrets=with_secrets)


def _write_key_files(write: "SecretFiles", applied: "Applied", folder: Path | None) -> None:
    if applied.key_files and folder is None:
        raise Failed("A key is to be generated. Name a folder for its file with --keys-out. Nothing is changed.")
    for login_name, file in applied.key_files:
        path = Path(folder or "") / f"{login_name}.json"
        if path.exists():
            raise Failed(f"{path} exists already; move it away, or choose another folder. Nothing is changed.")
        write(path, file.to_json())


def _write_secrets(write: "SecretFiles", applied: "Applied", path: Path | None) -> None:
    new = {
        one.client_id: {"name": one.name, "client_secret": one.secret}
        for one in applied.applications
        if one.secret is not None
    }
    if path is not None and new:
        write(path, json.dumps({**_present_secrets(path), **new}, indent=2, ensure_ascii=False))


def _present_secrets(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    try:
        present = json.loads(path.read_text("utf-8"))
    except ValueError:
        present = None
    if not isinstance(present, dict) or not all(map(_is_entry, present.values())):
        raise Failed(f"{path} exists and holds something else; choose another file. Nothing is changed.")
    return present


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and "client_secret" in value


def _agreed(changes: "Sequence[Change]") -> "Set[tuple[str, str]]":
    """What is to be removed, once somebody agreed to it; then everything is told. Raises Failed."""
    removals = _removals(changes)
    if not removals:
        return removals
    _tell(changes)
    if not sys.stdin.isatty():
        raise Failed("Something is to be removed, and nobody is there to agree. Add --yes. Nothing is changed.")
    if not _says_yes(f"\nRemove {len(removals)}? Type yes: "):
        raise Failed("Nothing is changed.")
    return removals


def _says_yes(question: str) -> bool:
    try:
        return input(question).strip() == "yes"
    except EOFError:
        return False


def _removals(changes: "Sequence[Change]") -> set[tuple[str, str]]:
    return {(change.kind, change.name) for change in changes if change.action == "remove"}


def _tell(changes: "Sequence[Change]") -> None:
    for change in changes:
        detail = f"   ({change.detail})" if change.detail else ""
        print(f"{_SIGNS[change.action]} {change.kind} {change.name}{detail}")


def _summary(changes: "Sequence[Change]", words: str) -> str:
    """How many of each kind of change; ``words`` has a gap for each of the three numbers."""
    if not changes:
        return "Everything is as described; nothing to change."
    actions = [change.action.value for change in changes]
    return words.format(*map(actions.count, _SIGNS))


COMMAND = Command("apply", "bring the instance to the state that a file describes", add_arguments, run)

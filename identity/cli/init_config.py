"""identity init-config: write the first ini files."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from identity.cli.command_context import CommandError
from identity.extension_points import CliCommand

_TEMPLATE_FOLDER = Path(__file__).parent / "config_templates"
_VARIABLE = re.compile(r"^(\w+) =.*$", re.MULTILINE)
_SECTION = re.compile(r"^\[(?!DEFAULT\])", re.MULTILINE)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=Path(), help="folder to write to (default: the current one)")
    parser.add_argument(
        "variables",
        metavar="NAME=VALUE",
        nargs="*",
        help="a value for [DEFAULT] of production.ini, for example issuer=https://id.example.com",
    )


def run(arguments: Namespace) -> int:
    """Write both files and print what to do next. Overwrites nothing, and writes nothing if one file cannot be
    written.
    """
    folder: Path = arguments.folder
    variables = dict(variable.split("=", 1) for variable in arguments.variables)
    texts = {path.name: path.read_text("utf-8") for path in sorted(_TEMPLATE_FOLDER.glob("*.ini"))}
    texts["production.ini"] = _fill_in_variables(texts["production.ini"], variables)
    existing = [name for name in texts if (folder / name).exists()]
    if existing:
        raise CommandError(f"{folder / existing[0]} is there already. Choose another folder, or move it away.")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                written.append(folder / name)
                file.write(text)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    print(f"{' and '.join(map(str, written))} are written. Next:")
    print(f"  identity serve -c {folder / 'development.ini'}    # a first look, at http://localhost:8080")
    print(f"For production, follow the lines on top of {folder / 'production.ini'}.")
    return 0


def _fill_in_variables(text: str, variables: Mapping[str, str]) -> str:
    """The text with these variables in its [DEFAULT]. Raises CommandError for unknown variables and multi-line
    values.
    """
    section = _SECTION.search(text)
    end = len(text) if section is None else section.start()
    head, rest = text[:end], text[end:]
    known = _VARIABLE.findall(head)
    for name, value in variables.items():
        if name not in known:
            raise CommandError(f"production.ini has no variable {name}. It has {', '.join(known)}.")
        if not value.isprintable():
            raise CommandError(f"The value of {name} has to be one line.")
    assignments = {name: f"{name} = {value}".rstrip() for name, value in variables.items()}
    return _VARIABLE.sub(lambda line: assignments.get(line[1], line[0]), head) + rest


COMMAND = CliCommand("init-config", "write a first development.ini and production.ini", add_arguments, run)

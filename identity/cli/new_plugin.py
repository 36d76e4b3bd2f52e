"""identity new-plugin: create the skeleton of a plugin with tests."""

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from string import Template

from identity.cli.command_context import CommandError
from identity.extension_points import CliCommand

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TEMPLATE_FOLDER = Path(__file__).parent / "plugin_template"

#: Where the files of the template go.
_TEMPLATE_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "plugin.py.txt": "identity_{name}/__init__.py",
    "conftest.py.txt": "tests/conftest.py",
    "test_plugin.py.txt": "tests/test_plugin.py",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="its name in the ini file: lower-case letters, digits, underscores"
    )
    parser.add_argument(
        "--folder", type=Path, metavar="FOLDER", help="folder to write to (default: identity-NAME in the current one)"
    )


def run(arguments: Namespace) -> int:
    from identity.hookspecs import HOOKSPEC_VERSION

    name = arguments.name
    if not _NAME.fullmatch(name):
        raise CommandError("Choose a name of small letters, digits and underscores that begins with a letter.")
    folder = arguments.folder or Path(f"identity-{name}")
    if folder.exists() and any(folder.iterdir()):
        raise CommandError(f"{folder} holds something already. Choose another folder.")
    for source, target in _TEMPLATE_FILES.items():
        path = folder / target.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template((_TEMPLATE_FOLDER / source).read_text("utf-8")).substitute(name=name, version=HOOKSPEC_VERSION)
        path.write_text(text, "utf-8")
    print(f"The plugin {name} is in {folder}. Next:")
    print(f"  pip install --editable {folder}")
    print(f"  python -m pytest --identity-plugin={name} {folder / 'tests'}")
    print(f"Then list {name} in identity.plugins.")
    return 0


COMMAND = CliCommand("new-plugin", "write the skeleton of a plugin with tests", add_arguments, run)

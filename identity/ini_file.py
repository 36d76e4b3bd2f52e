"""Reads ini files with the NAME=VALUE arguments of the command line.

In PasteDeploy, the file's [DEFAULT] wins over the variables of ``pserve FILE NAME=VALUE``, so that a variable with a
default could not be overridden. This module reads the file again and lets the command line win.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from configparser import Error as ParserError
from configparser import (
    InterpolationMissingOptionError,
    InterpolationSyntaxError,
    MissingSectionHeaderError,
    ParsingError,
    RawConfigParser,
)
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import plaster
from plaster_pastedeploy import Loader

from identity.settings_parser import InvalidSetting

APP_SECTION = "app:main"
SERVER_SECTION = "server:main"

#: A variable, or %% for a literal %.
_INTERPOLATION = re.compile(r"%(?:%|\(([^)\s]+)\)s)")
#: A section taken from another file.
_INCLUDED_FILE = re.compile(r"(?<!\S)config:([^\s#?]+)")
#: Not interpolated: logging interpolates the values of a log record here.
_LOG_FORMAT_KEYS = frozenset({"format", "datefmt"})
#: Variables that PasteDeploy defines for every file.
_PASTEDEPLOY_VARIABLES = frozenset({"here", "__file__"})

#: Suppresses the getting-started text of a service in development.
QUIET_VARIABLE = "__quiet__"
#: Keys that PasteDeploy takes out of a section.
_PASTEDEPLOY_KEYS = frozenset({"use", "paste.app_factory", "paste.server_factory"})


class MissingSection(InvalidSetting):
    pass


def read_section(path: str, section: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The settings of one section. ``variables`` win over the file's [DEFAULT] and use its syntax (% as %%).

    Raises InvalidSetting if the file is not an ini file or lacks the section, OSError if it cannot be read.
    """
    found = _load_section(path, section, variables)
    return {key: value for key, value in found.items() if key not in _PASTEDEPLOY_KEYS}


def read_server_section(path: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The settings of [server:main], including ``use``; empty if there is no such section.

    Raises InvalidSetting and OSError as ``read_section`` does.
    """
    try:
        return dict(_load_section(path, SERVER_SECTION, variables))
    except MissingSection:
        return {}


def check_variables(path: str, variables: Iterable[str]) -> None:
    """Raise InvalidSetting for a variable that has no effect because the file neither defines nor uses it. Raises
    OSError.
    """
    names = _read_variable_names(path)
    if names is None:
        # Reading the settings reports the error.
        return
    known = names.all_names - _PASTEDEPLOY_VARIABLES
    for name in variables:
        # Programs add variables that begin with an underscore.
        if name not in names.all_names and not name.startswith("__"):
            near = get_close_matches(name.lower(), sorted(known), n=1)
            meant = f"Is {near[0]} meant?" if near else f"It knows {', '.join(sorted(known)) or 'none'}."
            raise InvalidSetting(name, f"is no variable of {Path(path.partition('#')[0]).name}. {meant}")


def read_last_run(path: str) -> dict[str, str]:
    """The variables with which the service was last started, from the file named by ``read_last_run`` in [DEFAULT].

    Empty if no file is named or nothing is recorded. Raises InvalidSetting and OSError as ``read_section`` does.
    """
    noted = _load_section(path, APP_SECTION, {}).global_conf.get("last_run")
    lines = Path(noted).read_text().splitlines() if noted and Path(noted).exists() else []
    return dict(line.split("=", 1) for line in lines if "=" in line)


def save_last_run(global_config: Mapping[str, str]) -> None:
    """Record the variables that ``noted`` in [DEFAULT] names in the file ``read_last_run``. Raises InvalidSetting and
    OSError.

    Call it only after the service is assembled, so that a failed start does not overwrite the record of a running
    one.
    """
    names, path = global_config.get("noted", "").split(), global_config.get("last_run")
    unknown = [name for name in names if name not in global_config]
    if unknown:
        raise InvalidSetting("noted", f"names {unknown[0]}, which [DEFAULT] does not have")
    if names and path:
        lines = [f"{name}={global_config[name].replace('%', '%%')}\n" for name in names]
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("".join(lines))


def setup_logging(path: str, variables: Mapping[str, str]) -> None:
    """Configure logging from the ini file."""
    _create_loader(path).setup_logging(dict(variables))


def load_wsgi_app(path: str, variables: Mapping[str, str], *, print_getting_started: bool = True) -> Any:
    """The application of the ini file's [app:main], as ``pserve`` builds it.

    Unknown ``variables`` are ignored: they were checked before, and the file may have changed since, as at a reload.
    """
    names = _read_variable_names(path)
    known = {name: value for name, value in variables.items() if names is None or name in names.all_names}
    return _create_loader(path).get_wsgi_app(None, known if print_getting_started else {**known, QUIET_VARIABLE: "yes"})


def apply_variables(global_config: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that PasteDeploy passed to a factory, with the values of the command line.

    Settings that do not come from an ini file are returned unchanged.
    """
    path = global_config.get("__file__")
    if path is None:
        return dict(settings)
    # PasteDeploy drops a setting of the same name, so unknown variables are refused first.
    check_variables(path, global_config)
    without_default = _required_variables(path, global_config)
    for section in _create_loader(path).get_sections():
        # Logging sections contain % signs that the ini file's parser must not interpolate.
        if ":" in section and read_section(path, section, without_default) == settings:
            return read_section(path, section, _command_line_values(path, section, global_config))
    return dict(settings)


def read_server_settings(global_config: Mapping[str, str]) -> dict[str, str]:
    """``read_server_section`` for the file from which PasteDeploy builds an application; empty without a file."""
    path = global_config.get("__file__")
    try:
        return (
            {} if path is None else read_server_section(path, _command_line_values(path, SERVER_SECTION, global_config))
        )
    except MissingSection:
        return {}


def _command_line_values(path: str, section: str, global_config: Mapping[str, str]) -> dict[str, str]:
    """The values of the command line, which PasteDeploy merges with the file's [DEFAULT]."""
    without_default = _required_variables(path, global_config)
    defaults = _load_section(path, section, without_default).global_conf
    return without_default | {name: value for name, value in global_config.items() if value != defaults.get(name)}


def _required_variables(path: str, global_config: Mapping[str, str]) -> dict[str, str]:
    """Values of variables that the file uses but does not define; without them it cannot be read."""
    names = _read_variable_names(path)
    needed = names.interpolated - names.defaults - _PASTEDEPLOY_VARIABLES if names else frozenset[str]()
    return {name: global_config[name] for name in needed if name in global_config}


class _VariableNames(NamedTuple):
    defaults: frozenset[str]
    interpolated: frozenset[str]
    #: From ``set NAME = VALUE`` in sections.
    section_assignments: frozenset[str]
    #: Defined by files that this one includes.
    from_included_files: frozenset[str]

    @property
    def all_names(self) -> frozenset[str]:
        return (
            self.defaults
            | self.interpolated
            | self.section_assignments
            | self.from_included_files
            | _PASTEDEPLOY_VARIABLES
        )


def _read_variable_names(path: str, users: tuple[Path, ...] = ()) -> _VariableNames | None:
    """None if it is not an ini file. Raises OSError."""
    file = Path(path.partition("#")[0])
    parser = RawConfigParser(strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(file.read_text("utf-8"))
    except (ParserError, UnicodeDecodeError):
        return None
    lines = [
        (key, value or "")
        for section in ("DEFAULT", *parser.sections())
        for key, value in parser[section].items()
        if not (section.startswith("formatter_") and key in _LOG_FORMAT_KEYS)
    ]
    return _VariableNames(
        defaults=frozenset(parser.defaults()),
        interpolated=frozenset(
            [name for _, value in lines for name in _INTERPOLATION.findall(value) if name]
            + [value.strip() for key, value in lines if key.startswith("get ")]
        ),
        section_assignments=frozenset(key.removeprefix("set ").strip() for key, _ in lines if key.startswith("set ")),
        from_included_files=frozenset(
            _names_in_included_files(file, (value for _, value in lines), (*users, file.resolve()))
        ),
    )


def _names_in_included_files(file: Path, values: Iterable[str], users: tuple[Path, ...]) -> Iterator[str]:
    """The names defined by files included as ``config:FILE``."""
    folder = file.absolute().parent
    for name in {name for value in values for name in _INCLUDED_FILE.findall(value)}:
        other = folder / name.replace("%(here)s", str(folder))
        if other.is_file() and other.resolve() not in users:
            names = _read_variable_names(str(other), users)
            yield from names.all_names if names else ()


def _load_section(path: str, section: str, variables: Mapping[str, str]) -> Any:
    name = Path(path.partition("#")[0]).name
    try:
        loader = _create_loader(path)
        if section not in loader.get_sections():
            raise MissingSection(name, f"has no section [{section}]")
        return loader.get_settings(section, dict(variables))
    except (ParserError, ValueError, LookupError, plaster.PlasterError) as problem:
        raise InvalidSetting(name, f"cannot be used as an ini file: {_parse_error_reason(problem)}") from None


def _create_loader(path: str) -> Loader:
    """The loader of pserve; plaster would search all installed packages for it."""
    return Loader(plaster.parse_uri(path))


def _parse_error_reason(problem: Exception) -> str:
    """What is wrong and where, without values, which may contain a password."""
    if isinstance(problem, MissingSectionHeaderError):
        return f"line {problem.lineno} stands below no [section]"
    if isinstance(problem, ParsingError):
        lines = ", ".join(str(number) for number, _ in problem.errors)
        return f"no NAME = VALUE in line {lines}"
    if isinstance(problem, InterpolationMissingOptionError):
        return f"{problem.option} in [{problem.section}] needs {problem.reference}, which [DEFAULT] does not have"
    if isinstance(problem, InterpolationSyntaxError):
        return f"{problem.option} in [{problem.section}] has a % that stands for itself: write %%"
    if isinstance(problem, plaster.InvalidURI):
        return "its name has to end in .ini"
    return (str(problem) or type(problem).__name__).splitlines()[0]

"""The ``identity`` program, one module per command. A command imports what it needs only when it runs."""

import os
import re
import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from identity import __version__
from identity.cli import (
    add_manager,
    apply,
    audit,
    backup,
    bootstrap,
    check,
    demo,
    export,
    import_,
    import_users,
    init_config,
    legal_hold,
    master_key,
    mcp,
    migrate,
    new_plugin,
    password_link,
    plugins,
    purge,
    recover_admin,
    registration,
    restore,
    revoke_access,
    rotate_keys,
    rotate_master_key,
    serve,
    service_user_secret,
    status,
    token,
)
from identity.cli.command_context import CommandError, add_ini_arguments, load_application, translate_errors
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication

_COMMAND_GROUPS: Mapping[str, tuple[CliCommand, ...]] = {
    "Set up": (
        init_config.COMMAND,
        master_key.COMMAND,
        migrate.COMMAND,
        bootstrap.COMMAND,
        check.COMMAND,
        serve.COMMAND,
    ),
    "Operate": (
        add_manager.COMMAND,
        recover_admin.COMMAND,
        password_link.COMMAND,
        revoke_access.COMMAND,
        service_user_secret.COMMAND,
        registration.COMMAND,
        rotate_keys.COMMAND,
        rotate_master_key.COMMAND,
        apply.COMMAND,
        export.COMMAND,
        import_.COMMAND,
        import_users.COMMAND,
        audit.COMMAND,
        backup.COMMAND,
        restore.COMMAND,
        purge.COMMAND,
        legal_hold.COMMAND,
        status.COMMAND,
        plugins.COMMAND,
    ),
    "Use as a client": (token.COMMAND, demo.COMMAND, mcp.COMMAND),
    "Extend": (new_plugin.COMMAND,),
}
_BUILTIN_COMMANDS = {command.name: command for group in _COMMAND_GROUPS.values() for command in group}
_CONFIG_OPTION = re.compile(r"-c.*|--config(?:=.*)?")
_VARIABLE_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*=", re.ASCII)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 success, 1 failure, 2 usage error."""
    command_line = list(sys.argv[1:] if argv is None else argv)
    identity = None
    try:
        identity = _load_application_for_plugins(command_line)
        parser = _create_parser(() if identity is None else _plugin_commands(identity))
        arguments = _parse_arguments(parser, command_line)
        arguments.identity = identity
        with translate_errors():
            status: int = arguments.run(arguments)
        sys.stdout.flush()
    except CommandError as failure:
        print(f"identity: {failure}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has gone; prevents an error when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if identity is not None:
            identity.close()
    return status


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nRun `{self.prog} --help`.\n")


class _ProgramParser(_Parser):
    groups: Mapping[str, Sequence[CliCommand]] = _COMMAND_GROUPS

    def format_help(self) -> str:
        width = max(len(command.name) for group in self.groups.values() for command in group) + 3
        lines = ["usage: identity COMMAND …", "", "Set up, operate and use an identity service."]
        for title, commands in self.groups.items():
            lines += ["", f"{title}:"]
            lines += [f"  {command.name:<{width}}{command.help}" for command in commands]
        lines += [
            "",
            "`identity COMMAND --help` shows the options of a command. Commands for the service take its ini file",
            "with -c INI, and variables in it as NAME=VALUE. `identity serve` starts the service.",
            "",
        ]
        return "\n".join(lines)


def _create_parser(from_plugins: Sequence[CliCommand]) -> ArgumentParser:
    parser = _ProgramParser(prog="identity", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"identity {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True, parser_class=_Parser)
    for command in _BUILTIN_COMMANDS.values():
        _add_command_parsers(commands, command)
    for command in from_plugins:
        add_ini_arguments(_add_command_parsers(commands, command))
    if from_plugins:
        parser.groups = {**_COMMAND_GROUPS, "From plugins": from_plugins}
    return parser


def _add_command_parsers(commands: "_SubParsersAction[_Parser]", command: CliCommand) -> ArgumentParser:
    parser = commands.add_parser(command.name, description=_capitalize(command.help), allow_abbrev=False)
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)
    return parser


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:].removesuffix(".") + "."


def _parse_arguments(parser: ArgumentParser, argv: list[str]) -> Namespace:
    """Parse the arguments. NAME=VALUE may appear anywhere after the command, which argparse does not support."""
    if not argv:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    arguments, rest = parser.parse_known_args(argv)
    assigned = getattr(arguments, "variables", None)
    variables = [*(assigned or ()), *rest]
    wrong = (
        rest if assigned is None else [variable for variable in variables if not _VARIABLE_ASSIGNMENT.match(variable)]
    )
    if wrong:
        parser.error(f"{arguments.command} does not understand {' '.join(wrong)}")
    if assigned is not None:
        arguments.variables = variables
    return arguments


def _load_application_for_plugins(argv: list[str]) -> "IdentityApplication | None":
    """The service whose plugins may offer the requested command; None for a command of the core."""
    command = next((argument for argument in argv if not argument.startswith("-")), None)
    if command in _BUILTIN_COMMANDS or not any(_CONFIG_OPTION.fullmatch(argument) for argument in argv):
        return None
    finder = ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("-c", "--config", dest="ini")
    found, rest = finder.parse_known_args(argv)
    found.variables = [argument for argument in rest if _VARIABLE_ASSIGNMENT.match(argument)]
    return load_application(found) if found.ini else None


def _plugin_commands(identity: "IdentityApplication") -> list[CliCommand]:
    with translate_errors():
        offered = identity.plugin_host.extensions_by_name("identity_commands", lambda item: str(item.name), "command")
    for name in offered:
        if name in _BUILTIN_COMMANDS:
            raise CommandError(f"A plugin offers the command {name}, which the program has already.")
    return list(offered.values())

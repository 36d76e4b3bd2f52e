"""Reference pages generated from the code: hooks, settings, plugins, manager roles, endpoints, commands and coverage.

Each function returns reStructuredText, so that tests can read what a build would show. ``setup`` makes each one a
Sphinx directive: ``.. identity-hooks::`` and so on.
"""

import inspect
import io
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib.metadata import distribution
from typing import Any

from requirement_coverage import coverage

from identity import hookspecs
from identity.domain.audit import AuditEvent
from identity.extension_registry import build_protocol_registry
from identity.plugin_host import ENTRY_POINT_GROUP, PluginHost, settings_class
from identity.plugins.manager_roles import ROLES
from identity.provider import errors as protocol_errors
from identity.provider.endpoint import Endpoint
from identity.provider.errors import OAuthError
from identity.settings import PLUGIN_PREFIX, PREFIX, Settings, SmtpSettings
from identity.settings_parser import describe_settings

_FAMILY = re.compile(r"^# --- (\w+) -+$")
_FUNCTION = re.compile(r"^def (\w+)\(")

#: Sections of the core's settings that have a class of their own: title, prefix and class.
SETTINGS_SECTIONS = (("The service", PREFIX, Settings), ("Mail", f"{PREFIX}smtp.", SmtpSettings))


def hooks() -> str:
    """Every hook by family: its exact signature and its docstring."""
    parts = [inspect.cleandoc(hookspecs.__doc__ or ""), ""]
    for family, names in _families().items():
        parts += [family.capitalize(), "-" * len(family), ""]
        for name in names:
            hook = getattr(hookspecs, name)
            parts += [f".. _hook-{name}:", "", f"``{name}``", "^" * (len(name) + 4), "", ".. code-block:: python", ""]
            parts += [textwrap.indent(hook_signature(hook), "    "), "", inspect.getdoc(hook) or "", ""]
    return "\n".join(parts)


def hook_signature(hook: Callable[..., Any]) -> str:
    """A hook's signature as in the source, with its decorator, without comments for tools."""
    lines = inspect.getsource(hook).splitlines()
    end = next(number for number, line in enumerate(lines) if line.lstrip().startswith('"""'))
    text = "\n".join(re.sub(r"\s+# type:.*$", "", line) for line in lines[:end])
    return text.rstrip() + " ..."


def _families() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    family = ""
    for line in inspect.getsource(hookspecs).splitlines():
        heading, function = _FAMILY.match(line), _FUNCTION.match(line)
        if heading:
            family = heading[1]
            found[family] = []
        if function:
            found[family].append(function[1])
    return found


def settings() -> str:
    """The settings of the core, then those of each plugin that comes with the service."""
    parts: list[str] = []
    for title, prefix, section in SETTINGS_SECTIONS:
        parts += [title, "-" * len(title), "", *_settings_table(section, prefix)]
    for name, kind in load_plugin_classes():
        title = f"Plugin ``{name}``"
        parts += [title, "-" * len(title), ""]
        parts += list(_settings_table(settings_class(kind), f"{PLUGIN_PREFIX}{name}.")) or ["It has no settings.", ""]
    return "\n".join(parts)


def _settings_table(kind: type, prefix: str) -> Iterator[str]:
    for name, type_name, default, meaning in describe_settings(kind):
        value = "Required." if default == "required" else f"Default: ``{default}``."
        yield from (f"``{prefix}{name}``", f"   {meaning}", "", f"   Type: {type_name}. {value}", "")


def plugins() -> str:
    """Each plugin that comes with the service, and what it is for."""
    parts = [".. list-table::", "   :header-rows: 1", "", "   * - Plugin", "     - What it does"]
    for name, kind in load_plugin_classes():
        parts += [f"   * - ``{name}``", f"     - {(inspect.getdoc(kind) or '').partition(chr(10))[0]}"]
    return "\n".join([*parts, ""])


def load_plugin_classes() -> list[tuple[str, Any]]:
    """The plugins that come with the service: name and class."""
    points = [
        entry_point
        for entry_point in distribution("identity-iam").entry_points
        if entry_point.group == ENTRY_POINT_GROUP
    ]
    return [(point.name, point.load()) for point in points]


def roles() -> str:
    """The manager roles: name, level, description, permissions."""
    parts = [".. list-table::", "   :header-rows: 1", "   :widths: 25 15 30 30", ""]
    parts += ["   * - Role", "     - Level", "     - Description", "     - Permissions"]
    for role in ROLES:
        permissions = ", ".join(f"``{permission}``" for permission in sorted(role.permissions))
        parts += [f"   * - ``{role.name}``", f"     - {role.level.replace('_', ' ')}", f"     - {role.description}"]
        parts += [f"     - {permissions}"]
    return "\n".join([*parts, ""])


def endpoints() -> str:
    """The protocol endpoints: name in discovery, methods, address, and the plugin that offers it."""
    parts = [".. list-table::", "   :header-rows: 1", "", "   * - Discovery member", "     - Methods"]
    parts += ["     - Host", "     - Path", "     - Plugin"]
    for endpoint, plugin in list_endpoints():
        member = endpoint.discovery_member
        parts += [
            f"   * - ``{member}``" if member else "   * -",
            f"     - {', '.join(endpoint.methods)}",
            f"     - {endpoint.host}",
            f"     - ``{endpoint.path}``",
            f"     - ``{plugin}``" if plugin else "     -",
        ]
    return "\n".join([*parts, ""])


def list_endpoints() -> list[tuple[Endpoint, str]]:
    """Every endpoint, with the name of its plugin; empty for the service's own."""
    host = PluginHost.load([name for name, _ in load_plugin_classes()], {"sql": {"url": "sqlite:///identity.sqlite"}})
    plugins = {offer.value.name: offer.plugin for offer in host.extensions("identity_endpoints")}
    return [(endpoint, plugins.get(endpoint.name, "")) for endpoint in build_protocol_registry(host).endpoints]


def events() -> str:
    """The audit events, by subject."""
    parts = [".. list-table::", "   :header-rows: 1", "   :widths: 25 75", "", "   * - Subject", "     - Events"]
    for subject in dict.fromkeys(name.partition(".")[0] for name in sorted(AuditEvent.NAMES)):
        names = ", ".join(f"``{name}``" for name in sorted(AuditEvent.NAMES) if name.startswith(f"{subject}."))
        parts += [f"   * - {subject.replace('_', ' ')}", f"     - {names}"]
    return "\n".join([*parts, ""])


def errors() -> str:
    """The errors of the protocol: code, status, meaning."""
    parts = [".. list-table::", "   :header-rows: 1", "   :widths: 40 10 50", "", "   * - ``error``", "     - Status"]
    parts += ["     - Meaning"]
    for kind in vars(protocol_errors).values():
        if inspect.isclass(kind) and issubclass(kind, OAuthError) and kind is not OAuthError:
            meaning = (inspect.getdoc(kind) or "").partition("\n")[0]
            parts += [f"   * - ``{kind.error}``", f"     - {kind.status}", f"     - {meaning}"]
    return "\n".join([*parts, ""])


def commands() -> str:
    """The help text of the program and of each of its commands."""
    parts = _shell_text(["--help"])
    for name in list_command_names():
        title = f"identity {name}"
        parts += ["", title, "-" * len(title), *_shell_text([name, "--help"])]
    return "\n".join([*parts, ""])


def list_command_names() -> list[str]:
    """The program's commands, in the order of its help."""
    return re.findall(r"^  ([a-z][a-z-]+) {2,}\S", _help(["--help"]), re.MULTILINE)


def _shell_text(words: list[str]) -> list[str]:
    return ["", ".. code-block:: text", "", *(f"   {line}".rstrip() for line in _help(words).splitlines()), ""]


def _help(words: list[str]) -> str:
    from identity.cli import main

    shown = io.StringIO()
    before = {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR")}
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    try:
        with redirect_stdout(shown):
            main(words)
    except SystemExit:
        pass
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return shown.getvalue()


DIRECTIVES = {
    item.__name__: item for item in (hooks, settings, plugins, roles, endpoints, events, errors, commands, coverage)
}


def setup(app: Any) -> dict[str, bool]:
    """Make the directives known to Sphinx."""
    from docutils import nodes
    from docutils.parsers.rst import Directive
    from docutils.statemachine import StringList
    from sphinx.util.nodes import nested_parse_with_titles

    def directive_of(name: str, make: Callable[[], str]) -> type[Directive]:
        class Generated(Directive):
            def run(self) -> list[Any]:
                section = nodes.section()
                section.document = self.state.document
                nested_parse_with_titles(self.state, StringList(make().splitlines(), f"<{name}, made>"), section)
                return section.children

        return Generated

    for name, make in DIRECTIVES.items():
        app.add_directive(f"identity-{name}", directive_of(name, make))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

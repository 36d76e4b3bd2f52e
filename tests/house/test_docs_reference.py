"""Generated pages document each hook, public name, setting, plugin, manager role, endpoint and command."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from identity import hookspecs
from identity.api import services as public_services
from identity.plugin_host import settings_class
from identity.plugins.manager_roles import ROLES
from identity.provider.context import Context
from identity.provider.grant_type import Authorization, TokenRequest
from identity.services import container
from identity.services.container import Services
from identity.settings import PLUGIN_PREFIX
from identity.settings_parser import describe_settings

DOCS = Path(__file__).parent.parent.parent / "docs"
PROSE = "\n".join(path.read_text() for path in DOCS.rglob("*.rst") if "_build" not in path.parts)
HOOKS = {name: hook for name, hook in vars(hookspecs).items() if hasattr(hook, "identity_spec")}

sys.path.insert(0, str(DOCS / "_ext"))
reference_pages: Any = __import__("reference_pages")


def test_each_generated_reference_is_on_a_page() -> None:
    for name in reference_pages.DIRECTIVES:
        assert f".. identity-{name}::\n" in PROSE


def test_each_hook_is_documented_with_its_exact_signature_and_its_docstring() -> None:
    page = reference_pages.hooks()
    for name, hook in HOOKS.items():
        signature = re.search(rf"((?:^    @hookspec.*\n)^    def {name}\((?:.*\n)*?.*) \.\.\.$", page, re.MULTILINE)
        assert signature is not None, name
        (function,) = ast.parse(inspect.cleandoc(f"\n{signature[1]} ...")).body
        (source,) = ast.parse(inspect.getsource(hook)).body
        assert isinstance(function, ast.FunctionDef)
        assert isinstance(source, ast.FunctionDef)
        assert None not in (function.returns, source.returns)
        source.body = function.body
        assert ast.unparse(function) == ast.unparse(source)
        assert (inspect.getdoc(hook) or "missing") in page, name
        assert f".. _hook-{name}:\n" in page


def test_hooks_stand_under_their_families() -> None:
    page = reference_pages.hooks()
    positions = [
        page.index(f"\n{family}\n---") for family in ("Setup", "Offers", "Contributions", "Decisions", "Notices")
    ]
    assert positions == sorted(positions)


@pytest.mark.parametrize("kind", [Authorization, TokenRequest, Context], ids=lambda kind: kind.__name__)
def test_each_field_of_a_grant_is_documented(kind: Any) -> None:
    source, docstring = inspect.getsource(kind), inspect.getdoc(kind) or ""
    for field in fields(kind):
        assert f"``{field.name}``" in docstring or re.search(
            rf"^    #: .*\n    {field.name}: ", source, re.MULTILINE
        ), field.name


def test_each_service_is_documented() -> None:
    page = (DOCS / "reference" / "plugin-api" / "services.rst").read_text()
    names = set(re.findall(r"\(self\) -> (\w+):\n", inspect.getsource(Services))) - set(public_services.__all__)
    returned = [kind for name in names if isinstance(kind := vars(container).get(name), type)]
    kinds = [kind for kind in returned if kind.__module__.startswith("identity.services.")]
    assert len(kinds) > 25
    assert [kind for kind in kinds if f".. autoclass:: {kind.__module__}.{kind.__name__}\n" not in page] == []


def settings() -> Iterator[tuple[str, str, str]]:
    """The full key, default and meaning of every setting."""
    kinds = [(prefix, kind) for _, prefix, kind in reference_pages.SETTINGS_SECTIONS]
    kinds += [(f"{PLUGIN_PREFIX}{name}.", settings_class(kind)) for name, kind in reference_pages.load_plugin_classes()]
    for prefix, kind in kinds:
        for name, _, default, meaning in describe_settings(kind):
            yield prefix + name, default, meaning


def test_each_setting_is_documented() -> None:
    for key, default, meaning in settings():
        entry = reference_pages.settings().partition(f"\n``{key}``\n")[2].partition("\n``")[0]
        assert meaning, key
        assert meaning in entry
        assert ("Required." if default == "required" else f"Default: ``{default}``.") in entry


def test_each_default_plugin_is_documented() -> None:
    listed = reference_pages.plugins()
    for name, kind in reference_pages.load_plugin_classes():
        assert f"``{name}``" in listed
        assert (inspect.getdoc(kind) or "missing").partition("\n")[0] in listed
        assert f"Plugin ``{name}``" in reference_pages.settings()


def test_each_manager_role_is_documented_with_its_permissions() -> None:
    rows = dict(re.findall(r"   \* - ``(\w+)``\n(.*?)(?=\n   \* - |\Z)", reference_pages.roles(), re.DOTALL))
    assert set(rows) == {role.name for role in ROLES}
    for role in ROLES:
        assert role.description in rows[role.name]
        assert set(re.findall(r"``(\w+\.\w+)``", rows[role.name])) == role.permissions


def test_each_endpoint_is_documented() -> None:
    table = reference_pages.endpoints()
    assert all(f"``{endpoint.path}``" in table for endpoint, _ in reference_pages.list_endpoints())


def test_each_command_is_documented() -> None:
    commands = reference_pages.list_command_names()
    assert {"migrate", "bootstrap", "check", "token"} <= set(commands)
    page = reference_pages.commands()
    for name in commands:
        assert f"\nidentity {name}\n---" in page
        assert f"usage: identity {name}" in page

"""PluginHost: which plugins are loaded, in which order, and which errors stop the start."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

from identity.application_factory import create_application
from identity.domain.managers import ManagerRole
from identity.domain.permissions import ManagerLevel
from identity.domain.records import RecordNamespace
from identity.plugin_host import PluginError, PluginHost, installed_plugins
from identity.settings_parser import InvalidSetting, setting
from tests.house.plugin_fixtures import BASE, Install, Plain, assembled, implementing, load, offering


@dataclass(frozen=True)
class OneSetting:
    """One required setting."""

    size: int = setting("How large.")


class Sized(Plain):
    Settings = OneSetting


# --- selection and order ----------------------------------------------------------------------------------------------


def test_only_listed_plugins_are_imported(install: Install) -> None:
    install(wanted=Plain, broken="a_module_that_is_not_there:Plugin")
    assert load("wanted").plugin_names == ("wanted",)


def test_ini_order_is_call_order(install: Install) -> None:
    called = []

    def recording(name: str) -> type:
        def identity_scopes(self: object) -> Iterable[object]:
            called.append(name)
            return [name]

        return implementing("identity_scopes", identity_scopes)

    install(one=recording("one"), two=recording("two"), three=recording("three"))
    for order in (("two", "one", "three"), ("three", "two", "one")):
        called.clear()
        host = load(*order)
        assert [offer.plugin for offer in host.extensions("identity_scopes")] == list(order)
        host.hook.identity_scopes()
        assert called == [*order, *order]


def test_plugin_may_leave_out_arguments(install: Install) -> None:
    install(brief=offering("identity_discovery", "a"))
    ((name, hook),) = load("brief").implementations("identity_discovery")
    assert (name, hook(document={})) == ("brief", ("a",))


def test_plugin_gets_its_record_namespace_before_its_offers(install: Install) -> None:
    collected = []

    def keeping(name: str) -> type:
        def identity_name_space(self: object, namespace: RecordNamespace) -> None:
            collected.append((name, namespace))

        return implementing("identity_record_namespace", identity_name_space)

    install(one=keeping("one"), two=keeping("two"), plain=Plain)
    load("two", "plain", "one")
    assert collected == [("two", RecordNamespace("two")), ("one", RecordNamespace("one"))]


def test_plugin_cannot_use_the_services_namespace(install: Install) -> None:
    install(identity=Plain)
    with pytest.raises(PluginError, match='No plugin can be called "identity"'):
        load("identity")


def test_loaded_plugins_are_logged(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install(grants=offering("identity_grant_types"), nothing=Plain)
    with caplog.at_level(logging.INFO, "identity.plugin_host"):
        load("grants", "nothing")
    assert caplog.messages == ["plugin grants: identity_grant_types", "plugin nothing: no hooks"]


# --- what stops the start ---------------------------------------------------------------------------------------------


def test_plugin_listed_twice(install: Install) -> None:
    install(one=Plain, two=Plain)
    with pytest.raises(PluginError, match=r"identity\.plugins lists one twice"):
        load("one", "two", "one")


def test_missing_plugin_error_lists_installed_plugins(install: Install) -> None:
    install(beta=Plain, alpha=Plain)
    with pytest.raises(PluginError, match=r'"gamma", which is not installed\. Installed are: alpha, beta\.'):
        load("alpha", "gamma")


def test_error_names_both_plugins_of_one_name(install: Install) -> None:
    install(one="first.package:Plugin")
    install(one="second.package:Plugin")
    with pytest.raises(PluginError, match=r"one.*first\.package:Plugin and second\.package:Plugin"):
        installed_plugins()


def test_plugin_found_twice_is_loaded_once(install: Install) -> None:
    """An editable install beside its build folder has two entry points."""
    install(one=Plain)
    install(one=Plain)
    assert set(installed_plugins()) == {"one"}


def test_plugin_for_another_hook_version_is_refused(install: Install) -> None:
    for name, version in {"a": None, "b": 0, "c": 2, "d": "1"}.items():
        install(**{name: type("Old", (Plain,), {"hookspecs": version})})
        with pytest.raises(PluginError, match=f'"{name}" was written for version {version} of the hooks'):
            load(name)


def test_plugin_that_cannot_be_imported_is_named(install: Install) -> None:
    install(broken="a_module_that_is_not_there:Plugin")
    with pytest.raises(PluginError, match=r'"broken" cannot be imported: ModuleNotFoundError'):
        load("broken")


def test_plugin_whose_settings_are_no_dataclass_is_named(install: Install) -> None:
    install(bare=type("Bare", (), {"hookspecs": 1, "Settings": dict}))
    with pytest.raises(PluginError, match=r'"bare" has a class Settings that is no dataclass'):
        load("bare")


def test_plugin_without_settings_takes_none(install: Install) -> None:
    install(bare=type("Bare", (), {"hookspecs": 1}))
    assert load("bare").plugin_names == ("bare",)
    with pytest.raises(InvalidSetting, match="is not known"):
        load("bare", bare={"key": "1"})


def test_misspelt_hook(install: Install) -> None:
    install(typo=offering("identity_grant_type"))
    with pytest.raises(PluginError, match="identity_grant_type"):
        load("typo")


def test_misspelt_argument(install: Install) -> None:
    def identity_discovery(self: object, documents: object) -> None: ...

    install(typo=implementing("identity_discovery", identity_discovery))
    with pytest.raises(PluginError, match=r'(?s)"typo" does not fit.*documents'):
        load("typo")


def test_invalid_setting_is_named_in_full(install: Install) -> None:
    install(sized=Sized)
    for values, name, problem in (
        ({}, "size", "is missing"),
        ({"size": "big"}, "size", "must be a whole number"),
        ({"size": "1", "sise": "2"}, "sise", "is not known; is size meant? Known are: size"),
    ):
        with pytest.raises(InvalidSetting) as refusal:
            load("sized", sized=values)
        assert (refusal.value.key, refusal.value.message) == (f"identity.plugin.sized.{name}", problem)


def test_settings_reach_the_plugin(install: Install) -> None:
    install(sized=type("Counting", (Sized,), {"identity_scopes": offering("identity_scopes").identity_scopes}))
    host = load("sized", sized={"size": "3"})
    (implementation,) = host.hook.identity_scopes.get_hookimpls()
    assert implementation.plugin.settings == OneSetting(size=3)


def test_exception_in_a_setup_hook_stops_the_start(install: Install) -> None:
    def identity_add_hookspecs(self: object, host: PluginHost) -> None:
        raise RuntimeError("not today")

    install(failing=implementing("identity_add_hookspecs", identity_add_hookspecs))
    with pytest.raises(RuntimeError, match="not today"):
        load("failing")


def test_plugins_can_be_extended_by_plugins(install: Install) -> None:
    hookspec = pluggy.HookspecMarker("identity")

    class Specs:
        @hookspec
        def console_pages(self) -> None:
            pass

    def identity_add_hookspecs(self: object, host: PluginHost) -> None:
        host.add_hookspecs(Specs)

    console = implementing("identity_add_hookspecs", identity_add_hookspecs)
    install(page=offering("console_pages", "a page"), console=console)
    assert [offer.value for offer in load("page", "console").extensions("console_pages")] == ["a page"]
    with pytest.raises(PluginError, match="console_pages"):
        load("page")


# --- offers -----------------------------------------------------------------------------------------------------------


def test_duplicate_offer_error_names_both_plugins(install: Install) -> None:
    install(
        one=offering("identity_grant_types", SimpleNamespace(name="a"), SimpleNamespace(name="b")),
        two=offering("identity_grant_types", SimpleNamespace(name="b")),
    )
    host = load("one", "two")
    with pytest.raises(PluginError, match=r'"one" and "two" both offer the grant type "b"'):
        host.extensions_by_name("identity_grant_types", lambda item: item.name, "grant type")


def test_offers_are_kept_in_ini_order(install: Install) -> None:
    install(one=offering("identity_scopes", "a", "b"), two=offering("identity_scopes", "c"))
    assert list(load("two", "one").extensions_by_name("identity_scopes", str, "scope")) == ["c", "a", "b"]


def test_storage_without_plugin_is_refused(tmp_path: Any) -> None:
    settings = {**BASE, "identity.data": str(tmp_path), "identity.plugins": "memory", "identity.storage": "redis"}
    with pytest.raises(InvalidSetting, match=r'"redis" is offered by no listed plugin; offered: memory') as refusal:
        create_application(settings)
    assert refusal.value.key == "identity.storage"


def test_role_with_an_unknown_permission(install: Install, tmp_path: Any) -> None:
    role = ManagerRole(name="ODD", level=ManagerLevel.INSTANCE, permissions=frozenset({"universe.write"}))
    with pytest.raises(PluginError, match=r"ODD names unknown permissions: universe\.write"):
        assembled(install, tmp_path, odd=offering("identity_manager_roles", role))

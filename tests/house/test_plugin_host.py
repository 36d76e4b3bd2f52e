"""PluginHost: what is loaded, in which order, and what stops the start."""

import gc
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import Any

import pluggy
import pytest

from identity import hookimpl
from identity.app import assemble
from identity.domain.audit import SYSTEM, AuditEvent
from identity.domain.errors import Denied
from identity.domain.managers import Manager, Role
from identity.domain.permissions import Level, organization_resource
from identity.domain.records import NameSpace
from identity.domain.users import Subject
from identity.ini_values import BadSetting, setting
from identity.plugin_host import ENTRY_POINT_GROUP, PluginHost, PluginProblem, installed
from identity.provider.claims import claims_about, contribute
from identity.provider.discovery import complete
from identity.provider.errors import TemporarilyUnavailable
from identity.provider.interaction import Interaction, first_required
from identity.services.access import Access, Deny, Principal
from identity.services.lookup import Lookup
from identity.testing.factories import a_manager, a_service_user, an_organization
from identity.testing.service_client import Credentials
from identity.testing.world import World

MODULE = "plugins_of_a_test"

Install = Callable[..., None]


@dataclass(frozen=True)
class NoSettings:
    """Nothing to set."""


@dataclass(frozen=True)
class OneSetting:
    """One required setting."""

    size: int = setting("How large.")


class Plain:
    """A plugin that implements nothing."""

    hookspecs = 1
    Settings = NoSettings

    def __init__(self, settings: object) -> None:
        self.settings = settings


class Sized(Plain):
    Settings = OneSetting


def offering(hook: str, *values: object) -> type:
    """A plugin class whose hook returns these values."""

    @hookimpl
    def offer(self: object) -> Iterable[object]:
        return values

    return type("Offering", (Plain,), {hook: offer})


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install(name=Class)`` makes these plugins the installed ones."""
    module = ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    points: list[EntryPoint] = []
    monkeypatch.setattr("identity.plugin_host.entry_points", lambda group: list(points))

    def install(**plugins: Any) -> None:
        for name, kind in plugins.items():
            if not isinstance(kind, str):
                setattr(module, name, kind)
                kind = f"{MODULE}:{name}"
            points.append(EntryPoint(name, kind, ENTRY_POINT_GROUP))

    return install


def load(*names: str, **settings: Mapping[str, str]) -> PluginHost:
    return PluginHost.load(names, settings)


# --- selection and order ----------------------------------------------------------------------------------------------


def test_only_listed_plugins_are_imported(install: Install) -> None:
    install(wanted=Plain, broken="a_module_that_is_not_there:Plugin")
    assert load("wanted").names == ("wanted",)


def test_ini_order_is_call_order(install: Install) -> None:
    called = []

    def recording(name: str) -> type:
        @hookimpl
        def identity_scopes(self: object) -> Iterable[object]:
            called.append(name)
            return [name]

        return type(name, (Plain,), {"identity_scopes": identity_scopes})

    install(one=recording("one"), two=recording("two"), three=recording("three"))
    for order in (("two", "one", "three"), ("three", "two", "one")):
        called.clear()
        host = load(*order)
        assert [offer.plugin for offer in host.offers("identity_scopes")] == list(order)
        host.hook.identity_scopes()
        assert called == [*order, *order]


def test_a_plugin_may_leave_out_arguments(install: Install) -> None:
    @hookimpl
    def identity_discovery(self: object) -> Mapping[str, object]:
        return {"a": 1}

    install(brief=type("Brief", (Plain,), {"identity_discovery": identity_discovery}))
    ((name, hook),) = load("brief").implementations("identity_discovery")
    assert (name, hook(document={})) == ("brief", {"a": 1})


def test_each_plugin_gets_the_name_space_of_its_records_before_it_offers_anything(install: Install) -> None:
    taken = []

    def keeping(name: str) -> type:
        @hookimpl
        def identity_name_space(self: object, name_space: NameSpace) -> None:
            taken.append((name, name_space))

        return type(name, (Plain,), {"identity_name_space": identity_name_space})

    install(one=keeping("one"), two=keeping("two"), plain=Plain)
    load("two", "plain", "one")
    assert taken == [("two", NameSpace("two")), ("one", NameSpace("one"))]


def test_no_plugin_has_the_name_space_of_the_service(install: Install) -> None:
    install(identity=Plain)
    with pytest.raises(PluginProblem, match='No plugin can be called "identity"'):
        load("identity")


def test_what_is_loaded_is_logged(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install(grants=offering("identity_grant_types"), nothing=Plain)
    with caplog.at_level(logging.INFO, "identity.plugin_host"):
        load("grants", "nothing")
    assert caplog.messages == ["plugin grants: identity_grant_types", "plugin nothing: no hooks"]


# --- what stops the start ---------------------------------------------------------------------------------------------


def test_a_plugin_listed_twice(install: Install) -> None:
    install(one=Plain, two=Plain)
    with pytest.raises(PluginProblem, match=r"identity\.plugins lists one twice"):
        load("one", "two", "one")


def test_a_plugin_that_is_not_installed_tells_what_is(install: Install) -> None:
    install(beta=Plain, alpha=Plain)
    with pytest.raises(PluginProblem, match=r'"gamma", which is not installed\. Installed are: alpha, beta\.'):
        load("alpha", "gamma")


def test_two_installed_plugins_of_one_name_are_both_named(install: Install) -> None:
    install(one="first.package:Plugin")
    install(one="second.package:Plugin")
    with pytest.raises(PluginProblem, match=r"one.*first\.package:Plugin and second\.package:Plugin"):
        installed()


def test_one_plugin_found_twice_is_one(install: Install) -> None:
    """As with an editable install beside its build folder."""
    install(one=Plain)
    install(one=Plain)
    assert set(installed()) == {"one"}


@pytest.mark.parametrize("version", [None, 0, 2, "1"])
def test_a_plugin_for_another_version_of_the_hooks(install: Install, version: object) -> None:
    install(old=type("Old", (Plain,), {"hookspecs": version}))
    with pytest.raises(PluginProblem, match=f'"old" was written for version {version} of the hooks'):
        load("old")


def test_a_plugin_that_cannot_be_imported_is_named(install: Install) -> None:
    install(broken="a_module_that_is_not_there:Plugin")
    with pytest.raises(PluginProblem, match=r'"broken" cannot be imported: ModuleNotFoundError'):
        load("broken")


def test_a_plugin_without_settings_is_named(install: Install) -> None:
    install(bare=type("Bare", (), {"hookspecs": 1}))
    with pytest.raises(PluginProblem, match=r'"bare" has no class Settings'):
        load("bare")


def test_a_misspelt_hook(install: Install) -> None:
    install(typo=offering("identity_grant_type"))
    with pytest.raises(PluginProblem, match="identity_grant_type"):
        load("typo")


def test_a_misspelt_argument(install: Install) -> None:
    @hookimpl
    def identity_discovery(self: object, documents: object) -> None: ...

    install(typo=type("Typo", (Plain,), {"identity_discovery": identity_discovery}))
    with pytest.raises(PluginProblem, match=r'(?s)"typo" does not fit.*documents'):
        load("typo")


@pytest.mark.parametrize(
    ("values", "key", "problem"),
    [
        ({}, "identity.plugin.sized.size", "is missing"),
        ({"size": "big"}, "identity.plugin.sized.size", "must be a whole number"),
        ({"size": "1", "sise": "2"}, "identity.plugin.sized.sise", "is not known; known are: size"),
    ],
)
def test_a_setting_that_does_not_fit_is_named_in_full(
    install: Install, values: Mapping[str, str], key: str, problem: str
) -> None:
    install(sized=Sized)
    with pytest.raises(BadSetting) as refusal:
        load("sized", sized=values)
    assert (refusal.value.key, refusal.value.problem) == (key, problem)


def test_settings_reach_the_plugin(install: Install) -> None:
    install(sized=type("Counting", (Sized,), {"identity_scopes": offering("identity_scopes").identity_scopes}))
    host = load("sized", sized={"size": "3"})
    (implementation,) = host.hook.identity_scopes.get_hookimpls()
    assert implementation.plugin.settings == OneSetting(size=3)


def test_an_exception_in_a_setup_hook_stops_the_start(install: Install) -> None:
    @hookimpl
    def identity_add_hookspecs(self: object, host: PluginHost) -> None:
        raise RuntimeError("not today")

    install(failing=type("Failing", (Plain,), {"identity_add_hookspecs": identity_add_hookspecs}))
    with pytest.raises(RuntimeError, match="not today"):
        load("failing")


def test_plugins_can_be_extended_by_plugins(install: Install) -> None:
    hookspec = pluggy.HookspecMarker("identity")

    class Specs:
        @hookspec
        def console_pages(self) -> None:
            """Offer pages."""

    @hookimpl
    def identity_add_hookspecs(self: object, host: PluginHost) -> None:
        host.add_hookspecs(Specs)

    install(
        page=offering("console_pages", "a page"),
        console=type("Console", (Plain,), {"identity_add_hookspecs": identity_add_hookspecs}),
    )
    assert [offer.value for offer in load("page", "console").offers("console_pages")] == ["a page"]
    with pytest.raises(PluginProblem, match="console_pages"):
        load("page")


# --- offers -----------------------------------------------------------------------------------------------------------


def test_two_offers_of_one_name_name_both_plugins(install: Install) -> None:
    install(
        one=offering("identity_grant_types", SimpleNamespace(name="a"), SimpleNamespace(name="b")),
        two=offering("identity_grant_types", SimpleNamespace(name="b")),
    )
    host = load("one", "two")
    with pytest.raises(PluginProblem, match=r'"one" and "two" both offer the grant type "b"'):
        host.unique("identity_grant_types", lambda one: one.name, "grant type")


def test_offers_are_kept_in_ini_order(install: Install) -> None:
    install(one=offering("identity_scopes", "a", "b"), two=offering("identity_scopes", "c"))
    assert list(load("two", "one").unique("identity_scopes", str, "scope")) == ["c", "a", "b"]


BASE: Mapping[str, str] = {
    "identity.issuer_url": "http://localhost:8080",
    "identity.development": "true",
    "identity.storage": "memory",
}


def test_a_storage_that_no_listed_plugin_offers(tmp_path: Any) -> None:
    settings = {**BASE, "identity.data": str(tmp_path), "identity.plugins": "memory", "identity.storage": "redis"}
    with pytest.raises(BadSetting, match=r'"redis" is offered by no listed plugin; offered: memory') as refusal:
        assemble(settings)
    assert refusal.value.key == "identity.storage"


def test_a_role_with_an_unknown_permission(install: Install, tmp_path: Any) -> None:
    role = Role(name="ODD", level=Level.INSTANCE, permissions=frozenset({"universe.write"}))
    install(memory="identity.plugins.memory:Plugin", odd=offering("identity_manager_roles", role))
    with pytest.raises(PluginProblem, match=r"ODD names unknown permissions: universe\.write"):
        assemble({**BASE, "identity.data": str(tmp_path), "identity.plugins": "memory odd"})


# --- notices ----------------------------------------------------------------------------------------------------------

EVENT = AuditEvent(
    id="1",
    at=datetime(2026, 1, 1, tzinfo=UTC),
    event="token.revoked",
    actor=SYSTEM,
    object_kind="token",
    object_id=None,
)


def test_a_failing_observer_harms_no_other(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    told = []

    def observing(name: str, problem: Exception | None = None) -> type:
        @hookimpl
        def identity_audited(self: object, event: AuditEvent) -> None:
            told.append((name, event))
            if problem is not None:
                raise problem

        return type(name, (Plain,), {"identity_audited": identity_audited})

    install(one=observing("one"), failing=observing("failing", ValueError("no")), two=observing("two"))
    load("one", "failing", "two").notify([EVENT, EVENT])
    assert told == [(name, EVENT) for name in ("one", "failing", "two")] * 2
    assert caplog.messages == ["plugin failing failed to take notice of token.revoked"] * 2


# --- contributions ----------------------------------------------------------------------------------------------------


def context(hook_failure: str = "refuse") -> Any:
    settings = SimpleNamespace(hook_failure=hook_failure, urn_namespaces=("urn:service:iam", "urn:zitadel:iam"))
    return SimpleNamespace(settings=settings, services=SimpleNamespace(lookup=None))


def returning(value: object) -> Callable[..., Any]:
    def hook(**_: object) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return hook


def test_the_first_writer_of_a_claim_wins(caplog: pytest.LogCaptureFixture) -> None:
    claims: dict[str, Any] = {"name": "ours"}
    contribute(claims, [("one", returning({"name": "x", "a": 1})), ("two", returning({"a": 2, "b": 2}))], context())
    assert claims == {"name": "ours", "a": 1, "b": 2}
    assert caplog.messages == [
        "plugin one sets the claim name, which is set already",
        "plugin two sets the claim a, which is set already",
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("iss", "sub", "aud", "exp", "iat", "nbf", "jti", "azp", "nonce", "auth_time", "acr", "amr", "at_hash"),
        *("c_hash", "sid", "client_id", "scope", "active", "token_type", "username"),
        *("urn:service:iam:org:project:roles", "urn:zitadel:iam:org:project:1:roles"),
    ],
)
def test_reserved_claims_are_refused(name: str, caplog: pytest.LogCaptureFixture) -> None:
    claims: dict[str, Any] = {}
    contribute(claims, [("one", returning({name: "evil", "good": 1}))], context())
    assert claims == {"good": 1}
    assert caplog.messages == [f"plugin one may not set the claim {name}"]


UNUSABLE: Mapping[str, object] = {
    "an exception": ValueError("down"),
    "no JSON": {"a": object()},
    "too large": {"a": "x" * 5000},
    "no pairs": ["no pairs"],
    "a number for a name": {1: "a"},
    "no mapping": 7,
}


@pytest.mark.parametrize("result", UNUSABLE.values(), ids=UNUSABLE)
def test_a_failing_contribution_refuses_the_request(result: object) -> None:
    with pytest.raises(TemporarilyUnavailable, match="the answer could not be completed"):
        contribute({}, [("failing", returning(result))], context())


@pytest.mark.parametrize("result", UNUSABLE.values(), ids=UNUSABLE)
def test_a_failing_contribution_is_left_out_if_so_set(result: object, caplog: pytest.LogCaptureFixture) -> None:
    claims: dict[str, Any] = {}
    contribute(claims, [("failing", returning(result)), ("fine", returning({"a": 1}))], context("ignore"))
    assert claims == {"a": 1}
    assert caplog.messages == ["plugin failing failed to add claims"]


def test_none_adds_no_claims() -> None:
    claims: dict[str, Any] = {}
    contribute(claims, [("one", returning(None))], context())
    assert claims == {}


def test_a_contributed_claim_cannot_replace_what_we_say_of_a_service_user() -> None:
    user = a_service_user(an_organization())
    told = context()
    told.protocol = SimpleNamespace(user_claims=(("one", returning({"preferred_username": "root"})),))
    assert claims_about(user, (), told)["preferred_username"] == user.user_name


def test_discovery_members_cannot_be_changed(caplog: pytest.LogCaptureFixture) -> None:
    hooks = (("one", returning({"issuer": "evil", "x": 1})), ("two", returning({"x": 2})), ("three", returning(None)))
    protocol: Any = SimpleNamespace(discovery=hooks)
    assert complete({"issuer": "ours"}, protocol) == {"issuer": "ours", "x": 1}
    assert caplog.messages == [
        "plugin one sets the discovery member issuer, which is set already",
        "plugin two sets the discovery member x, which is set already",
    ]


# --- decisions --------------------------------------------------------------------------------------------------------

ORGANIZATION = an_organization()
RESOURCE = organization_resource(ORGANIZATION.id)
OWNER = Role(name="OWNER", level=Level.ORGANIZATION, permissions=frozenset({"user.read"}))


def owner() -> Principal:
    user = a_service_user(ORGANIZATION)
    held: Manager = a_manager(user, resource=RESOURCE.key, roles=frozenset({"OWNER"}))
    return Principal(Subject(user, ORGANIZATION), (held,))


def denying(install: Install, tmp_path: Any, *verdicts: object) -> Deny:
    """What the service makes of plugins with these verdicts."""

    def deciding(verdict: object) -> type:
        @hookimpl
        def identity_deny(self: object, permission: str) -> object:
            if isinstance(verdict, Exception):
                raise verdict
            return verdict

        return type("Deciding", (Plain,), {"identity_deny": identity_deny})

    plugins = {f"plugin{number}": deciding(verdict) for number, verdict in enumerate(verdicts)}
    install(memory="identity.plugins.memory:Plugin", **plugins)
    settings = {**BASE, "identity.data": str(tmp_path), "identity.plugins": " ".join(("memory", *plugins))}
    deny = assemble(settings).process.deny
    assert deny is not None
    return deny


def test_roles_allow_and_a_plugin_denies(install: Install, tmp_path: Any) -> None:
    storage: Any = None
    roles = {"OWNER": OWNER}
    assert Access(storage, roles, None).may(owner(), "user.read", RESOURCE)
    access = Access(storage, roles, denying(install, tmp_path, None, "Frozen."))
    assert access.refusal(owner(), "user.read", RESOURCE) == "Frozen."
    with pytest.raises(Denied, match="Frozen"):
        access.require(owner(), "user.read", RESOURCE)


def test_no_plugin_allows_what_roles_do_not(install: Install, tmp_path: Any) -> None:
    storage: Any = None
    access = Access(storage, {"OWNER": OWNER}, denying(install, tmp_path, None))
    assert access.may(owner(), "user.read", RESOURCE)
    assert not access.may(owner(), "user.write", RESOURCE)


@pytest.mark.parametrize("order", [(ValueError("down"), None), (None, ValueError("down"))])
def test_a_plugin_that_fails_to_decide_denies(install: Install, tmp_path: Any, order: tuple[object, ...]) -> None:
    storage: Any = None
    access = Access(storage, {"OWNER": OWNER}, denying(install, tmp_path, *order))
    assert access.refusal(owner(), "user.read", RESOURCE) == "A check of this action failed."


async def _later() -> None:
    """What a plugin that awaits something answers: nobody here awaits it."""


#: Verdicts that no plugin may give, some of which count as true.
MISFITS: dict[str, Callable[[], object]] = {
    "awaitable": _later,
    "number": lambda: 1,
    "nought": lambda: 0,
    "object": object,
    "list": lambda: ["yes"],
    "bytes": lambda: b"yes",
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("misfit", [*MISFITS.values(), lambda: False, lambda: True, str])
def test_a_veto_is_a_sentence_or_none(
    install: Install, tmp_path: Any, caplog: pytest.LogCaptureFixture, misfit: Callable[[], object]
) -> None:
    storage: Any = None
    access = Access(storage, {"OWNER": OWNER}, denying(install, tmp_path, misfit(), "Never asked."))
    assert access.refusal(owner(), "user.read", RESOURCE) == "A check of this action failed."
    assert "plugin plugin0 refuses in identity_deny: it answered with a" in caplog.text
    gc.collect()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("misfit", [*MISFITS.values(), lambda: "True", lambda: ""])
def test_a_password_is_right_wrong_or_unknown(
    install: Install, tmp_path: Any, caplog: pytest.LogCaptureFixture, misfit: Callable[[], object]
) -> None:
    """What merely counts as true lets nobody in."""
    answer = misfit()

    @hookimpl
    def identity_check_password(self: object, password: str) -> object:
        return answer

    plugin = type("Knowing", (Plain,), {"identity_check_password": identity_check_password})
    install(memory="identity.plugins.memory:Plugin", knowing=plugin)
    settings = {**BASE, "identity.data": str(tmp_path), "identity.plugins": "memory knowing"}
    check = assemble(settings).check_password
    assert check is not None
    user: Any = None
    assert check(user, "a password that nobody logs", Lookup(nullcontext)) is False
    assert "plugin knowing refuses in identity_check_password: it answered with a" in caplog.text
    assert "that nobody logs" not in caplog.text
    gc.collect()


@pytest.mark.parametrize("verdict", [True, False, None])
def test_what_a_plugin_says_of_a_password_counts(install: Install, tmp_path: Any, verdict: bool | None) -> None:
    @hookimpl
    def identity_check_password(self: object) -> bool | None:
        return verdict

    plugin = type("Knowing", (Plain,), {"identity_check_password": identity_check_password})
    install(memory="identity.plugins.memory:Plugin", knowing=plugin)
    settings = {**BASE, "identity.data": str(tmp_path), "identity.plugins": "memory knowing"}
    check = assemble(settings).check_password
    assert check is not None
    user: Any = None
    assert check(user, "a password", Lookup(nullcontext)) is verdict


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("misfit", [*MISFITS.values(), lambda: None])
def test_nobody_gets_past_an_interaction_that_says_neither_yes_nor_no(misfit: Callable[[], object]) -> None:
    class Odd(Interaction):
        name = "odd"

        def required(self, sign_in: object, context: object) -> Any:
            return misfit()

        def path(self, sign_in: object) -> str:
            return "odd"

    nothing: Any = None
    with pytest.raises(TypeError, match="the interaction odd answered with a"):
        first_required([Odd()], nothing, nothing)
    gc.collect()


@pytest.mark.storages("memory")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("misfit", [*MISFITS.values(), lambda: None, lambda: True])
def test_a_client_authentication_answers_with_a_client(
    own_world: World, misfit: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    method = own_world.identity.protocol.client_authentications["client_secret_basic"]
    monkeypatch.setattr(type(method), "authenticate", lambda *arguments: misfit())
    answer = own_world.client.introspect("a token", Credentials("someone", "a secret"))
    assert (answer.status_int, answer.json["error"]) == (401, "invalid_client")
    gc.collect()


def test_no_plugin_no_veto(tmp_path: Any) -> None:
    settings = {**BASE, "identity.data": str(tmp_path), "identity.plugins": "memory"}
    assert assemble(settings).process.deny is None


@pytest.mark.storages("memory")
def test_the_operator_is_not_asked_about(make_world: Callable[..., World]) -> None:
    """Who runs the program holds the ini file, and with it the list of plugins."""
    world = make_world()
    with world.transaction() as services:
        assert services.access.refusal(Principal(None), "instance.write", RESOURCE) is None

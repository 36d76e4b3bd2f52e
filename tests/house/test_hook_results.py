"""Contributions and decisions of plugins: invalid results are refused."""

import gc
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from identity.domain.audit import SYSTEM, AuditEvent
from identity.domain.errors import Denied
from identity.domain.managers import Manager, ManagerRole
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.users import Subject
from identity.provider.claims import merge_plugin_claims, scope_claims
from identity.provider.discovery import with_plugin_members
from identity.provider.errors import TemporarilyUnavailable
from identity.provider.interaction import Interaction, next_interaction
from identity.services.access_control import AccessControl, Principal
from identity.storage.contract import factories as make
from identity.testing.service_test_client import Credentials
from identity.testing.world import World
from tests.house.plugin_fixtures import Install, assembled, implementing, load

# --- notices ----------------------------------------------------------------------------------------------------------

EVENT = AuditEvent(
    id="1",
    at=datetime(2026, 1, 1, tzinfo=UTC),
    event="token.revoked",
    actor=SYSTEM,
    object_kind="token",
    object_id=None,
)


def test_failing_observer_harms_no_other(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    recorded = []

    def observing(name: str, problem: Exception | None = None) -> type:
        def identity_audited(self: object, event: AuditEvent) -> None:
            recorded.append((name, event))
            if problem is not None:
                raise problem

        return implementing("identity_audit_event_recorded", identity_audited)

    install(one=observing("one"), failing=observing("failing", ValueError("no")), two=observing("two"))
    load("one", "failing", "two").notify_audit_events([EVENT, EVENT])
    assert recorded == [(name, EVENT) for name in ("one", "failing", "two")] * 2
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


def test_first_writer_of_a_claim_wins(caplog: pytest.LogCaptureFixture) -> None:
    claims: dict[str, Any] = {"name": "ours"}
    merge_plugin_claims(
        claims,
        [("one", returning({"name": "x", "a": 1})), ("two", returning({"a": 2, "b": 2})), ("three", returning(None))],
        context(),
    )
    assert claims == {"name": "ours", "a": 1, "b": 2}
    assert caplog.messages == [
        "plugin one sets the claim name, which is set already",
        "plugin two sets the claim a, which is set already",
    ]


def test_reserved_claims_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    reserved = (
        *("iss", "sub", "aud", "exp", "iat", "nbf", "jti", "azp", "nonce", "auth_time", "acr", "amr", "at_hash"),
        *("c_hash", "sid", "client_id", "scope", "active", "token_type", "username"),
        *("urn:service:iam:org:project:roles", "urn:zitadel:iam:org:project:1:roles"),
    )
    claims: dict[str, Any] = {}
    merge_plugin_claims(claims, [("one", returning(dict.fromkeys(reserved, "evil") | {"good": 1}))], context())
    assert claims == {"good": 1}
    assert caplog.messages == [f"plugin one may not set the claim {name}" for name in reserved]


#: An exception, values that are not JSON or too large, and invalid claims.
UNUSABLE = (ValueError("down"), {"a": object()}, {"a": "x" * 5000}, ["no pairs"], {1: "a"}, 7)


def test_failing_contribution_fails_the_request_or_is_omitted(caplog: pytest.LogCaptureFixture) -> None:
    for unusable in UNUSABLE:
        with pytest.raises(TemporarilyUnavailable, match="the answer could not be completed"):
            merge_plugin_claims({}, [("failing", returning(unusable))], context())
        claims: dict[str, Any] = {}
        caplog.clear()
        merge_plugin_claims(
            claims, [("failing", returning(unusable)), ("fine", returning({"a": 1}))], context("ignore")
        )
        assert claims == {"a": 1}
        assert caplog.messages == ["plugin failing failed to add claims"]


def test_contributed_claims_cannot_replace_service_user_claims() -> None:
    user = make.service_user(make.organization())
    notice_context = context()
    notice_context.protocol = SimpleNamespace(user_claims=(("one", returning({"preferred_username": "root"})),))
    assert scope_claims(user, (), notice_context)["preferred_username"] == user.user_name


def test_discovery_members_cannot_be_changed(caplog: pytest.LogCaptureFixture) -> None:
    hooks = (("one", returning({"issuer": "evil", "x": 1})), ("two", returning({"x": 2})), ("three", returning(None)))
    protocol: Any = SimpleNamespace(discovery=hooks)
    assert with_plugin_members({"issuer": "ours"}, protocol) == {"issuer": "ours", "x": 1}
    assert caplog.messages == [
        "plugin one sets the discovery member issuer, which is set already",
        "plugin two sets the discovery member x, which is set already",
    ]


# --- decisions --------------------------------------------------------------------------------------------------------

ORGANIZATION = make.organization()
RESOURCE = Resource.of_organization(ORGANIZATION.id)
OWNER = ManagerRole(name="OWNER", level=ManagerLevel.ORGANIZATION, permissions=frozenset({"user.read"}))


def owner() -> Principal:
    user = make.service_user(ORGANIZATION)
    manager: Manager = make.manager(user, resource=RESOURCE.key, roles=frozenset({"OWNER"}))
    return Principal(Subject(user, ORGANIZATION), (manager,))


def answering(hook: str, answer: object) -> type:
    """A plugin whose hook returns this."""

    def decide(self: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return implementing(hook, decide)


UNUSED_LOOKUP: Any = None


def denying(install: Install, tmp_path: Any, *results: object) -> AccessControl:
    """The access control of an owner, with plugins that return these results."""
    plugins = {f"plugin{number}": answering("identity_deny", item) for number, item in enumerate(results)}
    deny = assembled(install, tmp_path, **plugins).process_state.deny_hook
    assert deny is not None
    storage: Any = None
    return AccessControl(storage, {"OWNER": OWNER}, deny, UNUSED_LOOKUP, lambda: None, datetime(2026, 1, 1, tzinfo=UTC))


def checking(install: Install, tmp_path: Any, answer: object) -> Callable[..., object]:
    """The password check with a plugin that is responsible for every user."""
    check = assembled(install, tmp_path, knowing=answering("identity_check_password", answer)).check_password
    assert check is not None
    return check


def test_roles_allow_and_a_plugin_denies(install: Install, tmp_path: Any) -> None:
    access = denying(install, tmp_path, None, "Frozen.")
    assert access.denial_reason(owner(), "user.read", RESOURCE) == "Frozen."
    with pytest.raises(Denied, match="Frozen"):
        access.require(owner(), "user.read", RESOURCE)


def test_plugins_cannot_allow_more_than_roles(install: Install, tmp_path: Any) -> None:
    access = denying(install, tmp_path, None)
    assert access.is_permitted(owner(), "user.read", RESOURCE)
    assert not access.is_permitted(owner(), "user.write", RESOURCE)


@pytest.mark.parametrize("order", [(ValueError("down"), None), (None, ValueError("down"))])
def test_plugin_that_fails_to_decide_denies(install: Install, tmp_path: Any, order: tuple[object, ...]) -> None:
    access = denying(install, tmp_path, *order)
    assert access.denial_reason(owner(), "user.read", RESOURCE) == "A check of this action failed."


async def _later() -> None:
    """A coroutine, which the service does not await."""


#: Invalid results, some of which are true in a boolean context.
MISFITS: tuple[Callable[[], object], ...] = (_later, lambda: 1, lambda: 0, object, lambda: ["yes"], lambda: b"yes")


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("invalid_result", [*MISFITS, lambda: False, lambda: True, str])
def test_veto_is_a_sentence_or_none(
    install: Install, tmp_path: Any, caplog: pytest.LogCaptureFixture, invalid_result: Callable[[], object]
) -> None:
    access = denying(install, tmp_path, invalid_result(), "Never asked.")
    assert access.denial_reason(owner(), "user.read", RESOURCE) == "A check of this action failed."
    assert "plugin plugin0 refuses in identity_deny: it answered with a" in caplog.text
    gc.collect()


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("invalid_result", [*MISFITS, lambda: "True", lambda: ""])
def test_password_is_right_wrong_or_unknown(
    install: Install, tmp_path: Any, caplog: pytest.LogCaptureFixture, invalid_result: Callable[[], object]
) -> None:
    """A truthy value that is not True does not sign anyone in."""
    check = checking(install, tmp_path, invalid_result())
    assert check(None, "a password that nobody logs", UNUSED_LOOKUP) is False
    assert "plugin knowing refuses in identity_check_password: it answered with a" in caplog.text
    assert "that nobody logs" not in caplog.text
    gc.collect()


@pytest.mark.parametrize("result", [True, False, None])
def test_password_check_of_a_plugin_decides(install: Install, tmp_path: Any, result: bool | None) -> None:
    assert checking(install, tmp_path, result)(None, "a password", UNUSED_LOOKUP) is result


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("invalid_result", [*MISFITS, lambda: None])
def test_interaction_without_boolean_result_stops_the_sign_in(invalid_result: Callable[[], object]) -> None:
    class Odd(Interaction):
        name = "odd"

        def is_required(self, sign_in: object, context: object) -> Any:
            return invalid_result()

        def path(self, sign_in: object) -> str:
            return "odd"

    nothing: Any = None
    with pytest.raises(TypeError, match="the interaction odd answered with a"):
        next_interaction([Odd()], nothing, nothing)
    gc.collect()


@pytest.mark.thorough
@pytest.mark.storages("memory")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("invalid_result", [*MISFITS, lambda: None, lambda: True])
def test_client_authentication_answers_with_a_client(
    isolated_world: World, invalid_result: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    method = isolated_world.identity.protocol_registry.client_authentication_methods["client_secret_basic"]
    monkeypatch.setattr(type(method), "authenticate", lambda *arguments: invalid_result())
    answer = isolated_world.client.introspect("a token", Credentials("someone", "a secret"))
    assert (answer.status_int, answer.json["error"]) == (401, "invalid_client")
    gc.collect()


def test_deny_hook_is_none_without_plugins(install: Install, tmp_path: Any) -> None:
    assert assembled(install, tmp_path).process_state.deny_hook is None


def test_operator_cannot_be_denied(install: Install, tmp_path: Any) -> None:
    """An operator of the command line controls the ini file anyway, and with it the list of plugins."""
    assert denying(install, tmp_path, "Frozen.").denial_reason(Principal(None), "instance.write", RESOURCE) is None

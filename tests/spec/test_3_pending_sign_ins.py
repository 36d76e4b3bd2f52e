"""Ending a user's sessions ends their pending sign-ins: a proof from before does not sign in.

{who ends the sessions} × {stage of the pending sign-in} × {same browser, other browser}.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from identity.crypto.argon2id import HashVerification
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import HumanUser
from identity.provider.context import Context
from identity.provider.interaction import Interaction, SignIn
from identity.services.sign_ins import SignInService
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

NEW = "another horse, another staple"


class PendingClient(Interaction):
    """An interaction that a plugin requires after the password."""

    name = "door"

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        required = sign_in.request is not None and "door" in sign_in.request.parameters.get("state", "")
        return required and sign_in.authenticated_subject is not None

    def path(self, sign_in: SignIn) -> str:
        return "door"


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setitem(world.identity.protocol_registry.interactions, PendingClient.name, PendingClient())  # type: ignore[arg-type]
    return world


@dataclass
class PendingSignInScenario:
    """``waiting`` is the window of a pending sign-in of ``person``; ``acting`` is the one that ends their sessions."""

    world: World
    person: HumanUser
    waiting: Browser
    acting: Browser

    def __post_init__(self) -> None:
        self.login_name = set_password(self.world, self.person)
        self.session = self.acting.start_session(self.person)
        # Another session, which can be ended from the first one.
        self.other = Browser(self.world).start_session(self.person)


# --- stages of a pending sign-in --------------------------------------------------------------------------------------


def _ask(scene: PendingSignInScenario, prompt: str, **parameters: str) -> None:
    party = RelyingParty.register(scene.world)
    scene.waiting.open(party.new_request(prompt=prompt, **parameters).url, initiator=party.origin)


def _consent(scene: PendingSignInScenario) -> None:
    _ask(scene, "login consent")
    scene.waiting.sign_in(scene.login_name)


def _change_password(scene: PendingSignInScenario) -> None:
    set_password(scene.world, scene.person, must_change=True)
    _ask(scene, "login")
    scene.waiting.sign_in(scene.login_name)


def _plugin(scene: PendingSignInScenario) -> None:
    _ask(scene, "login", state="door")
    scene.waiting.sign_in(scene.login_name)


def _chosen_session(scene: PendingSignInScenario) -> None:
    scene.waiting.start_session(scene.world.make_human_user())
    if not any(scene.session.id in name for name in scene.waiting.session_cookies):
        scene.session = scene.waiting.start_session(scene.person)
    _ask(scene, "select_account consent")
    scene.waiting.select_account(scene.login_name)


STAGES: dict[str, Callable[[PendingSignInScenario], None]] = {
    "consent": _consent,
    "password/change": _change_password,
    "door": _plugin,
    "consent of a chosen session": _chosen_session,
}


# --- events that end sessions -----------------------------------------------------------------------------------------


def _own_password(scene: PendingSignInScenario) -> None:
    scene.acting.open("/account/password")
    fields = {"current_password": PASSWORD, "new_password": NEW, "new_password_again": NEW}
    scene.acting.submit(fields)
    assert "Your password is changed" in scene.acting.page.text


def _everywhere_else(scene: PendingSignInScenario) -> None:
    _at_sessions(scene, "others", "yes")


def _one_other(scene: PendingSignInScenario) -> None:
    _at_sessions(scene, "session", scene.other.id)


def _at_sessions(scene: PendingSignInScenario, name: str, value: str) -> None:
    scene.acting.open("/account/sessions")
    forms = (dict(item.submit_fields()) for item in scene.acting.page.forms.values())
    form = next(form for form in forms if form.get(name) == value)
    scene.acting.post_form("/account/sessions", form, initiator=scene.world.issuer)
    assert scene.acting.path == "/account/sessions"


def _sign_out(scene: PendingSignInScenario) -> None:
    scene.acting.open("/sign-out")
    scene.acting.submit()
    assert scene.acting.path == "/signed-out"


def _reset(scene: PendingSignInScenario) -> None:
    link = scene.world.operator_services.passwords.issue_reset_link(scene.person.id)
    scene.acting.open(link)
    scene.acting.submit({"new_password": NEW, "new_password_again": NEW})
    assert scene.acting.path == "/password/changed"


#: By the user, in a browser.
ENDED_BY_USER: dict[str, Callable[[PendingSignInScenario], None]] = {
    "own password": _own_password,
    "everywhere else": _everywhere_else,
    "one other session": _one_other,
    "sign out": _sign_out,
    "reset": _reset,
}
#: Changes by a manager: service and methods in order.
FOREIGN: dict[str, tuple[str, ...]] = {
    "one-time password": ("users", "set_one_time_password"),
    "ended by a manager": ("users", "end_sessions"),
    "deactivated": ("users", "deactivate"),
    "reactivated": ("users", "deactivate", "reactivate"),
    "organization deactivated": ("organizations", "deactivate"),
    "recovered": ("users", "recover"),
    "removed": ("users", "remove"),
    "organization removed": ("organizations", "remove"),
}


def end_by_manager(scene: PendingSignInScenario, end: str) -> None:
    """Applies the FOREIGN change to the user or their organization."""
    service, *verbs = FOREIGN[end]
    for verb in verbs:
        concerned = scene.person.id if service == "users" else scene.person.organization_id
        getattr(getattr(scene.world.operator_services, service), verb)(concerned)


#: Changes that end all sessions except the current one.
SPARE = frozenset({"own password", "everywhere else", "one other session"})


@pytest.mark.sampled(14)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("end", "tab"),
    [*((name, tab) for name in ENDED_BY_USER for tab in (True, False)), *((name, False) for name in FOREIGN)],
    ids=lambda value: {True: "own tab", False: "elsewhere"}.get(value, value),
)
def test_session_end_ends_pending_sign_in(world: World, stage: str, end: str, tab: bool) -> None:
    waiting = Browser(world)
    scene = PendingSignInScenario(world, world.make_human_user(), waiting, waiting.tab() if tab else Browser(world))
    STAGES[stage](scene)
    assert waiting.sign_in_step == stage.partition(" of ")[0], waiting.page
    before = waiting.session_cookies
    forms = waiting.page.forms
    spared = "chosen" in stage and end in SPARE and tab
    if "chosen" in stage and not tab and end in {"one other session", "sign out"}:
        pytest.skip("another session of the person than the one that was chosen")
    if end in ENDED_BY_USER:
        ENDED_BY_USER[end](scene)
    else:
        end_by_manager(scene, end)
    if forms:
        # Submit the form that was open before.
        press = ("decision", "allow") if stage.startswith("consent") else None
        fields = {} if press else {"new_password": f"{NEW}, again", "new_password_again": f"{NEW}, again"}
        waiting.submit(fields, button=press)
        if not spared:
            assert waiting.external_redirect is None
            assert not waiting.session_cookies - before
    if spared:
        assert (waiting.external_redirect or "").startswith("https://"), waiting.page
        return
    waiting.open(f"/oauth/v2/authorize/{_request_of(waiting)}")
    assert waiting.external_redirect is None
    assert not waiting.session_cookies - before
    if end == "organization removed" and "chosen" not in stage:
        assert waiting.page.status_int == 404
    else:
        assert waiting.sign_in_step in {"", "password", "accounts"}, waiting.page


def test_password_replaced_during_verification_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verifying takes a while, and the row is not locked meanwhile."""
    scene = PendingSignInScenario(world, world.make_human_user(), Browser(world), Browser(world))
    hasher = world.identity.process_state.hasher
    verify = hasher.verify

    def replaced_meanwhile(stored: str | None, password: str, **options: Any) -> HashVerification:
        with ThreadPoolExecutor(1) as executor:
            executor.submit(end_by_manager, scene, "one-time password").result()
        return verify(stored, password, **options)

    monkeypatch.setattr(hasher, "verify", replaced_meanwhile)
    _ask(scene, "login")
    scene.waiting.sign_in(scene.login_name)
    assert scene.waiting.sign_in_step == "password", scene.waiting.page
    assert not scene.waiting.session_cookies


def test_overtaken_response_is_decided_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = PendingSignInScenario(world, world.make_human_user(), Browser(world), Browser(world))
    finish = SignInService.finish
    calls: list[int] = []

    def ended_meanwhile(self: SignInService, pending: PendingAuthorization) -> None:
        calls.append(1)
        if len(calls) == 1:
            self._storage.authorization_requests.reset_for_user(scene.person.id)
        finish(self, pending)

    monkeypatch.setattr(SignInService, "finish", ended_meanwhile)
    _ask(scene, "login")
    scene.waiting.sign_in(scene.login_name)
    assert scene.waiting.sign_in_step == ""
    scene.waiting.sign_in(scene.login_name)
    assert (scene.waiting.external_redirect or "").startswith("https://")
    assert len(calls) == 2


def _request_of(browser: Browser) -> str:
    return next(
        answer.request.path.split("/")[2] for answer in browser.answers if answer.request.path.startswith("/login/")
    )

"""Concurrent first sign-ins of one user, and retried transactions."""

from threading import Barrier

import pytest

from identity.outbound_http import OutboundResponse
from identity.testing.browser import Browser
from tests.http.transaction_conflicts import contend
from tests.plugins.factors.test_factor_races import at_once
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.fake_provider import _json
from tests.plugins.upstream.test_sign_in import NAMES, count_accounts, people

ROUNDS = 5


@pytest.mark.thorough
@pytest.mark.every_storage
@pytest.mark.parametrize("trusted", [False, True])
def test_concurrent_first_sign_ins_create_one_account(scene: UpstreamScenario, trusted: bool) -> None:
    scene.change(trust_email=trusted)
    for number in range(ROUNDS):
        scene.fake_provider.claims = {**NAMES, "email_verified": trusted}
        scene.fake_provider.subject = f"subject {number}"
        both_are_back = Barrier(2)

        def userinfo() -> OutboundResponse:
            both_are_back.wait(30)  # noqa: B023
            return _json({"sub": scene.fake_provider.subject})

        scene.fake_provider.answers["/userinfo"] = userinfo
        browsers = [Browser(scene.world) for _ in range(2)]
        auth_requests = {id(browser): scene.ask(browser) for browser in browsers}
        answers = {id(browser): scene.fake_provider.approve(scene.go(browser)) for browser in browsers}
        outcomes = at_once(browsers, lambda browser: scene.back(answers[id(browser)], browser))  # noqa: B023
        assert outcomes == {0: 2}
        subjects = {
            scene.party.obtain_tokens(browser.page, auth_requests[id(browser)]).claims["sub"] for browser in browsers
        }
        assert len(subjects) == 1
        assert count_accounts(scene) == len(people(scene)) == number + 1
        assert len(scene.world.audit_events(event="linked_identity.added", object_id=subjects.pop())) == 1


@pytest.mark.storages("memory")
def test_retried_transaction_redeems_code_once(scene: UpstreamScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    authorization = scene.ask()
    back, outcomes = scene.fake_provider.approve(scene.go()), contend(scene.world, monkeypatch)
    # State and code are committed at once; creating the account conflicts twice.
    outcomes.extend((True, True, False, False))
    scene.back(back)
    assert outcomes == []
    assert scene.party.obtain_tokens(scene.browser.page, authorization).claims["sub"]
    assert [path for _, path, *_ in scene.fake_provider.requests].count("/token") == 1

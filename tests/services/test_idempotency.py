"""A repeated request gets the same response again, and is executed once."""

from datetime import timedelta

import pytest

from identity.application import IdentityApplication
from identity.domain.errors import Conflict
from identity.services.idempotency import StoredResponse
from identity.testing.clock import FakeClock

_BODY = b'{"client_secret": "shown once"}'


def answered(
    identity: IdentityApplication, *, principal: str = "anna", key: str = "k", request: bytes = b"POST /x {}"
) -> object:
    with identity.transaction() as services:
        stored_response = services.idempotency.claim_key(principal, key, request)
        if stored_response is None:
            services.idempotency.store_response(201, _BODY)
        return stored_response


def test_the_second_request_gets_the_first_one_s_answer(identity: IdentityApplication) -> None:
    assert answered(identity) is None
    assert answered(identity) == StoredResponse(201, _BODY)
    assert "shown once" not in repr(answered(identity))


def test_a_key_stands_for_one_request(identity: IdentityApplication) -> None:
    answered(identity)
    with pytest.raises(Conflict, match="another request"):
        answered(identity, request=b"POST /y {}")


def test_keys_belong_to_whoever_uses_them(identity: IdentityApplication) -> None:
    answered(identity)
    assert answered(identity, principal="bert") is None
    assert answered(identity, key="l") is None


def test_what_is_aborted_can_be_tried_again(identity: IdentityApplication) -> None:
    def fail() -> None:
        with identity.transaction() as services:
            services.idempotency.claim_key("anna", "k", b"POST /x {}")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fail()
    assert answered(identity) is None


def test_an_answer_that_was_not_kept_is_not_made_up(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        services.idempotency.claim_key("anna", "k", b"POST /x {}")
    with pytest.raises(Conflict, match="was not kept"):
        answered(identity)


def test_answers_are_kept_for_a_day(identity: IdentityApplication, clock: FakeClock) -> None:
    answered(identity)
    clock.advance(hours=24, seconds=-1)
    assert answered(identity) is not None
    clock.advance(seconds=1)
    assert answered(identity) is None


def test_answers_lie_sealed_and_are_purged(identity: IdentityApplication, clock: FakeClock) -> None:
    answered(identity)
    with identity.transaction() as services:
        stored_response = services.idempotency.claim_key("anna", "k", b"POST /x {}")
        assert stored_response is not None
    clock.advance(hours=25)
    clock.advance(seconds=int(identity.settings.purge_after / timedelta(seconds=1)))
    assert identity.background_jobs.purge() == {"records": 1}


def test_a_form_is_used_once(identity: IdentityApplication) -> None:
    def used(principal: str = "anna", once: str = "o") -> bool:
        with identity.transaction() as services:
            return services.idempotency.claim_token(principal, once)

    assert [used(), used(), used(once="p"), used("bert")] == [True, False, True, True]
    # The two kinds of keys are separate.
    assert answered(identity, key="o") is None


def test_request_may_claim_again_what_it_has_committed(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        assert services.idempotency.claim_token("anna", "form")
        assert services.idempotency.claim_key("anna", "k", b"POST /x {}") is None
        committed = services.idempotency.claimed_keys
    with identity.transaction() as services:
        services.idempotency.own_keys = committed
        assert services.idempotency.claim_token("anna", "form")
        assert services.idempotency.claim_key("anna", "k", b"POST /x {}") is None
        services.idempotency.store_response(201, _BODY)
    assert answered(identity) == StoredResponse(201, _BODY)
    with identity.transaction() as services:
        assert not services.idempotency.claim_token("anna", "form")

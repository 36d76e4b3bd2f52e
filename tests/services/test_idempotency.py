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


def test_repeated_request_gets_stored_response(identity: IdentityApplication) -> None:
    assert answered(identity) is None
    assert answered(identity) == StoredResponse(201, _BODY)
    assert "shown once" not in repr(answered(identity))


def test_key_of_another_request_is_refused(identity: IdentityApplication) -> None:
    answered(identity)
    with pytest.raises(Conflict, match="another request"):
        answered(identity, request=b"POST /y {}")


def test_keys_are_separate_per_caller(identity: IdentityApplication) -> None:
    answered(identity)
    assert answered(identity, principal="bert") is None
    assert answered(identity, key="l") is None


def test_aborted_request_can_be_repeated(identity: IdentityApplication) -> None:
    def fail() -> None:
        with identity.transaction() as services:
            services.idempotency.claim_key("anna", "k", b"POST /x {}")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fail()
    assert answered(identity) is None


def test_missing_response_is_reported(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        services.idempotency.claim_key("anna", "k", b"POST /x {}")
    with pytest.raises(Conflict, match="was not kept"):
        answered(identity)


def test_responses_are_kept_for_a_day(identity: IdentityApplication, clock: FakeClock) -> None:
    answered(identity)
    clock.advance(hours=24, seconds=-1)
    assert answered(identity) is not None
    clock.advance(seconds=1)
    assert answered(identity) is None


def test_responses_are_sealed_and_purged(identity: IdentityApplication, clock: FakeClock) -> None:
    answered(identity)
    with identity.transaction() as services:
        stored_response = services.idempotency.claim_key("anna", "k", b"POST /x {}")
        assert stored_response is not None
    clock.advance(hours=25)
    clock.advance(seconds=int(identity.settings.purge_after / timedelta(seconds=1)))
    assert identity.background_jobs.purge() == {"records": 1}


def test_form_submission_is_accepted_once(identity: IdentityApplication) -> None:
    def used(principal: str = "anna", once: str = "o") -> bool:
        with identity.transaction() as services:
            return services.idempotency.claim_token(principal, once)

    assert [used(), used(), used(once="p"), used("bert")] == [True, False, True, True]
    # The two kinds of keys are separate.
    assert answered(identity, key="o") is None


def test_retried_request_can_claim_its_key_again(identity: IdentityApplication) -> None:
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

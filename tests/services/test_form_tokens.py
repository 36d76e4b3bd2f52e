"""Form tokens: issued with a page, and accepted once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest
from transaction.interfaces import TransientError

from identity.testing.world import World

MINUTE = timedelta(minutes=1)


def used(world: World, purpose: str, ticket: str) -> object:
    with world.transaction_services() as services:
        return services.form_tokens.redeem(purpose, ticket)


def issued(world: World, **content: str) -> str:
    with world.read_only_services() as services:
        return services.form_tokens.issue("a page", content, MINUTE)


def test_form_token_returns_content_once(world: World) -> None:
    ticket = issued(world, word="open sesame")
    assert "sesame" not in ticket
    assert used(world, "a page", ticket) == {"word": "open sesame"}
    assert used(world, "a page", ticket) is None


def test_issuing_form_token_stores_nothing(world: World) -> None:
    """Issuing needs no write, and tokens are unique."""
    assert issued(world) != issued(world)


def test_form_token_is_bound_to_its_purpose(world: World) -> None:
    ticket = issued(world)
    assert used(world, "another page", ticket) is None
    assert used(world, "a page", ticket) == {}


def test_form_token_expires(world: World) -> None:
    early, late = issued(world), issued(world)
    world.clock.advance(seconds=59)
    assert used(world, "a page", early) == {}
    world.clock.advance(seconds=2)
    assert used(world, "a page", late) is None


def test_malformed_form_token_is_refused(world: World) -> None:
    ticket = issued(world)
    for made_up in ("", "AAAA", "é", "\ud800", ticket[:-4], f"{ticket}AAAA", ticket.swapcase(), f"{ticket}="):
        assert used(world, "a page", made_up) is None
    assert used(world, "a page", ticket) == {}


def test_rollback_does_not_consume_form_token(world: World) -> None:
    ticket = issued(world)

    def refused() -> None:
        with world.transaction_services() as services:
            assert services.form_tokens.redeem("a page", ticket) == {}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        refused()
    assert used(world, "a page", ticket) == {}


@pytest.mark.every_storage
def test_concurrent_form_token_use_succeeds_once(world: World) -> None:
    ticket = issued(world, word="one")

    def use(_: int) -> object:
        # Retry after a conflict, as a request does.
        for _ in range(8):
            with suppress(TransientError):
                return used(world, "a page", ticket)
        raise AssertionError("it was in the way of others each time")

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(use, range(8)))
    assert sorted(found, key=str) == [*[None] * 7, {"word": "one"}]

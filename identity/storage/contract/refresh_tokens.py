"""Contract of refresh tokens and connected applications."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from identity.domain.applications import ApplicationClient
from identity.domain.tokens import ConnectedApplication, PresentedRefreshToken, RefreshToken
from identity.domain.users import Subject
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_digest, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.errors import AlreadyUsed, RowNotFound


class RefreshTokenContract(ContractBase):
    """A live refresh token is rotated once; a replay differs from an unknown token."""

    @pytest.fixture
    def refresh(self, on: StorageHarness) -> RefreshToken:
        return on.store_value(make.refresh_token(on.family))

    def test_refresh_tokens_rotate_stores_the_successor(self, on: StorageHarness, refresh: RefreshToken) -> None:
        successor = make.refresh_token(on.family, predecessor_id=refresh.id, issued_at=NOW + SECOND)
        on.write.tokens.rotate_refresh_token(refresh.digest, successor, NOW + SECOND)
        assert on.find_stored(refresh) == replace(refresh, rotated_at=NOW + SECOND)
        assert on.find_stored(successor) == successor
        assert on.read.tokens.find_access_token(successor.digest) is None, "a refresh token is no access token"

    @pytest.mark.parametrize("last", [False, True])
    def test_refresh_tokens_rotate_stores_the_access_token_beside_the_successor(
        self, on: StorageHarness, refresh: RefreshToken, last: bool
    ) -> None:
        successor, refresh_token = (make.refresh_token(on.family, predecessor_id=refresh.id) for _ in range(2))
        access, unwanted = (
            make.access_token(on.human_user, on.application, on.family, digest=make_digest()) for _ in "ab"
        )
        with on.transaction() as storage:
            storage.tokens.rotate_refresh_token(refresh.digest, successor, NOW, access=access, is_last_write=last)
        assert on.find_stored(refresh) == replace(refresh, rotated_at=NOW)
        assert on.unchanged(successor, access) == [successor, access]
        with on.transaction() as storage:
            with pytest.raises(AlreadyUsed):
                storage.tokens.rotate_refresh_token(
                    refresh.digest, refresh_token, NOW, access=unwanted, is_last_write=last
                )
            storage.tokens.revoke_family(on.family.id, NOW)
        assert on.unchanged(refresh_token, unwanted) == []
        assert on.find_stored(on.family) == replace(on.family, revoked_at=NOW), (
            "the transaction goes on after the refusal"
        )

    @pytest.mark.parametrize("last", [False, True])
    def test_refresh_tokens_are_not_rotated_where_what_is_new_cannot_be_stored(
        self, on: StorageHarness, refresh: RefreshToken, last: bool
    ) -> None:
        token_family = make.token_family(on.human_user, on.application)
        successor = make.refresh_token(on.family)
        access = make.access_token(on.human_user, on.application, token_family)
        for new, beside in ((make.refresh_token(token_family), None), (successor, access)):
            with pytest.raises(RowNotFound), on.transaction() as storage:
                storage.tokens.rotate_refresh_token(refresh.digest, new, NOW, access=beside, is_last_write=last)
            assert on.unchanged(refresh, new) == [refresh]

    def test_refresh_tokens_second_rotation_reports_row_even_if_expired_and_keeps_transaction_usable(
        self, on: StorageHarness, refresh: RefreshToken
    ) -> None:
        on.write.tokens.rotate_refresh_token(refresh.digest, make.refresh_token(on.family), NOW)
        second = make.refresh_token(on.family)
        with on.transaction() as storage:
            for at in (NOW, refresh.expires_at + SECOND):
                with pytest.raises(AlreadyUsed) as refusal:
                    storage.tokens.rotate_refresh_token(refresh.digest, second, at)
                assert refusal.value.value == replace(refresh, rotated_at=NOW), "the first one is the one that counts"
            storage.tokens.revoke_family(on.family.id, NOW)
        assert on.find_stored(second) is None
        assert on.find_stored(on.family) == replace(on.family, revoked_at=NOW)

    @pytest.mark.parametrize(
        ("dead", "live"),
        [
            ({"revoked_at": NOW - SECOND}, {}),
            ({"expires_at": NOW}, {"expires_at": NOW + SECOND}),
            ({"ends_at": NOW}, {"ends_at": NOW + SECOND}),
            ({"digest": make_digest()}, {}),
        ],
    )
    def test_refresh_tokens_that_are_not_live_cannot_be_rotated(
        self, on: StorageHarness, refresh: RefreshToken, dead: dict[str, Any], live: dict[str, Any]
    ) -> None:
        token = replace(refresh, id=make_id(), **({"digest": make_digest()} | dead))
        successor, refresh_token = make.refresh_token(on.family), make.refresh_token(on.family, **live)
        on.store(refresh_token)
        if "digest" not in dead:
            on.store(token)
        with on.transaction() as storage, pytest.raises(RowNotFound):
            storage.tokens.rotate_refresh_token(token.digest, successor, NOW)
        assert on.unchanged(token, successor) == ([] if "digest" in dead else [token])
        on.write.tokens.rotate_refresh_token(refresh_token.digest, successor, NOW)

    def test_refresh_tokens_find_presented_returns_everything_around_the_token(self, on: StorageHarness) -> None:
        family = on.family
        token = make.refresh_token(family, scope=("openid", "b"), session_id=on.session.id, nonce="nönce")
        rotated = make.refresh_token(family, rotated_at=NOW, revoked_at=NOW + SECOND)
        on.store(token, rotated)
        subject = Subject(on.human_user, on.organization)
        assert on.read.tokens.find_refresh_token(token.digest) == PresentedRefreshToken(token, family, subject)
        assert on.read.tokens.find_refresh_token(rotated.digest) == PresentedRefreshToken(rotated, family, subject)
        assert on.read.tokens.find_refresh_token(make_digest()) is None
        inactive = replace(on.human_user, active=False, version=2)
        with on.transaction() as storage:
            storage.tokens.revoke_family(family.id, NOW)
            storage.users.update(inactive)
        revoked = replace(family, revoked_at=NOW)
        assert on.read.tokens.find_refresh_token(token.digest) == PresentedRefreshToken(
            token, revoked, Subject(inactive, on.organization)
        )

    def test_refresh_tokens_a_successor_is_replaced_by_another(self, on: StorageHarness, refresh: RefreshToken) -> None:
        first, second, third = (make.refresh_token(on.family, predecessor_id=refresh.id) for _ in range(3))
        on.write.tokens.rotate_refresh_token(refresh.digest, first, NOW)
        rotated = replace(refresh, rotated_at=NOW)
        for index, successor in enumerate((second, third), 1):
            assert on.write.tokens.replace_successor(rotated, successor, NOW + index * SECOND)
        assert on.find_stored(first) == replace(first, revoked_at=NOW + SECOND)
        assert on.find_stored(second) == replace(second, revoked_at=NOW + 2 * SECOND)
        assert on.find_stored(third) == third
        assert on.find_stored(refresh) == rotated
        on.write.tokens.rotate_refresh_token(third.digest, make.refresh_token(on.family, predecessor_id=third.id), NOW)

    @pytest.mark.parametrize("reason", ["used", "revoked", "family", "never rotated"])
    def test_refresh_tokens_a_successor_that_is_not_live_is_not_replaced(self, on: StorageHarness, reason: str) -> None:
        refresh = make.refresh_token(on.family, rotated_at=NOW)
        successor, refresh_token = (make.refresh_token(on.family, predecessor_id=refresh.id) for _ in range(2))
        successor = replace(successor, revoked_at=NOW if reason == "revoked" else None)
        on.store(refresh, *([] if reason == "never rotated" else [successor]))
        if reason == "used":
            # The successor of the successor is live, but it is not the one to be replaced.
            on.write.tokens.rotate_refresh_token(
                successor.digest, make.refresh_token(on.family, predecessor_id=successor.id), NOW
            )
        if reason == "family":
            on.write.tokens.revoke_family(on.family.id, NOW)
        before = on.find_stored(successor)
        assert not on.write.tokens.replace_successor(refresh, refresh_token, NOW + SECOND)
        assert on.find_stored(refresh_token) is None
        assert on.find_stored(successor) == before

    def test_refresh_tokens_replacing_a_successor_leaves_others_alone(
        self, on: StorageHarness, refresh: RefreshToken
    ) -> None:
        family = on.family
        other_family = make.token_family(on.human_user, on.application)
        strangers = [
            make.refresh_token(family),
            make.refresh_token(family, predecessor_id=make_id()),
            make.refresh_token(other_family),
        ]
        on.store(other_family, *strangers)
        with on.transaction() as storage:
            storage.tokens.rotate_refresh_token(
                refresh.digest, make.refresh_token(family, predecessor_id=refresh.id), NOW
            )
            assert storage.tokens.replace_successor(refresh, make.refresh_token(family, predecessor_id=refresh.id), NOW)
        assert [on.find_stored(refresh_token) for refresh_token in strangers] == strangers

    def test_refresh_tokens_races_one_of_many_successors_stays_live(self, on: StorageHarness) -> None:
        for times in (100, 24, 24):
            first = make.refresh_token(on.family, rotated_at=NOW)
            successors = [make.refresh_token(on.family, predecessor_id=first.id) for _ in range(times + 1)]
            on.store(first, successors[-1])
            outcomes = on.race(partial(replace_successor, predecessor=first, successors=successors), times)
            assert outcomes.errors == {}
            assert outcomes.values == [True] * times, "each puts its own in the place of the one before"
            stored = [on.find_stored(refresh_token) for refresh_token in successors]
            assert all(refresh_token is not None for refresh_token in stored)
            assert [refresh_token is not None and refresh_token.revoked_at is None for refresh_token in stored].count(
                True
            ) == 1

    def test_refresh_tokens_races_a_used_successor_is_not_replaced(self, on: StorageHarness) -> None:
        for _ in range(4):
            first = make.refresh_token(on.family, rotated_at=NOW)
            successors = [make.refresh_token(on.family, predecessor_id=first.id) for _ in range(25)]
            following = [make.refresh_token(on.family, predecessor_id=successors[-1].id) for _ in range(24)]
            on.store(first, successors[-1])
            attempt = partial(
                rotate_or_replace_successor, predecessor=first, successors=successors, following=following
            )
            outcomes = on.race(attempt, 24)
            assert set(outcomes.errors) <= {"AlreadyUsed", "RowNotFound"}, outcomes.errors
            stored = [on.find_stored(refresh_token) for refresh_token in (*successors, *following)]
            live = [token for token in stored if token and token.revoked_at is None and token.rotated_at is None]
            assert len(live) == 1, "there is one live chain"


class ConnectionContract(ContractBase):
    """A person sees which applications hold tokens, and can disconnect one of them."""

    def test_connections_are_what_each_application_holds_last_used_first(self, on: StorageHarness) -> None:
        application = make.application(on.project, name="Other", active=False)
        online = make.token_family(
            on.human_user, on.application, scope=("openid", "email"), offline=False, started_at=NOW - 3 * SECOND
        )
        offline = make.token_family(
            on.human_user, on.application, scope=("openid", "profile"), started_at=NOW - 2 * SECOND
        )
        later = make.token_family(on.human_user, application, scope=("openid",), offline=False, started_at=NOW - SECOND)
        on.store(application, online, offline, later)
        shop = ConnectedApplication(
            client=ApplicationClient(on.application, (), on.project, on.organization),
            scope=("openid", "email", "profile"),
            offline=True,
            since=NOW - 3 * SECOND,
            last_used_at=NOW - 2 * SECOND,
        )
        second = ConnectedApplication(
            client=ApplicationClient(application, (), on.project, on.organization),
            scope=("openid",),
            offline=False,
            since=NOW - SECOND,
            last_used_at=NOW - SECOND,
        )
        assert on.read.tokens.list_connected_applications(on.human_user.id, NOW) == (second, shop)
        first_token = make.refresh_token(online, issued_at=NOW, rotated_at=NOW + SECOND)
        on.store(
            first_token, make.refresh_token(online, issued_at=NOW + SECOND), make.refresh_token(offline, issued_at=NOW)
        )
        assert on.read.tokens.list_connected_applications(on.human_user.id, NOW) == (
            replace(shop, last_used_at=NOW + SECOND),
            second,
        )
        assert on.read.tokens.list_connected_applications(make_id(), NOW) == ()

    def test_connections_do_not_show_secrets(self, on: StorageHarness) -> None:
        application = on.application
        on.store(make.token_family(on.human_user, application))
        with on.transaction() as storage:
            storage.applications.add_secret(application.id, make.client_secret())
            storage.applications.add_secret(application.id, make.client_secret())
        (connection,) = on.read.tokens.list_connected_applications(on.human_user.id, NOW)
        assert connection.client.secrets == ()

    def test_connections_are_of_families_that_are_neither_revoked_nor_ended_nor_another_s(
        self, on: StorageHarness
    ) -> None:
        family = on.family
        revoked = make.token_family(on.human_user, on.application, scope=("revoked",), revoked_at=NOW)
        ended = make.token_family(on.human_user, on.application, scope=("ended",), started_at=NOW - SECOND, ends_at=NOW)
        foreign = make.token_family(on.service_user, on.application, scope=("foreign",))
        on.store(revoked, ended, foreign, make.refresh_token(ended, issued_at=NOW + SECOND))
        (connection,) = on.read.tokens.list_connected_applications(on.human_user.id, NOW)
        assert connection.scope == family.scope
        assert connection.last_used_at == family.started_at
        on.write.tokens.revoke_family(family.id, NOW)
        assert on.read.tokens.list_connected_applications(on.human_user.id, NOW) == ()

    def test_connections_know_the_client_s_organization_from_the_user_s(self, on: StorageHarness) -> None:
        other_organization = make.organization()
        stranger = make.human_user(other_organization)
        on.store(other_organization, stranger, make.token_family(stranger, on.application))
        (connection,) = on.read.tokens.list_connected_applications(stranger.id, NOW)
        assert connection.client.organization == on.organization

    def test_logout_clients_are_those_of_sessions_that_ended_at_that_moment(self, on: StorageHarness) -> None:
        person, session = on.human_user, on.session
        notified = make.application(on.project, backchannel_logout_uri="https://told.example/logout")
        framed = make.application(on.project, frontchannel_logout_uri="https://framed.example/logout")
        stranger = make.human_user(on.other_organization)
        other, foreign = make.session(person), make.session(stranger)
        on.store(notified, framed, stranger, other, foreign)
        on.store(make.token_family(stranger, notified, session_id=foreign.id))
        for application, session_id in (
            (notified, session.id),
            (framed, session.id),
            (notified, other.id),
            (notified, None),
        ):
            on.store(make.token_family(person, application, session_id=session_id))
        on.store(make.token_family(person, notified, session_id=session.id, revoked_at=NOW))
        on.store(make.token_family(person, on.application, session_id=session.id))
        with on.transaction() as storage:
            for ended, at in ((session, NOW), (foreign, NOW), (other, NOW + SECOND)):
                storage.sessions.end(ended.id, at)
        found = on.read.tokens.list_logout_clients([person.id, stranger.id, make_id()], NOW)
        assert {(user_id, session_id, client.id) for user_id, session_id, client in found} == {
            (person.id, session.id, notified.id),
            (person.id, session.id, framed.id),
            (stranger.id, foreign.id, notified.id),
        }
        assert len(found) == 3
        assert found[0][2].organization == on.organization
        assert [item for _, item, _ in on.read.tokens.list_logout_clients([person.id], NOW + SECOND)] == [other.id]
        assert on.read.tokens.list_logout_clients([], NOW) == ()

    def test_connections_of_a_client_are_stored_or_live(self, on: StorageHarness) -> None:
        unused, revoked, live = (make.application(on.project) for _ in range(3))
        on.store(unused, revoked, live)
        on.store(make.token_family(on.human_user, revoked, ends_at=NOW + DAY, revoked_at=NOW - SECOND))
        on.store(make.token_family(on.human_user, live, ends_at=NOW + DAY))
        has_family = on.read.tokens.has_family
        assert [has_family(item.id) for item in (unused, revoked, live)] == [False, True, True]
        assert [has_family(item.id, live_at=NOW) for item in (unused, revoked, live)] == [False, False, True]
        assert not has_family(live.id, live_at=NOW + DAY)

    def test_connections_can_be_taken_from_one_client(self, on: StorageHarness) -> None:
        human_user, application, family = on.human_user, on.application, on.family
        other = make.application(on.project)
        second = make.token_family(human_user, application, offline=False)
        earlier = make.token_family(human_user, application, revoked_at=NOW - SECOND)
        token_families = [
            make.token_family(human_user, other),
            make.token_family(on.service_user, application),
            earlier,
        ]
        access = make.access_token(human_user, application, second)
        # Exchanged from a token of another application, whose family goes on.
        exchanged = make.access_token(human_user, application, token_families[0], ancestors=("ab", "cd"))
        stays = make.access_token(human_user, other, token_families[0])
        on.store(other, second, *token_families, access, exchanged, stays)
        with on.transaction() as storage:
            assert storage.tokens.revoke_for_user(human_user.id, NOW, client_id=application.id) == 2
            assert storage.tokens.revoke_for_user(human_user.id, NOW + SECOND, client_id=application.id) == 0
            assert storage.tokens.revoke_for_user(human_user.id, NOW, client_id=make_id()) == 0
        assert [on.find_stored(token_family) for token_family in (family, second)] == [
            replace(e, revoked_at=NOW) for e in (family, second)
        ]
        assert on.unchanged(*token_families) == token_families
        found = [require_found(on.read.tokens.find_access_token(item.digest)) for item in (access, exchanged, stays)]
        assert [item.is_live(NOW) for item in found] == [False, False, True]
        assert found[1].token.ancestors == exchanged.ancestors


# Race attempts run in other processes, too: they must be module-level functions.


def replace_successor(
    storage: Storage, number: int, *, predecessor: RefreshToken, successors: list[RefreshToken]
) -> bool:
    """Replace the successor with a different one per attempt."""
    return storage.tokens.replace_successor(predecessor, successors[number], NOW)


def rotate_or_replace_successor(
    storage: Storage,
    number: int,
    *,
    predecessor: RefreshToken,
    successors: list[RefreshToken],
    following: list[RefreshToken],
) -> None:
    """Rotate the last successor or, every other time, replace it."""
    if number % 2:
        storage.tokens.rotate_refresh_token(successors[-1].digest, following[number], NOW)
    else:
        storage.tokens.replace_successor(predecessor, successors[number], NOW)

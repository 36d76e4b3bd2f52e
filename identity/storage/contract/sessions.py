"""Contract of the session store."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from identity.domain.access_revocations import AccessScope
from identity.domain.authentication import Proof
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.sessions import Session, SignedInAccount
from identity.domain.users import Subject
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_digest, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import DuplicateValue, RowNotFound
from identity.storage.stores.sessions import MAX_SESSIONS_PER_USER


class SessionContract(ContractBase):
    """A session is found by id and by its browser's digest; an ended one stays ended."""

    @pytest.mark.parametrize("session_count", [1, 2, 3, 4, 7])
    def test_sessions_of_browser_are_those_with_a_digest_that_it_shows(
        self, on: StorageHarness, session_count: int
    ) -> None:
        users = [make.human_user(on.organization) for _ in range(session_count)]
        sessions = [
            make.session(user, selected_at=NOW + index * SECOND, last_seen_at=NOW - index * SECOND)
            for index, user in enumerate(users)
        ]
        on.store(*users, *sessions, make.session(users[0]))
        expected = tuple(
            SignedInAccount(session, Subject(user, on.organization))
            for session, user in reversed(list(zip(sessions, users, strict=True)))
        )
        digests = [session.digest for session in sessions]
        assert on.read.sessions.list_for_browser(digests) == expected
        assert on.read.sessions.list_for_browser(frozenset({*digests, make_digest()})) == expected
        assert on.read.sessions.list_for_browser([*digests, *digests]) == expected, "each once"

    def test_sessions_of_a_browser_that_shows_nothing_known(self, on: StorageHarness) -> None:
        session = on.session
        assert on.read.sessions.list_for_browser([]) == ()
        assert on.read.sessions.list_for_browser([make_digest()]) == ()
        assert on.read.sessions.list_for_browser([session.digest[:-1]]) == ()
        assert on.read.sessions.list_for_browser([make_digest() for _ in range(5)]) == ()

    def test_sessions_of_browser_are_not_ended_but_may_have_expired(self, on: StorageHarness) -> None:
        ended = make.session(on.human_user, ended_at=NOW)
        expired = make.session(on.human_user, ends_at=NOW - DAY, last_seen_at=NOW - 2 * DAY)
        on.store(ended, expired)
        accounts = on.read.sessions.list_for_browser([ended.digest, expired.digest])
        assert accounts == (SignedInAccount(expired, Subject(on.human_user, on.organization)),)

    def test_sessions_of_browser_show_who_is_deactivated(self, on: StorageHarness) -> None:
        session = on.session
        on.write.users.update(replace(on.human_user, active=False, version=2))
        (account,) = on.read.sessions.list_for_browser([session.digest])
        assert account.session == session
        assert not account.subject.is_active
        assert not account.is_live(NOW, DAY, DAY)

    def test_open_sessions_are_those_of_an_organization_or_of_all(self, on: StorageHarness) -> None:
        ended, over = make.session(on.human_user, ended_at=NOW), make.session(on.human_user, ends_at=NOW)
        sessions = sorted((make.session(on.human_user) for _ in range(3)), key=lambda session: session.id)
        on.store(ended, over, *sessions)
        subject = Subject(on.human_user, on.organization)
        expected = tuple(SignedInAccount(session, subject) for session in sessions)
        assert on.read.sessions.list_open(on.organization.id, NOW, 10) == expected
        assert on.read.sessions.list_open(on.organization.id, NOW, 2) == expected[:2]
        assert on.read.sessions.list_open(make_id(), NOW, 10) == ()
        assert set(expected) <= set(on.read.sessions.list_open(None, NOW, 10_000))

    def test_what_an_organization_s_users_opened_ends_together(self, on: StorageHarness) -> None:
        """Sessions, those in which its users are signed in as others, proofs in pending requests, and records."""
        stranger, spared = make.human_user(on.other_organization), make.human_user(on.organization)
        on.store(stranger, spared)
        mine, by_member = on.session, make.session(stranger, impersonator_id=on.human_user.id)
        foreign, of_spared = make.session(stranger), make.session(spared)
        pending = {user.id: make.pending_authorization(user_id=user.id) for user in (on.human_user, stranger, spared)}
        records = {user.id: make.record(user) for user in (on.human_user, stranger, spared)}
        on.store(by_member, foreign, of_spared, *pending.values(), *records.values())
        home_id, spared_ids = on.organization.id, frozenset({spared.id})
        space = (records[spared.id].plugin, records[spared.id].kind)
        by_stranger = make.session(on.human_user, impersonator_id=stranger.id, ends_at=NOW)
        on.store(by_stranger, make.session(on.human_user, impersonator_id=stranger.id, ended_at=NOW))
        on.store(make.session(spared, impersonator_id=spared.id))
        for scope in (
            AccessScope(DeletionTarget.ORGANIZATION, home_id, spared_ids),
            AccessScope(DeletionTarget.USER, on.human_user.id),
        ):
            impersonations = [account.session for account in on.read.sessions.list_impersonations(scope)]
            assert impersonations == sorted((by_member, by_stranger), key=lambda session: session.id)
        with on.transaction() as storage:
            ended = storage.sessions.end_for_organization(home_id, NOW, except_user_ids=spared_ids)
            assert storage.sessions.end_for_organization(home_id, NOW, except_user_ids=spared_ids) == 0
            assert storage.authorization_requests.reset_for_organization(home_id, except_user_ids=spared_ids) == 1
            assert storage.records.delete_for_organization(*space, home_id, except_user_ids=spared_ids) == 1
        assert ended == 3
        assert on.unchanged(foreign, of_spared) == [foreign, of_spared]
        assert [on.read.sessions.find(item.id) for item in (mine, by_member)] == [
            replace(item, ended_at=NOW) for item in (mine, by_member)
        ]
        unchanged = [on.find_stored(item) == item for item in pending.values()]
        assert unchanged == [False, True, True]
        found = [on.read.records.find(*space, record.key) for record in records.values()]
        assert found == [None, *list(records.values())[1:]]
        with on.transaction() as storage:
            assert storage.sessions.end_for_organization(home_id, NOW) == 2

    def test_sessions_of_user_are_last_seen_first(self, on: StorageHarness) -> None:
        user = make.human_user(on.organization)
        sessions = [
            make.session(on.human_user, last_seen_at=NOW + index * SECOND, selected_at=NOW - index * SECOND)
            for index in range(3)
        ]
        ended = make.session(on.human_user, ended_at=NOW)
        ending = make.session(on.human_user, ends_at=NOW + SECOND, last_seen_at=NOW - DAY)
        over = make.session(on.human_user, ends_at=NOW)
        on.store(user, *sessions, ended, ending, over, make.session(user))
        assert on.read.sessions.list_for_user(on.human_user.id, NOW) == (*reversed(sessions), ending)
        assert on.read.sessions.list_for_user(make_id(), NOW) == ()

    def test_sessions_of_user_are_so_many_at_most(self, on: StorageHarness) -> None:
        sessions = [
            make.session(on.human_user, last_seen_at=NOW + index * SECOND) for index in range(MAX_SESSIONS_PER_USER + 1)
        ]
        on.store(*sessions)
        assert on.read.sessions.list_for_user(on.human_user.id, NOW) == tuple(reversed(sessions[1:]))

    def test_sessions_reauthenticate_moves_the_session_to_a_new_digest(self, on: StorageHarness) -> None:
        session = on.session
        other, digest, at = make.session(on.human_user), make_digest(), NOW + SECOND
        proofs = (*session.proofs, Proof("totp", ("otp",), at), Proof("remembered", (), at))
        on.store(other)
        on.write.sessions.reauthenticate(
            session.id,
            digest=digest,
            proofs=proofs,
            authenticated_at=NOW - SECOND,
            seen_at=at,
            ends_at=session.ends_at + DAY,
        )
        moved = replace(
            session,
            digest=digest,
            proofs=proofs,
            authenticated_at=NOW - SECOND,
            selected_at=at,
            last_seen_at=at,
            ends_at=session.ends_at + DAY,
        )
        assert on.read.sessions.find(session.id) == moved
        assert on.read.sessions.list_for_browser([session.digest]) == (), "what it showed before"
        assert [account.session for account in on.read.sessions.list_for_browser([digest])] == [moved]
        assert on.read.sessions.find(other.id) == other

    def test_sessions_an_ended_or_unknown_session_is_not_reauthenticated(self, on: StorageHarness) -> None:
        ended = on.store_value(make.session(on.human_user, ended_at=NOW))
        for session_id in (ended.id, make_id()):
            with on.transaction() as storage, pytest.raises(RowNotFound):
                storage.sessions.reauthenticate(
                    session_id, digest=make_digest(), proofs=(), authenticated_at=NOW, seen_at=NOW, ends_at=NOW + DAY
                )
        assert on.read.sessions.find(ended.id) == ended

    def test_sessions_reauthenticate_to_a_taken_digest_is_refused(self, on: StorageHarness) -> None:
        session = on.session
        other = on.store_value(make.session(on.human_user))
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue) as refusal:
                storage.sessions.reauthenticate(
                    session.id, digest=other.digest, proofs=(), authenticated_at=NOW, seen_at=NOW, ends_at=NOW + DAY
                )
            storage.sessions.update_last_seen(other.id, NOW + SECOND)
        assert refusal.value.field == "digest"
        assert on.read.sessions.find(session.id) == session
        assert on.read.sessions.find(other.id) == replace(other, last_seen_at=NOW + SECOND)

    @pytest.mark.parametrize(
        ("step", "moved"), [("update_last_seen", "last_seen_at"), ("update_selected", "selected_at")]
    )
    def test_sessions_a_moment_moves_forward_and_never_back(self, on: StorageHarness, step: str, moved: str) -> None:
        session: Any = on.session
        for at in (NOW + 2 * SECOND, NOW + SECOND):
            for session_id in (session.id, make_id()):
                getattr(on.write.sessions, step)(session_id, at)
        assert on.find_stored(session) == replace(session, **{moved: NOW + 2 * SECOND})

    def test_sessions_an_ended_session_keeps_its_moment(self, on: StorageHarness) -> None:
        session = on.session
        other = on.store_value(make.session(on.human_user))
        assert on.write.sessions.end(session.id, NOW)
        with on.transaction() as storage:
            assert not storage.sessions.end(session.id, NOW + SECOND)
            assert not storage.sessions.end(make_id(), NOW)
            storage.sessions.update_last_seen(session.id, NOW)
            storage.sessions.update_selected(session.id, NOW)
        assert on.read.sessions.find(session.id) == replace(session, ended_at=NOW)
        assert on.read.sessions.find(other.id) == other

    def test_sessions_end_of_user_ends_all_but_one(self, on: StorageHarness) -> None:
        human_user = on.human_user
        stranger = make.human_user(on.organization)
        session, ended, *sessions = (make.session(human_user, ended_at=at) for at in (None, NOW - SECOND, None, None))
        foreign = make.session(stranger)
        on.store(stranger, session, ended, *sessions, foreign)
        with on.transaction() as storage:
            assert storage.sessions.end_for_user(human_user.id, NOW, except_id=session.id) == 2
            assert storage.sessions.end_for_user(human_user.id, NOW, except_id=session.id) == 0
            assert storage.sessions.end_for_user(make_id(), NOW) == 0
        assert [on.read.sessions.find(item.id) for item in sessions] == [
            replace(item, ended_at=NOW) for item in sessions
        ]
        for item in (session, ended, foreign):
            assert on.read.sessions.find(item.id) == item
        assert on.write.sessions.end_for_user(human_user.id, NOW + SECOND) == 1
        assert on.read.sessions.find(session.id) == replace(session, ended_at=NOW + SECOND)
        assert on.read.sessions.find(foreign.id) == foreign

    def test_sessions_end_for_impersonator_ends_only_those_that_name_them(self, on: StorageHarness) -> None:
        manager = make.human_user(on.organization)
        impersonated = make.session(on.human_user, impersonator_id=manager.id)
        ended = make.session(on.human_user, impersonator_id=manager.id, ended_at=NOW - SECOND)
        unaffected = (
            make.session(on.human_user),
            make.session(manager),
            make.session(on.human_user, impersonator_id="x"),
        )
        on.store(manager, impersonated, ended, *unaffected)
        with on.transaction() as storage:
            assert storage.sessions.end_for_impersonator(manager.id, NOW) == 1
            assert storage.sessions.end_for_impersonator(manager.id, NOW) == 0
        assert on.read.sessions.find(impersonated.id) == replace(impersonated, ended_at=NOW)
        for item in (ended, *unaffected):
            assert on.read.sessions.find(item.id) == item

    def test_sessions_list_expired_impersonations_that_nobody_ended(self, on: StorageHarness) -> None:
        manager = make.human_user(on.organization)
        first, second, live, ended = (
            make.session(on.human_user, impersonator_id=manager.id, ends_at=ends_at, ended_at=ended_at)
            for ends_at, ended_at in ((NOW, None), (NOW - SECOND, None), (NOW + SECOND, None), (NOW, NOW - SECOND))
        )
        on.store(manager, first, second, live, ended, make.session(on.human_user, ends_at=NOW))
        read = on.read.sessions.list_expired_impersonations
        expired = sorted((first, second), key=lambda session: session.id)
        assert [account.session for account in read(NOW, 9)] == expired
        assert [account.subject.user.id for account in read(NOW, 1)] == [on.human_user.id]

    def test_sessions_races_a_session_is_ended_once(self, on: StorageHarness) -> None:
        outcomes = on.race(partial(end_session, session_id=on.session.id), 50)
        assert outcomes.errors == {}
        assert outcomes.values.count(True) == 1
        (winner,) = (outcome.number for outcome in outcomes.committed if outcome.value)
        assert on.read.sessions.find(on.session.id) == replace(on.session, ended_at=NOW + winner * SECOND)

    def test_sessions_races_every_reauthentication_succeeds_and_one_digest_stays(self, on: StorageHarness) -> None:
        digests = [make_digest() for _ in range(50)]
        outcomes = on.race(partial(reauthenticate_session, session=on.session, digests=digests), 50)
        assert outcomes.errors == {}
        accounts = on.read.sessions.list_for_browser(digests)
        assert on.read.sessions.list_for_browser([on.session.digest]) == ()
        assert [account.session.id for account in accounts] == [on.session.id]

    def test_sessions_races_an_ended_session_is_never_live_again(self, on: StorageHarness) -> None:
        for _ in range(4):
            session = on.store_value(make.session(on.human_user))
            digests = [make_digest() for _ in range(24)]
            outcomes = on.race(partial(reauthenticate_or_end_session, session=session, digests=digests), 24)
            assert set(outcomes.errors) <= {"RowNotFound"}, outcomes.errors
            found = on.read.sessions.find(session.id)
            assert on.read.sessions.list_for_browser([session.digest, *digests]) == ()
            assert found is not None
            assert found.ended_at is not None


# Race attempts run in other processes, too: they must be module-level functions.


def end_session(storage: Storage, number: int, *, session_id: str) -> bool:
    """End the session at a different time per attempt."""
    return storage.sessions.end(session_id, NOW + number * SECOND)


def reauthenticate_session(storage: Storage, number: int, *, session: Session, digests: list[bytes]) -> None:
    """Give the session a different digest per attempt."""
    storage.sessions.reauthenticate(
        session.id,
        digest=digests[number],
        proofs=session.proofs,
        authenticated_at=session.started_at,
        seen_at=session.started_at,
        ends_at=session.ends_at,
    )


def reauthenticate_or_end_session(storage: Storage, number: int, *, session: Session, digests: list[bytes]) -> None:
    """Give the session a new digest or, every sixth time, end it."""
    if number % 6 == 5:
        storage.sessions.end(session.id, session.started_at)
    else:
        reauthenticate_session(storage, number, session=session, digests=digests)

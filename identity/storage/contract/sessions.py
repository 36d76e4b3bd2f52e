"""What is demanded of the session store."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedIn
from identity.domain.users import Subject
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import NOW, a_digest, a_human_user, a_session, an_id
from identity.storage.errors import Duplicate, Missing
from identity.storage.stores.sessions import MOST_OF_USER

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


class SessionContract(ContractBase):
    """A session is found by id and by what its browser shows; once ended it stays so."""

    @pytest.mark.parametrize("shown", [1, 2, 3, 4, 7])
    def test_sessions_of_browser_are_those_with_a_digest_that_it_shows(self, on: On, shown: int) -> None:
        users = [a_human_user(on.organization) for _ in range(shown)]
        sessions = [
            a_session(user, selected_at=NOW + index * SECOND, last_seen_at=NOW - index * SECOND)
            for index, user in enumerate(users)
        ]
        on.save(*users, *sessions, a_session(users[0]))
        expected = tuple(
            SignedIn(session, Subject(user, on.organization))
            for session, user in reversed(list(zip(sessions, users, strict=True)))
        )
        digests = [session.digest for session in sessions]
        assert on.read.sessions.of_browser(digests) == expected
        assert on.read.sessions.of_browser(frozenset({*digests, a_digest()})) == expected
        assert on.read.sessions.of_browser([*digests, *digests]) == expected, "each once"

    def test_sessions_of_a_browser_that_shows_nothing_known(self, on: On) -> None:
        session = on.session
        assert on.read.sessions.of_browser([]) == ()
        assert on.read.sessions.of_browser([a_digest()]) == ()
        assert on.read.sessions.of_browser([session.digest[:-1]]) == ()
        assert on.read.sessions.of_browser([a_digest() for _ in range(5)]) == ()

    def test_sessions_of_browser_are_not_ended_but_may_have_expired(self, on: On) -> None:
        ended = a_session(on.human_user, ended_at=NOW)
        expired = a_session(on.human_user, ends_at=NOW - DAY, last_seen_at=NOW - 2 * DAY)
        on.save(ended, expired)
        found = on.read.sessions.of_browser([ended.digest, expired.digest])
        assert found == (SignedIn(expired, Subject(on.human_user, on.organization)),)

    def test_sessions_of_browser_show_who_is_deactivated(self, on: On) -> None:
        session = on.session
        on.write.users.update(replace(on.human_user, active=False, version=2))
        (found,) = on.read.sessions.of_browser([session.digest])
        assert found.session == session
        assert not found.subject.active
        assert not found.live(NOW, DAY, DAY)

    def test_open_sessions_are_those_of_an_organization_or_of_all(self, on: On) -> None:
        ended, over = a_session(on.human_user, ended_at=NOW), a_session(on.human_user, ends_at=NOW)
        kept = sorted((a_session(on.human_user) for _ in range(3)), key=lambda one: one.id)
        on.save(ended, over, *kept)
        subject = Subject(on.human_user, on.organization)
        expected = tuple(SignedIn(one, subject) for one in kept)
        assert on.read.sessions.open(on.organization.id, NOW, 10) == expected
        assert on.read.sessions.open(on.organization.id, NOW, 2) == expected[:2]
        assert on.read.sessions.open(an_id(), NOW, 10) == ()
        assert set(expected) <= set(on.read.sessions.open(None, NOW, 10_000))

    def test_sessions_of_user_are_last_seen_first(self, on: On) -> None:
        other = a_human_user(on.organization)
        seen = [
            a_session(on.human_user, last_seen_at=NOW + index * SECOND, selected_at=NOW - index * SECOND)
            for index in range(3)
        ]
        ended = a_session(on.human_user, ended_at=NOW)
        ending = a_session(on.human_user, ends_at=NOW + SECOND, last_seen_at=NOW - DAY)
        over = a_session(on.human_user, ends_at=NOW)
        on.save(other, *seen, ended, ending, over, a_session(other))
        assert on.read.sessions.of_user(on.human_user.id, NOW) == (*reversed(seen), ending)
        assert on.read.sessions.of_user(an_id(), NOW) == ()

    def test_sessions_of_user_are_so_many_at_most(self, on: On) -> None:
        sessions = [a_session(on.human_user, last_seen_at=NOW + index * SECOND) for index in range(MOST_OF_USER + 1)]
        on.save(*sessions)
        assert on.read.sessions.of_user(on.human_user.id, NOW) == tuple(reversed(sessions[1:]))

    def test_sessions_reauthenticate_moves_the_session_to_a_new_digest(self, on: On) -> None:
        session = on.session
        other, digest, at = a_session(on.human_user), a_digest(), NOW + SECOND
        proofs = (*session.proofs, Proof("totp", ("otp",), at), Proof("remembered", (), at))
        on.save(other)
        on.write.sessions.reauthenticate(
            session.id,
            digest=digest,
            proofs=proofs,
            authenticated_at=NOW - SECOND,
            at=at,
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
        assert on.read.sessions.of_browser([session.digest]) == (), "what it showed before"
        assert [each.session for each in on.read.sessions.of_browser([digest])] == [moved]
        assert on.read.sessions.find(other.id) == other

    def test_sessions_an_ended_or_unknown_session_is_not_reauthenticated(self, on: On) -> None:
        ended = on.saved(a_session(on.human_user, ended_at=NOW))
        for session_id in (ended.id, an_id()):
            with on.writing() as storage, pytest.raises(Missing):
                storage.sessions.reauthenticate(
                    session_id, digest=a_digest(), proofs=(), authenticated_at=NOW, at=NOW, ends_at=NOW + DAY
                )
        assert on.read.sessions.find(ended.id) == ended

    def test_sessions_reauthenticate_to_a_taken_digest_is_refused(self, on: On) -> None:
        session = on.session
        other = on.saved(a_session(on.human_user))
        with on.writing() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.sessions.reauthenticate(
                    session.id, digest=other.digest, proofs=(), authenticated_at=NOW, at=NOW, ends_at=NOW + DAY
                )
            storage.sessions.touch(other.id, NOW + SECOND)
        assert refusal.value.field == "digest"
        assert on.read.sessions.find(session.id) == session
        assert on.read.sessions.find(other.id) == replace(other, last_seen_at=NOW + SECOND)

    @pytest.mark.parametrize(("step", "moved"), [("touch", "last_seen_at"), ("select", "selected_at")])
    def test_sessions_a_moment_moves_forward_and_never_back(self, on: On, step: str, moved: str) -> None:
        session: Any = on.session
        for at in (NOW + 2 * SECOND, NOW + SECOND):
            for session_id in (session.id, an_id()):
                getattr(on.write.sessions, step)(session_id, at)
        assert on.stored(session) == replace(session, **{moved: NOW + 2 * SECOND})

    def test_sessions_an_ended_session_keeps_its_moment(self, on: On) -> None:
        session = on.session
        other = on.saved(a_session(on.human_user))
        assert on.write.sessions.end(session.id, NOW)
        with on.writing() as storage:
            assert not storage.sessions.end(session.id, NOW + SECOND)
            assert not storage.sessions.end(an_id(), NOW)
            storage.sessions.touch(session.id, NOW)
            storage.sessions.select(session.id, NOW)
        assert on.read.sessions.find(session.id) == replace(session, ended_at=NOW)
        assert on.read.sessions.find(other.id) == other

    def test_sessions_end_of_user_ends_all_but_one(self, on: On) -> None:
        human_user = on.human_user
        stranger = a_human_user(on.organization)
        kept, ended, *others = (a_session(human_user, ended_at=at) for at in (None, NOW - SECOND, None, None))
        foreign = a_session(stranger)
        on.save(stranger, kept, ended, *others, foreign)
        with on.writing() as storage:
            assert storage.sessions.end_of_user(human_user.id, NOW, but=kept.id) == 2
            assert storage.sessions.end_of_user(human_user.id, NOW, but=kept.id) == 0
            assert storage.sessions.end_of_user(an_id(), NOW) == 0
        assert [on.read.sessions.find(each.id) for each in others] == [replace(each, ended_at=NOW) for each in others]
        for each in (kept, ended, foreign):
            assert on.read.sessions.find(each.id) == each
        assert on.write.sessions.end_of_user(human_user.id, NOW + SECOND) == 1
        assert on.read.sessions.find(kept.id) == replace(kept, ended_at=NOW + SECOND)
        assert on.read.sessions.find(foreign.id) == foreign

    def test_sessions_races_a_session_is_ended_once(self, on: On) -> None:
        outcomes = on.race(partial(end, session_id=on.session.id, at=NOW), 50)
        assert outcomes.errors == {}
        assert outcomes.values.count(True) == 1
        (winner,) = (outcome.number for outcome in outcomes.won if outcome.value)
        assert on.read.sessions.find(on.session.id) == replace(on.session, ended_at=NOW + winner * SECOND)

    def test_sessions_races_every_reauthentication_succeeds_and_one_digest_stays(self, on: On) -> None:
        digests = [a_digest() for _ in range(50)]
        outcomes = on.race(partial(reauthenticate, session=on.session, digests=digests), 50)
        assert outcomes.errors == {}
        found = on.read.sessions.of_browser(digests)
        assert on.read.sessions.of_browser([on.session.digest]) == ()
        assert [each.session.id for each in found] == [on.session.id]

    def test_sessions_races_an_ended_session_is_never_live_again(self, on: On) -> None:
        for _ in range(4):
            session = on.saved(a_session(on.human_user))
            digests = [a_digest() for _ in range(24)]
            outcomes = on.race(partial(reauthenticate_or_end, session=session, digests=digests), 24)
            assert set(outcomes.errors) <= {"Missing"}, outcomes.errors
            found = on.read.sessions.find(session.id)
            assert on.read.sessions.of_browser([session.digest, *digests]) == ()
            assert found is not None
            assert found.ended_at is not None


# The attempts, which also run in other processes, so that they must be functions of the module.


def end(storage: Storage, number: int, *, session_id: str, at: datetime) -> bool:
    """End the session at a moment of one's own."""
    return storage.sessions.end(session_id, at + number * SECOND)


def reauthenticate(storage: Storage, number: int, *, session: Session, digests: list[bytes]) -> None:
    """Give the session a digest of one's own."""
    storage.sessions.reauthenticate(
        session.id,
        digest=digests[number],
        proofs=session.proofs,
        authenticated_at=session.started_at,
        at=session.started_at,
        ends_at=session.ends_at,
    )


def reauthenticate_or_end(storage: Storage, number: int, *, session: Session, digests: list[bytes]) -> None:
    """Give the session a digest of one's own or, every sixth time, end it."""
    if number % 6 == 5:
        storage.sessions.end(session.id, session.started_at)
    else:
        reauthenticate(storage, number, session=session, digests=digests)

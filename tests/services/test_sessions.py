"""Sessions: found by their secret, renewed with a new secret, and ended permanently."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from identity.application import IdentityApplication
from identity.domain.authentication import Proof
from identity.domain.errors import NotFound
from identity.domain.sessions import SignedInAccount
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.container import Services
from identity.storage.contract.factories import NOW
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, subject_of

Visit = Callable[..., tuple[SignedInAccount, str]]

BY_PASSWORD = (Proof("password", ("pwd",), NOW),)


@pytest.fixture
def anna(identity: IdentityApplication) -> Subject:
    with identity.transaction() as services:
        return subject_of(services, make_human_user(services, make_organization(services)))


@pytest.fixture
def sign_in(identity: IdentityApplication, anna: Subject) -> Visit:
    def sign_in(*accounts: SignedInAccount) -> tuple[SignedInAccount, str]:
        with identity.transaction() as services:
            return services.sessions.start(anna, accounts, proofs=BY_PASSWORD, user_agent="Test")

    return sign_in


def live_accounts(identity: IdentityApplication, *secrets: str) -> tuple[SignedInAccount, ...]:
    with identity.read_session() as services:
        return services.sessions.list_by_secrets(secrets)


def test_session_is_found_by_its_secret_only(identity: IdentityApplication, anna: Subject, sign_in: Visit) -> None:
    account, secret = sign_in()
    assert [account.session for account in live_accounts(identity, secret)] == [account.session]
    assert (account.session.user_agent, account.session.client_address) == ("Test", "")
    assert live_accounts(identity, account.session.id, account.session.digest.hex(), secret[:-1]) == ()


def test_signing_in_again_renews_the_secret_and_keeps_the_session(
    identity: IdentityApplication, sign_in: Visit, clock: FakeClock
) -> None:
    first, old = sign_in()
    clock.advance(minutes=10)
    second, new = sign_in(first)
    assert second.session.id == first.session.id
    assert second.session.authenticated_at == clock()
    assert live_accounts(identity, old) == ()
    assert [account.session.id for account in live_accounts(identity, new)] == [first.session.id]


def test_expired_session_is_replaced(identity: IdentityApplication, sign_in: Visit, clock: FakeClock) -> None:
    first, old = sign_in()
    clock.advance(hours=12)
    second, new = sign_in(first)
    assert second.session.id != first.session.id
    assert [account.session.id for account in live_accounts(identity, old, new)] == [second.session.id]


def test_ended_session_is_not_renewed(identity: IdentityApplication, sign_in: Visit) -> None:
    first, _ = sign_in()
    with identity.transaction() as services:
        services.sessions.end(first)
    second, _ = sign_in(first)
    assert second.session.id != first.session.id


def test_idle_timeout_is_exact(identity: IdentityApplication, sign_in: Visit, clock: FakeClock) -> None:
    _, secret = sign_in()
    for seconds, lives in ((12 * 3600 - 1, True), (1, False)):
        clock.advance(seconds=seconds)
        with identity.read_session() as services:
            assert (services.sessions.find_current([secret]) is not None) is lives


def test_activity_does_not_extend_the_absolute_lifetime(
    identity: IdentityApplication, sign_in: Visit, clock: FakeClock
) -> None:
    _, secret = sign_in()
    for _ in range(14):
        clock.advance(hours=11)
        with identity.transaction() as services:
            account = services.sessions.find_current([secret])
            if account is not None:
                services.sessions.touch(account)
        if account is None:
            break
    # It was last used before the end of its seventh day.
    (last,) = live_accounts(identity, secret)
    assert account is not None
    clock.advance(hours=14)
    with identity.read_session() as services:
        assert services.sessions.find_current([secret]) is None
    assert clock() >= last.session.ends_at


def test_last_seen_is_updated_at_most_once_a_minute(
    identity: IdentityApplication, sign_in: Visit, clock: FakeClock
) -> None:
    account, secret = sign_in()
    for seconds, moved in ((59, False), (1, True)):
        clock.advance(seconds=seconds)
        with identity.transaction() as services:
            services.sessions.touch(services.sessions.list_by_secrets([secret])[0])
        (now,) = live_accounts(identity, secret)
        assert (now.session.last_seen_at != account.session.last_seen_at) is moved


def test_last_selected_account_is_current(
    identity: IdentityApplication, sign_in: Visit, clock: FakeClock, anna: Subject
) -> None:
    _, annas = sign_in()
    clock.advance(minutes=1)
    with identity.transaction() as services:
        bert = subject_of(services, make_human_user(services, anna.organization, "bert"))
        account, berts = services.sessions.start(bert, (), proofs=BY_PASSWORD, user_agent="")
    clock.advance(minutes=1)
    with identity.transaction() as services:
        current = services.sessions.find_current([annas, berts])
        assert current is not None
        assert current.subject.user.id == bert.user.id
        services.sessions.select(
            next(by_secret for by_secret in services.sessions.list_by_secrets([annas, berts]) if by_secret != account)
        )
        current = services.sessions.find_current([annas, berts])
        assert current is not None


def test_session_of_another_user_cannot_be_ended(identity: IdentityApplication, sign_in: Visit, anna: Subject) -> None:
    account, secret = sign_in()
    stranger = Subject(replace(anna.user, id="stranger"), anna.organization)
    with pytest.raises(NotFound), identity.transaction() as services:
        services.sessions.end_by_id(stranger, account.session.id)
    assert live_accounts(identity, secret)


def test_all_other_sessions_can_be_ended(identity: IdentityApplication, sign_in: Visit, anna: Subject) -> None:
    secrets = [sign_in()[1] for _ in range(3)]
    (account, *_) = live_accounts(identity, secrets[1])
    with identity.transaction() as services:
        assert services.sessions.end_all(anna, except_session=account.session.id) == 2
    assert [signed_in_account.session.id for signed_in_account in live_accounts(identity, *secrets)] == [
        account.session.id
    ]


def test_deactivated_user_has_no_session(services: Services) -> None:
    subject = subject_of(services, make_human_user(services, make_organization(services)))
    _, secret = services.sessions.start(subject, (), proofs=BY_PASSWORD, user_agent="")
    services.organizations.deactivate(subject.organization.id, principal=Principal.OPERATOR)
    assert services.sessions.find_current([secret]) is None

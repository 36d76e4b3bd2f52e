"""Pending sign-ins: bound to one browser, completed once, and isolated from each other."""

import pytest

from identity.application import IdentityApplication
from identity.domain.authentication import proof_methods
from identity.domain.errors import Conflict
from identity.domain.sessions import PendingAuthorization, SignedInAccount
from identity.domain.users import Subject
from identity.services.sign_ins import (
    SignInUnavailable,
    StaleSignIn,
)
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, subject_of

#: A pending sign-in and its browser secret; then Anna, and Bert, who has a session.
Begun = tuple[PendingAuthorization, str]
People = tuple[Subject, SignedInAccount]


@pytest.fixture
def begun(identity: IdentityApplication) -> Begun:
    with identity.transaction() as services:
        return services.sign_ins.begin({"client_id": "c", "state": "s"}, login_name="anna", ui_locales="de")


def test_pending_sign_in_is_found_only_by_its_browser(identity: IdentityApplication, begun: Begun) -> None:
    pending, secret = begun
    with identity.read_session() as services:
        assert services.sign_ins.find(pending.id, secret) == pending
        for other_secret in (None, "", "another"):
            with pytest.raises(SignInUnavailable, match=SignInUnavailable.FOREIGN):
                services.sign_ins.find(pending.id, other_secret)
        with pytest.raises(SignInUnavailable, match=SignInUnavailable.UNKNOWN):
            services.sign_ins.find("unknown", secret)


def test_expired_sign_in_can_be_restarted(identity: IdentityApplication, begun: Begun, clock: FakeClock) -> None:
    pending, secret = begun
    clock.advance(minutes=30)
    with identity.read_session() as services, pytest.raises(SignInUnavailable, match=SignInUnavailable.EXPIRED):
        services.sign_ins.find(pending.id, secret)
    with identity.transaction() as services:
        again, new_secret = services.sign_ins.restart(pending.id, secret)
    assert again.id != pending.id
    assert new_secret != secret
    assert (again.parameters, again.login_name, again.ui_locales) == (pending.parameters, "anna", "de")
    with identity.transaction() as services, pytest.raises(SignInUnavailable, match=SignInUnavailable.FOREIGN):
        services.sign_ins.restart(pending.id, new_secret)


def test_sign_in_completes_once(identity: IdentityApplication, begun: Begun) -> None:
    pending, secret = begun
    with identity.transaction() as services:
        services.sign_ins.finish(pending)
    with identity.transaction() as services, pytest.raises(SignInUnavailable, match=SignInUnavailable.FINISHED):
        services.sign_ins.finish(pending)
    with identity.transaction() as services, pytest.raises(SignInUnavailable, match=SignInUnavailable.FINISHED):
        services.sign_ins.set_language(pending, "fr")
    with identity.read_session() as services, pytest.raises(SignInUnavailable, match=SignInUnavailable.FINISHED):
        services.sign_ins.find(pending.id, secret)


def test_changes_of_two_tabs_are_both_kept(identity: IdentityApplication, begun: Begun) -> None:
    """The second tab still has the old version; both changes are kept."""
    pending, secret = begun
    with identity.transaction() as services:
        services.sign_ins.complete_interaction(pending, "terms")
    with identity.transaction() as services:
        services.sign_ins.complete_interaction(pending, "consent", methods=("otp",))
    with identity.read_session() as services:
        after = services.sign_ins.find(pending.id, secret)
    assert after.done == {"terms", "consent"}
    assert proof_methods(after.proofs) == ("otp",)


# --- proofs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def people(identity: IdentityApplication) -> People:
    with identity.transaction() as services:
        organization = make_organization(services)
        anna, bert = (subject_of(services, make_human_user(services, organization, name)) for name in ("anna", "bert"))
        return anna, services.sessions.start(bert, (), proofs=(), user_agent="")[0]


def test_account_change_discards_proofs(identity: IdentityApplication, begun: Begun, people: People) -> None:
    """Otherwise Anna's password would authenticate Bert, for whom prompt=login requires a password."""
    anna, bert = people
    with identity.transaction() as services:
        proved = services.sign_ins.add_proof(begun[0], anna, ("pwd",))
        proved = services.sign_ins.complete_interaction(proved, "one_time_code", methods=("otp",))
        chosen = services.sign_ins.select_account(proved, bert)
    assert (chosen.user_id, chosen.authenticated_at, chosen.proofs) == (None, None, ())
    assert chosen.session_id == bert.session.id
    assert chosen.done == {"select_account"}


def test_second_proof_requires_every_factor_again(identity: IdentityApplication, begun: Begun, people: People) -> None:
    anna, bert = people
    with identity.transaction() as services:
        chosen = services.sign_ins.select_account(begun[0], None)
        proved = services.sign_ins.add_proof(chosen, anna, ("pwd",))
        proved = services.sign_ins.complete_interaction(proved, "one_time_code", methods=("otp",))
        again = services.sign_ins.add_proof(proved, bert.subject, ("pwd",))
    assert (again.user_id, proof_methods(again.proofs)) == (bert.subject.user.id, ("pwd",))
    assert again.done == {"select_account", "login"}


def test_ending_sessions_discards_sign_in_proofs(identity: IdentityApplication, begun: Begun, people: People) -> None:
    (pending, secret), (subject, _) = begun, people
    with identity.transaction() as services:
        proved = services.sign_ins.add_proof(pending, subject, ("pwd",))
    with identity.transaction() as services:
        services.sessions.end_all(subject)
    with identity.transaction() as services, pytest.raises(StaleSignIn):
        services.sign_ins.finish(proved)
    with identity.transaction() as services:
        anew = services.sign_ins.find(pending.id, secret)
        assert (anew.user_id, anew.proofs, anew.done) == (None, (), frozenset())
        services.sign_ins.finish(anew)


def test_interaction_counts_for_its_user_only(identity: IdentityApplication, begun: Begun, people: People) -> None:
    """Two windows of one sign-in: an interaction in one of them, after another user has authenticated in the other."""
    (pending, secret), (subject, _) = begun, people
    with identity.transaction() as services:
        first = services.sign_ins.add_proof(pending, subject, ("pwd",))
    with identity.transaction() as services:
        services.sign_ins.select_account(first, None)
    with identity.transaction() as services, pytest.raises(Conflict):
        services.sign_ins.complete_interaction(first, "door", methods=("otp",))
    with identity.transaction() as services:
        assert "door" not in services.sign_ins.find(pending.id, secret).done

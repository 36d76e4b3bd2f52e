"""Sign-ins under way: bound to one browser, finished once, and never in each other's way."""

import pytest

from identity.domain.authentication import methods_of
from identity.domain.errors import Conflict
from identity.domain.sessions import PendingAuthorization, SignedIn
from identity.domain.users import Subject
from identity.process import Identity
from identity.services.sign_ins import (
    ChangedSignIn,
    ExpiredSignIn,
    FinishedSignIn,
    ForeignSignIn,
    UnknownSignIn,
)
from identity.testing.clock import MovableClock
from tests.services.people import a_person, an_organization, subject_of

#: A sign-in and the secret of its browser; Anna, and Bert who is signed in.
Begun = tuple[PendingAuthorization, str]
People = tuple[Subject, SignedIn]


@pytest.fixture
def begun(identity: Identity) -> Begun:
    with identity.transaction() as services:
        return services.sign_ins.begin({"client_id": "c", "state": "s"}, login_name="anna", ui_locales="de")


def test_its_browser_alone_finds_it(identity: Identity, begun: Begun) -> None:
    pending, secret = begun
    with identity.reading() as services:
        assert services.sign_ins.find(pending.id, secret) == pending
        for shown in (None, "", "another"):
            with pytest.raises(ForeignSignIn):
                services.sign_ins.find(pending.id, shown)
        with pytest.raises(UnknownSignIn):
            services.sign_ins.find("unknown", secret)


def test_one_that_waited_too_long_can_be_started_again(identity: Identity, begun: Begun, clock: MovableClock) -> None:
    pending, secret = begun
    clock.advance(minutes=30)
    with identity.reading() as services, pytest.raises(ExpiredSignIn):
        services.sign_ins.find(pending.id, secret)
    with identity.transaction() as services:
        again, new_secret = services.sign_ins.start_again(pending.id, secret)
    assert again.id != pending.id
    assert new_secret != secret
    assert (again.parameters, again.login_name, again.ui_locales) == (pending.parameters, "anna", "de")
    with identity.transaction() as services, pytest.raises(ForeignSignIn):
        services.sign_ins.start_again(pending.id, new_secret)


def test_it_is_finished_once(identity: Identity, begun: Begun) -> None:
    pending, secret = begun
    with identity.transaction() as services:
        services.sign_ins.finish(pending)
    with identity.transaction() as services, pytest.raises(FinishedSignIn):
        services.sign_ins.finish(pending)
    with identity.transaction() as services, pytest.raises(FinishedSignIn):
        services.sign_ins.speak(pending, "fr")
    with identity.reading() as services, pytest.raises(FinishedSignIn):
        services.sign_ins.find(pending.id, secret)


def test_two_tabs_change_it_one_after_the_other(identity: Identity, begun: Begun) -> None:
    """The second tab still holds what the first one has replaced: both changes stand."""
    pending, secret = begun
    with identity.transaction() as services:
        services.sign_ins.done(pending, "terms")
    with identity.transaction() as services:
        services.sign_ins.done(pending, "consent", methods=("otp",))
    with identity.reading() as services:
        after = services.sign_ins.find(pending.id, secret)
    assert after.done == {"terms", "consent"}
    assert methods_of(after.proofs) == ("otp",)


# --- who has proved what ----------------------------------------------------------------------------------------------


@pytest.fixture
def people(identity: Identity) -> People:
    with identity.transaction() as services:
        organization = an_organization(services)
        anna, bert = (subject_of(services, a_person(services, organization, name)) for name in ("anna", "bert"))
        return anna, services.sessions.sign_in(bert, (), proofs=(), user_agent="")[0]


def test_choosing_an_account_undoes_what_another_has_proved(identity: Identity, begun: Begun, people: People) -> None:
    """Otherwise Anna's password would stand for Bert's, whom prompt=login wants to hear from."""
    anna, bert = people
    with identity.transaction() as services:
        proved = services.sign_ins.prove(begun[0], anna, ("pwd",))
        proved = services.sign_ins.done(proved, "one_time_code", methods=("otp",))
        chosen = services.sign_ins.choose(proved, bert)
    assert (chosen.user_id, chosen.authenticated_at, chosen.proofs) == (None, None, ())
    assert chosen.session_id == bert.session.id
    assert chosen.done == {"select_account"}


def test_a_second_proof_has_to_pass_every_factor_again(identity: Identity, begun: Begun, people: People) -> None:
    anna, bert = people
    with identity.transaction() as services:
        chosen = services.sign_ins.choose(begun[0], None)
        proved = services.sign_ins.prove(chosen, anna, ("pwd",))
        proved = services.sign_ins.done(proved, "one_time_code", methods=("otp",))
        again = services.sign_ins.prove(proved, bert.subject, ("pwd",))
    assert (again.user_id, methods_of(again.proofs)) == (bert.subject.user.id, ("pwd",))
    assert again.done == {"select_account", "login"}


def test_nothing_is_answered_by_what_was_true_before(identity: Identity, begun: Begun, people: People) -> None:
    (pending, secret), (subject, _) = begun, people
    with identity.transaction() as services:
        proved = services.sign_ins.prove(pending, subject, ("pwd",))
    with identity.transaction() as services:
        services.sessions.end_all_of(subject)
    with identity.transaction() as services, pytest.raises(ChangedSignIn):
        services.sign_ins.finish(proved)
    with identity.transaction() as services:
        anew = services.sign_ins.find(pending.id, secret)
        assert (anew.user_id, anew.proofs, anew.done) == (None, (), frozenset())
        services.sign_ins.finish(anew)


def test_what_one_person_did_counts_for_no_other(identity: Identity, begun: Begun, people: People) -> None:
    """Two windows at one sign-in: what is finished in the one after somebody proved who they are in the other."""
    (pending, secret), (subject, _) = begun, people
    with identity.transaction() as services:
        first = services.sign_ins.prove(pending, subject, ("pwd",))
    with identity.transaction() as services:
        services.sign_ins.choose(first, None)
    with identity.transaction() as services, pytest.raises(Conflict):
        services.sign_ins.done(first, "door", methods=("otp",))
    with identity.transaction() as services:
        assert "door" not in services.sign_ins.find(pending.id, secret).done

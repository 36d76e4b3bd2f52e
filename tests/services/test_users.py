"""User accounts, as managers see and change them."""

from datetime import timedelta

import pytest

from identity.application import IdentityApplication
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.managers import AddManager
from identity.services.commands.users import ChangeHumanUser, InviteHumanUser
from identity.services.container import Services
from identity.services.one_time_links import InvalidOneTimeLink, OneTimeLinkKind
from identity.services.users import UserState
from identity.storage.contract import factories as make
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, make_service_user, subject_of

_ANNA = {"user_name": "anna", "given_name": "Anna", "family_name": "B", "email": "anna@acme.example"}


@pytest.fixture
def organization(services: Services) -> Organization:
    return make_organization(services, domain="acme.example")


@pytest.fixture
def anna(services: Services, organization: Organization) -> HumanUser:
    return make_human_user(services, organization, email="anna@acme.example")


def sign_in(services: Services, user: HumanUser) -> str:
    return services.sessions.start(subject_of(services, user), (), proofs=(), user_agent="")[0].session.id


def state(services: Services, user: HumanUser) -> UserState:
    return services.users.user_states([services.users.get(user.id)])[user.id]


def test_invited_user_sets_password_by_link(services: Services, organization: Organization) -> None:
    user, initial = services.users.invite(organization.id, InviteHumanUser.decode(_ANNA), principal=Principal.OPERATOR)
    assert initial.kind == "link"
    assert initial.secret not in repr(initial)
    assert state(services, user) is UserState.INVITED
    services.passwords.reset(initial.secret.rpartition("/")[2], services.passwords.hash("correct horse battery"))
    assert state(services, user) is UserState.ACTIVE


def test_new_user_signs_in_with_one_time_password(services: Services, organization: Organization) -> None:
    command = InviteHumanUser.decode({**_ANNA, "initial": "one_time_password"})
    user, initial = services.users.invite(organization.id, command, principal=Principal.OPERATOR)
    assert initial.kind == "one_time_password"
    assert state(services, user) is UserState.MUST_CHANGE_PASSWORD
    with pytest.raises(Invalid) as refusal:
        InviteHumanUser.decode({**_ANNA, "initial": "telegram"})
    assert set(refusal.value.fields) == {"initial"}


def test_states_of_many_users_are_read_at_once(services: Services, organization: Organization) -> None:
    users = [make_human_user(services, organization, name) for name in "abcd"]
    services.passwords.set_one_time_password(users[1].id)
    services.passwords.set_one_time_password(users[2].id)
    link = services.passwords.issue_reset_link(users[2].id)
    services.passwords.reset(link.rpartition("/")[2], services.passwords.hash("correct horse battery"))
    services.users.deactivate(users[3].id, principal=Principal.OPERATOR)
    found = services.users.user_states([services.users.get(user.id) for user in users])
    assert [found[user.id] for user in users] == ["invited", "must_change_password", "active", "deactivated"]
    assert services.users.user_states([]) == {}


def test_user_change_updates_name_and_profile(services: Services, anna: HumanUser) -> None:
    command = ChangeHumanUser.decode({"user_name": "annika", "nickname": "Anni"})
    after = services.users.change(anna.id, command, principal=Principal.OPERATOR, expected_version=1)
    assert (after.user_name, after.profile.nickname, after.profile.email) == ("annika", "Anni", "anna@acme.example")
    assert services.users.get(anna.id) == after
    assert services.audit.recorded_events[-1].event == "user.changed"


def test_user_names_are_unique(services: Services, organization: Organization, anna: HumanUser) -> None:
    make_human_user(services, organization, "bert")
    with pytest.raises(Invalid) as refusal:
        services.users.change(anna.id, ChangeHumanUser(user_name="Bert"), principal=Principal.OPERATOR)
    assert set(refusal.value.fields) == {"user_name"}


def test_address_change_ends_links_to_the_old_address(services: Services, anna: HumanUser) -> None:
    link = services.users.issue_password_link(anna.id, principal=Principal.OPERATOR)
    services.users.change(anna.id, ChangeHumanUser(email="anna@b.example"), principal=Principal.OPERATOR)
    with pytest.raises(InvalidOneTimeLink):
        services.passwords.find_by_reset_link(link.rpartition("/")[2])


def test_invitation_outlives_password_reset_link(services: Services, anna: HumanUser) -> None:
    """A new user may read the mail days later, but a link for an account in use is a risk."""
    assert services.passwords.reset_link_lifetime(anna.id) == timedelta(days=7)
    services.users.set_one_time_password(anna.id, principal=Principal.OPERATOR)
    assert services.passwords.reset_link_lifetime(anna.id) == timedelta(hours=1)


def test_link_verifies_the_address_of_its_user(services: Services, organization: Organization, anna: HumanUser) -> None:
    bert = make_human_user(services, organization, "bert")
    code = services.users.issue_email_link(anna.id, "anna@b.example").rpartition("/")[2]
    with pytest.raises(InvalidOneTimeLink):
        services.users.verify_email(code, bert.id)
    assert services.users.get(anna.id).profile.email == "anna@acme.example"


def test_deactivating_ends_sessions_and_tokens_for_good(services: Services, anna: HumanUser) -> None:
    session_id = sign_in(services, anna)
    token = make.access_token(anna, issued_at=services.now, expires_at=services.now + timedelta(hours=1))
    services.tokens.store_access_token(token)
    services.users.deactivate(anna.id, principal=Principal.OPERATOR)
    assert state(services, anna) is UserState.DEACTIVATED
    stored = services.storage.sessions.find(session_id)
    assert stored is not None
    assert stored.ended_at == services.now
    services.users.reactivate(anna.id, principal=Principal.OPERATOR)
    assert services.users.list_sessions(anna.id) == ()
    issued = services.storage.tokens.find_access_token(token.digest)
    assert issued is not None
    assert not issued.is_live(services.now)


def test_concurrent_sign_in_does_not_survive_deactivation(services: Services, anna: HumanUser) -> None:
    services.users.deactivate(anna.id, principal=Principal.OPERATOR)
    sign_in(services, anna)
    services.users.reactivate(anna.id, principal=Principal.OPERATOR)
    assert services.users.list_sessions(anna.id) == ()
    session_id = sign_in(services, anna)
    services.users.reactivate(anna.id, principal=Principal.OPERATOR)
    assert [session.id for session in services.users.list_sessions(anna.id)] == [session_id]


def test_password_stays_until_link_is_used(services: Services, anna: HumanUser) -> None:
    services.passwords.set_one_time_password(anna.id)
    before = services.storage.users.find_password(anna.id)
    session_id = sign_in(services, anna)
    link = services.users.issue_password_link(anna.id, principal=Principal.OPERATOR)
    assert services.storage.users.find_password(anna.id) == before
    assert [session.id for session in services.users.list_sessions(anna.id)] == [session_id]
    owner, _ = services.one_time_links.read(OneTimeLinkKind.PASSWORD_RESET, link.rpartition("/")[2])
    assert owner == anna.id


def test_deactivated_user_gets_no_link(services: Services, anna: HumanUser) -> None:
    services.users.deactivate(anna.id, principal=Principal.OPERATOR)
    for attempt in (services.users.issue_password_link, services.users.set_one_time_password):
        with pytest.raises(Conflict, match="Reactivate it first"):
            attempt(anna.id, principal=Principal.OPERATOR)


def test_sessions_end_individually_or_all_at_once(
    services: Services, organization: Organization, anna: HumanUser
) -> None:
    first, second, third = (sign_in(services, anna) for _ in range(3))
    bert = make_human_user(services, organization, "bert")
    services.users.end_session(anna.id, first, principal=Principal.OPERATOR)
    assert {session.id for session in services.users.list_sessions(anna.id)} == {second, third}
    for user_id, session_id in ((anna.id, first), (bert.id, second)):
        with pytest.raises(NotFound, match="session"):
            services.users.end_session(user_id, session_id, principal=Principal.OPERATOR)
    assert services.users.end_sessions(anna.id, principal=Principal.OPERATOR) == 2
    assert services.users.list_sessions(anna.id) == ()


def test_last_owner_cannot_be_removed(services: Services, anna: HumanUser) -> None:
    command = AddManager(user_id=anna.id, roles=frozenset({"IAM_OWNER"}))
    services.managers.add(Resource.INSTANCE, command, principal=Principal.OPERATOR, allow_without_sign_in_method=True)
    for attempt in (services.users.deactivate, services.users.remove):
        with pytest.raises(Conflict, match="last active IAM_OWNER"):
            attempt(anna.id, principal=Principal.OPERATOR)


def test_service_user_is_no_human_user(services: Services, organization: Organization) -> None:
    robot = make_service_user(services, organization)
    for attempt in (
        lambda: services.users.change(robot.id, ChangeHumanUser(), principal=Principal.OPERATOR),
        lambda: services.users.issue_password_link(robot.id, principal=Principal.OPERATOR),
        lambda: services.users.list_sessions(robot.id),
        lambda: services.users.remove(robot.id, principal=Principal.OPERATOR),
    ):
        with pytest.raises(NotFound):
            attempt()


def test_last_sign_in_is_recorded(identity: IdentityApplication, clock: FakeClock) -> None:
    with identity.transaction() as services:
        anna = make_human_user(services, make_organization(services))
        assert anna.last_sign_in_at is None
    clock.advance(days=1)
    with identity.transaction() as services:
        sign_in(services, anna)
    with identity.transaction() as services:
        user = services.users.get(anna.id)
        assert (user.last_sign_in_at, user.version) == (clock(), anna.version)
        services.users.change(
            anna.id, ChangeHumanUser(nickname="A"), principal=Principal.OPERATOR, expected_version=anna.version
        )
        assert services.users.get(anna.id).last_sign_in_at == clock()

"""No sequence of actions by a manager verifies another user's email address as if by the user's own link."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.errors import DomainError
from identity.domain.users import GLOBALLY_TRUSTED_VERIFIERS, EmailVerifier, HumanUser
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeHumanUser, ChangeProfile
from identity.services.container import Services
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

VICTIM, MANAGER_EMAIL = "victim@mailbox.example", "manager@evil.example"


class ManagerActor:
    """A manager of a user, who reads only the mail to ``MANAGER_EMAIL``."""

    def __init__(self, services: Services, person: HumanUser) -> None:
        self.services, self.person = services, person
        self.resets: list[str] = []
        self.addresses: list[str] = []

    @property
    def email(self) -> str:
        return self.services.users.get(self.person.id).profile.email

    def set_victim(self) -> None:
        self.services.users.change(self.person.id, ChangeHumanUser(email=VICTIM), principal=Principal.OPERATOR)

    def respell_victim(self) -> None:
        self.services.users.change(self.person.id, ChangeHumanUser(email=VICTIM.upper()), principal=Principal.OPERATOR)

    def set_own(self) -> None:
        self.services.users.change(self.person.id, ChangeHumanUser(email=MANAGER_EMAIL), principal=Principal.OPERATOR)

    def say_victim_signed_in(self) -> None:
        self.services.users.change_profile(self.person.id, ChangeProfile(email=VICTIM))

    def hand_out(self) -> None:
        self.resets.append(self.services.users.issue_password_link(self.person.id, principal=Principal.OPERATOR))

    def mail_link(self) -> None:
        to = self.email
        link = self.services.users.issue_password_link(self.person.id, principal=Principal.OPERATOR, mailed_to=to)
        if to == MANAGER_EMAIL:
            self.resets.append(link)

    def mail_link_while_the_address_changes(self) -> None:
        """The address changes between reading the user and creating the link."""
        link = self.services.users.issue_password_link(
            self.person.id, principal=Principal.OPERATOR, mailed_to=MANAGER_EMAIL
        )
        self.resets.append(link)

    def forgot(self) -> None:
        subject = self.services.storage.users.find_subject(self.person.id)
        assert subject is not None
        _, link = self.services.passwords.request_reset_link(subject.login_name)
        if self.email == MANAGER_EMAIL:
            self.resets.append(link)

    def ask_to_confirm_victim(self) -> None:
        self.services.users.issue_email_link(self.person.id, VICTIM)

    def ask_to_confirm_own(self) -> None:
        self.addresses.append(self.services.users.issue_email_link(self.person.id, MANAGER_EMAIL))

    def trust(self) -> None:
        """The result of a sign-in by the manager's own provider, which is trusted for the domain."""
        self.services.users.change_profile(
            self.person.id,
            ChangeProfile(email=VICTIM),
            verified_email=VICTIM,
            verified_by=EmailVerifier.PROVIDER,
        )

    def one_time_password(self) -> None:
        self.services.users.set_one_time_password(self.person.id, principal=Principal.OPERATOR)

    def use_resets(self) -> None:
        for link in self.resets:
            self._try(lambda link=link: self.services.passwords.reset(link.rpartition("/")[2], "$hash$"))

    def use_confirmations(self) -> None:
        for link in self.addresses:
            self._try(lambda link=link: self.services.users.verify_email(link.rpartition("/")[2], self.person.id))

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except DomainError:
            return


ACTIONS = [name for name in vars(ManagerActor) if not name.startswith("_") and name != "email"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(ACTIONS), min_size=2, max_size=10))
def test_manager_actions_never_verify_foreign_email(world: World, actions: list[str]) -> None:
    person = world.make_human_user()
    with world.transaction_services() as services:
        manager = ManagerActor(services, person)
        for action in actions:
            getattr(manager, action)()
            stored = services.users.get(person.id)
            assert (
                stored.profile.email.lower() != VICTIM or stored.email_verified_by not in GLOBALLY_TRUSTED_VERIFIERS
            ), actions
            assert stored.profile.email_verified is (stored.email_verified_by is not None)
        services.users.remove(person.id, principal=Principal.OPERATOR)


def test_manager_can_verify_own_email(world: World) -> None:
    """The actions above can verify an address."""
    person = world.make_human_user()
    with world.transaction_services() as services:
        manager = ManagerActor(services, person)
        for action in ("set_own", "mail_link", "use_resets"):
            getattr(manager, action)()
        assert services.users.get(person.id).email_verified_by is EmailVerifier.OWN_LINK

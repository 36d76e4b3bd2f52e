"""Which one-time links survive which change: a mail may be in a mailbox that the user no longer controls."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from identity.domain.users import HumanUser, PasswordHash
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.users import ChangeHumanUser, ChangeProfile, CreateHumanUser, RegisterUser
from identity.services.container import Services
from identity.services.one_time_links import InvalidOneTimeLink
from identity.testing.world import World

# The storage contract tests the storages.
pytestmark = pytest.mark.storages("memory")

ADDRESS = "ada@acme.example"
NAMES = {"given_name": "Ada", "family_name": "L"}


@dataclass(frozen=True)
class Ada:
    """A user with an email address and a password; without a password if ``invited``."""

    world: World
    person: HumanUser

    @classmethod
    def create(cls, world: World, *, invited: bool) -> "Ada":
        organization = world.make_organization()
        with world.transaction_services() as services:
            services.organizations.change(
                organization.id, ChangeOrganization(registration=True), principal=Principal.OPERATOR
            )
            command = CreateHumanUser(user_name="ada", email=ADDRESS, **NAMES)
            person = services.users.create(organization.id, command)
            if not invited:
                services.storage.users.set_password(
                    PasswordHash(user_id=person.id, hash="$hash$", changed_at=services.now)
                )
        return cls(world, person)

    def do(self, action: Callable[[Services, HumanUser], object]) -> object:
        with self.world.transaction_services() as services:
            return action(services, self.person)


def _link(issue: Callable[[Services, HumanUser], str]) -> Callable[[Services, HumanUser], str]:
    return lambda services, person: issue(services, person).rpartition("/")[2]


def _request_reset(services: Services, person: HumanUser) -> str:
    subject = services.storage.users.find_subject(person.id)
    assert subject is not None
    return services.passwords.request_reset_link(subject.login_name)[1]


def _registration(services: Services, person: HumanUser) -> str:
    organization = services.organizations.get(person.organization_id)
    command = RegisterUser(user_name="new", email=ADDRESS, **NAMES)
    return services.registration.begin(organization, command, "$hash$").link


LINKS: dict[str, Callable[[Services, HumanUser], str]] = {
    "asked": _link(_request_reset),
    "handed out": _link(
        lambda services, person: services.users.issue_password_link(person.id, principal=Principal.OPERATOR)
    ),
    "invitation": _link(
        lambda services, person: services.users.issue_password_link(person.id, principal=Principal.OPERATOR)
    ),
    "own address": _link(lambda services, person: services.users.issue_email_link(person.id, ADDRESS)),
    "new address": _link(lambda services, person: services.users.issue_email_link(person.id, "new@acme.example")),
    "registration": _link(_registration),
}
RESETS = {"asked", "handed out", "invitation"}
ADDRESSES = {"own address", "new address"}


def _opens(services: Services, kind: str, code: str) -> bool:
    look: dict[str, Callable[[str], object]] = dict.fromkeys(RESETS, services.passwords.find_by_reset_link)
    look |= dict.fromkeys(ADDRESSES, services.users.find_by_email_link)
    look["registration"] = services.registration.find_pending
    try:
        look[kind](code)
    except InvalidOneTimeLink:
        return False
    return True


def _move(services: Services, person: HumanUser) -> None:
    """Change the address and change it back: another person may have had the mailbox meanwhile."""
    for email in ("other@acme.example", ADDRESS):
        services.users.change(person.id, ChangeHumanUser(email=email), principal=Principal.OPERATOR)


def _leave(services: Services, person: HumanUser) -> None:
    for email in ("", ADDRESS):
        services.users.change_profile(person.id, ChangeProfile(email=email))


def _prove_another(services: Services, person: HumanUser) -> None:
    code = services.users.issue_email_link(person.id, "other@acme.example").rpartition("/")[2]
    services.users.verify_email(code, person.id)


def _move_unseen(services: Services, person: HumanUser) -> None:
    """Simulates a change concurrent with the creation of the link."""
    stored = services.users.get(person.id)
    profile = replace(stored.profile, email="other@acme.example")
    services.storage.users.update(replace(stored, profile=profile, version=stored.version + 1))


def _change_password(services: Services, person: HumanUser) -> None:
    subject = services.storage.users.find_subject(person.id)
    assert subject is not None
    services.passwords.change(subject, "$hash$")


def _reset(services: Services, person: HumanUser) -> None:
    services.passwords.reset(LINKS["asked"](services, person), "$hash$")


def _deactivate(services: Services, person: HumanUser) -> None:
    services.users.deactivate(person.id, principal=Principal.OPERATOR)
    services.users.reactivate(person.id, principal=Principal.OPERATOR)


def _make_again(services: Services, person: HumanUser) -> None:
    services.users.remove(person.id, principal=Principal.OPERATOR)
    command = CreateHumanUser(user_name=person.user_name, email=ADDRESS, **NAMES)
    services.users.create(person.organization_id, command, id=person.id)


def _rename(services: Services, person: HumanUser) -> None:
    services.users.change(person.id, ChangeHumanUser(user_name="countess"), principal=Principal.OPERATOR)


#: Change → links that still work afterwards.
CHANGES: dict[str, tuple[Callable[[Services, HumanUser], object], set[str]]] = {
    "nothing": (lambda services, person: None, RESETS | ADDRESSES),
    "address changed by a manager": (_move, set()),
    "address taken away by its owner": (_leave, set()),
    "another address proved": (_prove_another, set()),
    "address changed at the same moment": (_move_unseen, set()),
    "password changed": (_change_password, set()),
    "password reset": (_reset, set()),
    "one-time password": (
        lambda services, person: services.users.set_one_time_password(person.id, principal=Principal.OPERATOR),
        set(),
    ),
    "recovered": (lambda services, person: services.users.recover(person.id), set()),
    "deactivated for a while": (_deactivate, set()),
    "removed and made again": (_make_again, set()),
    # The mail is in the right mailbox; links for an address need a session anyway.
    "signed out everywhere": (
        lambda services, person: services.users.end_sessions(person.id, principal=Principal.OPERATOR),
        RESETS | ADDRESSES,
    ),
    "renamed": (_rename, RESETS | ADDRESSES),
    # Anonymous requests end no link; links that a manager or a session requests do.
    "reset asked for": (LINKS["asked"], RESETS | ADDRESSES),
    "reset handed out": (LINKS["handed out"], ADDRESSES),
    "another address asked for": (LINKS["new address"], RESETS),
    "registered with the address": (LINKS["registration"], RESETS | ADDRESSES),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_time_link_survival_matrix(world: World, change: str) -> None:
    for kind in LINKS:
        ada = Ada.create(world, invited=kind == "invitation")
        code = str(ada.do(LINKS[kind]))
        happens, survives = CHANGES[change]
        ada.do(happens)
        with world.read_only_services() as services:
            assert _opens(services, kind, code) == (kind in survives | {"registration"})

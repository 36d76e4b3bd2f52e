"""Security 20.3: no change by a manager ends, redirects or opens the sign-in of users with more permissions."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.application import IdentityApplication
from identity.domain.authentication import Proof
from identity.domain.errors import DomainError
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.policies import SecondFactorRule
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, Subject
from identity.plugins.manager_roles import ROLES
from identity.services.access_control import AccessControl, Principal
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.container import Services
from identity.services.instance_managers import InstanceManagerService
from identity.services.policies import PolicyService
from identity.services.upstream_providers import UpstreamProviderService
from tests.services.factories import make_human_user, make_organization, subject_of
from tests.services.test_privilege_escalation import DONE, undone

_AT = {level: [role.name for role in ROLES if role.level is level] for level in ManagerLevel}
_RULES: dict[str, tuple[Any, ...]] = {
    "second_factor": tuple(SecondFactorRule),
    "factors": (("password",), ("upstream",), ("passkeys",), ("totp",), ("password", "totp"), None),
    "remember_browser": (0, 30, None),
    "password_min_length": (8, 64, None),
    "session_idle_age": (300, 86400, None),
    "session_max_age": (300, 86400, None),
    "single_session": (True, None),
    "free_attempts": (1, 5, None),
    "most_attempts": (5, 100, None),
    "consent": ("always", None),
    "account_deletion": (True, False, None),
}
_FLAGS = (
    *("create_accounts", "trust_email", "by_domain", "trust_methods", "everywhere", "instance_managed"),
    "sign_out_there",
)
#: Rules with which an organization may add requirements for its users with an instance role.
_OF_ORGANIZATION = {"second_factor", "consent"}


class InstanceManagerFixture:
    """Two organizations with providers and users, some with instance or organization roles. The first user, a
    manager with less, makes random changes."""

    def __init__(self, services: Services, random: Random) -> None:
        self.services, self.random = services, random
        self.organizations = [make_organization(services, name) for name in ("Acme", "Other")]
        self.providers = [
            self._provider(organization, managed) for organization in self.organizations for managed in (False, True)
        ]
        self.people = [self._person(self.organizations[number % 2], number) for number in range(6)]
        eve, *users = self.people
        for person in users[:3]:
            self._give(person, ManagerLevel.INSTANCE)
        for person in users:
            if random.random() < 0.5:
                self._give(person, ManagerLevel.ORGANIZATION)
        self._give(eve, random.choice([ManagerLevel.INSTANCE, ManagerLevel.ORGANIZATION, ManagerLevel.ORGANIZATION]))
        self.principal: Principal = services.access_control.load_principal(subject_of(services, eve))
        self.holders = [user for user in users[:3] if self._has_more(user)]

    def _provider(self, organization: Organization, managed: bool) -> UpstreamProvider:
        command = CreateUpstreamProvider(
            name="Company", client_id="us", issuer="https://login.example", client_secret="s", instance_managed=managed
        )
        return self.services.upstream_providers.create(organization.id, command, principal=Principal.OPERATOR)

    def _person(self, organization: Organization, number: int) -> HumanUser:
        user = make_human_user(self.services, organization, f"person-{number}", email=f"p{number}@people.example")
        subject = subject_of(self.services, user)
        self.services.passwords.change(subject, "a hash")
        proof = Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), self.services.now)
        self.services.sessions.start(subject, (), proofs=(proof,), user_agent="")
        return user

    def _give(self, user: HumanUser, level: ManagerLevel) -> Manager:
        resource = (
            Resource.INSTANCE if level is ManagerLevel.INSTANCE else Resource.of_organization(user.organization_id)
        )
        command = AddManager(user_id=user.id, roles=frozenset({self.random.choice(_AT[level])}))
        manager = self.services.managers.add(resource, command, principal=Principal.OPERATOR)
        proof = Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), self.services.now)
        self.services.sessions.start(subject_of(self.services, user), (), proofs=(proof,), user_agent="")
        return manager

    def _has_more(self, user: HumanUser) -> bool:
        principal = self.services.access_control.load_principal(subject_of(self.services, user))
        list_permissions = self.services.access_control.list_permissions
        return not list_permissions(principal, Resource.INSTANCE) <= list_permissions(self.principal, Resource.INSTANCE)

    def state_of(self, user: HumanUser) -> dict[str, object]:
        """Everything that the user's sign-in depends on."""
        services = self.services
        subject = services.storage.users.find_subject(user.id)
        if subject is None:
            return {}
        password = services.storage.users.find_password(user.id)
        policy = services.policies.subject_policy(subject)
        rules = {name: getattr(policy, name) for name in _RULES if name not in _OF_ORGANIZATION}
        proof = Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), services.now)
        return {
            "active": subject.is_active,
            "login name": subject.login_name,
            "address": user.profile.email == _profile(subject).email,
            "password": None if password is None else (password.hash, password.must_change),
            "allowed": services.policies.allows_factor(subject, Proof.PASSWORD_FACTOR)
            and bool(services.policies.filter_valid_proofs(subject, (proof,))),
            "met": services.policies.can_meet_second_factor(subject),
            "sessions": sum(session.ended_at is None for session in services.sessions.list_by_user(user.id)),
            "factors": services.factors.list_enrolments(user.id),
            "roles": {
                manager.roles
                for manager in services.storage.managers.list_for_user(user.id)
                if manager.resource == Resource.INSTANCE.key
            },
            "providers": frozenset(
                (provider.id, provider.effective_issuer, provider.is_usable, provider.secret)
                for organization in self.organizations
                for provider in services.storage.upstream_providers.page(organization.id)
                if services.upstream_providers.serves_subject(provider, subject)
            ),
            **rules,
        }

    def step(self) -> str:
        """Try one random change with the checks of its route; returns what it was."""
        name = self.random.choice(sorted(CHANGES))
        try:
            CHANGES[name](self, self.random.choice(self.people), self.random.choice(self.organizations))
        except DomainError:
            return f"{name} (refused)"
        return name

    def require(self, permission: str, organization_id: str) -> None:
        self.services.access_control.require(self.principal, permission, Resource.of_organization(organization_id))


def _profile(subject: Subject) -> Any:
    user = subject.user
    assert isinstance(user, HumanUser)
    return user.profile


Change = Callable[[InstanceManagerFixture, HumanUser, Organization], object]


def change_policy(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.require("organization_policy.write", organization.id)
    rules = {name: estate.random.choice(values) for name, values in _RULES.items() if estate.random.random() < 0.3}
    estate.services.policies.change(organization.id, ChangePolicy.build(**rules))


def _flags(estate: InstanceManagerFixture) -> dict[str, bool]:
    return {name: estate.random.random() < 0.5 for name in _FLAGS if estate.random.random() < 0.3}


def add_provider(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.require("upstream_provider.write", organization.id)
    command = CreateUpstreamProvider(
        name="Mine", client_id="me", issuer="https://mine.example", client_secret="s", **_flags(estate)
    )
    estate.services.upstream_providers.create(organization.id, command, principal=estate.principal)


def change_provider(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    provider = estate.random.choice(estate.providers)
    estate.require("upstream_provider.write", provider.organization_id)
    command = ChangeUpstreamProvider.build(**_flags(estate), issuer="https://mine.example", client_secret="mine")
    estate.services.upstream_providers.change(provider.id, command, principal=estate.principal)


def end_provider(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    provider = estate.random.choice(estate.providers)
    estate.require("upstream_provider.delete", provider.organization_id)
    act = estate.random.choice(["deactivate", "remove"])
    getattr(estate.services.upstream_providers, act)(provider.id, principal=estate.principal)


def rename_domain(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.require("organization.write", organization.id)
    name = estate.services.domains.derive_free_domain(f"New {estate.random.random()}", organization.id)
    estate.services.organizations.change(
        organization.id, ChangeOrganization(primary_domain=name), principal=estate.principal
    )


def ask_domain(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.require("organization_domain.write", organization.id)
    estate.services.domains.add(organization.id, AddDomain(domain=f"d{estate.random.random()}.example"))


def end_organization(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.require("organization.delete", organization.id)
    act = estate.random.choice(["deactivate", "remove"])
    getattr(estate.services.organizations, act)(organization.id, principal=estate.principal)


def give_role(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.require("organization_manager.write", organization.id)
    command = AddManager(user_id=person.id, roles=frozenset({estate.random.choice(_AT[ManagerLevel.ORGANIZATION])}))
    estate.services.managers.add(Resource.of_organization(organization.id), command, principal=estate.principal)


def change_role(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
    estate.services.access_control.require(estate.principal, "instance_manager.write", Resource.INSTANCE)
    for manager in estate.services.storage.managers.list_for_user(person.id):
        if manager.resource == Resource.INSTANCE.key:
            roles = frozenset({estate.random.choice(_AT[ManagerLevel.INSTANCE])})
            estate.services.managers.change(manager.id, ChangeManager(roles=roles), principal=estate.principal)


def to_a_person(name: str) -> Change:
    _, action, _, do = DONE[name]

    def change(estate: InstanceManagerFixture, person: HumanUser, organization: Organization) -> None:
        estate.require(f"user.{action}", person.organization_id)
        do(estate.services.users, person, estate.principal)

    return change


CHANGES: dict[str, Change] = {
    item.__name__: item
    for item in (
        change_policy,
        add_provider,
        change_provider,
        end_provider,
        rename_domain,
        ask_domain,
        end_organization,
        give_role,
        change_role,
    )
} | {
    name: to_a_person(name)
    for name, (kind, *_) in DONE.items()
    if name not in ("end_session", "end_connection") and kind in (HumanUser, DONE["deactivate"][0])
}


def run(identity: IdentityApplication, seed: int, steps: int) -> None:
    identity.process_state.hasher.hash = lambda password: "hash"  # type: ignore[method-assign]
    with undone(identity) as services:
        estate = InstanceManagerFixture(services, Random(seed))  # noqa: S311 - what is drawn can be drawn again
        before = {user.id: estate.state_of(user) for user in estate.holders}
        assert all(item["allowed"] for item in before.values())
        for _ in range(steps):
            done = estate.step()
            after = {user.id: estate.state_of(user) for user in estate.holders}
            different = [
                name for item in before for name in before[item] if before[item][name] != after[item].get(name, "gone")
            ]
            assert not different, f"{done} by {estate.principal.manager_entries}: {different}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_managers_cannot_affect_sign_in_of_instance_role_holders(
    identity: IdentityApplication, seed: int, steps: int
) -> None:
    run(identity, seed, steps)


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "rules of the organization": lambda patch: patch.setattr(
        PolicyService, "subject_policy", lambda self, subject: self.organization_policy(subject.organization.id)
    ),
    "providers of the organization": lambda patch: patch.setattr(
        InstanceManagerService, "is_instance_manager", lambda self, user_id: False
    ),
    "the person": lambda patch: patch.setattr(
        AccessControl, "require_not_more_privileged", lambda self, principal, user: None
    ),
    "the organization": lambda patch: patch.setattr(
        AccessControl, "require_no_more_privileged_user", lambda self, principal, organization_id, **options: None
    ),
    "managed providers": lambda patch: patch.setattr(
        UpstreamProviderService, "_authorize", lambda self, provider, principal: None
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("broken", sorted(BROKEN))
def test_missing_rule_is_detected(identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    BROKEN[broken](monkeypatch)

    def try_all() -> None:
        for seed in range(60):
            run(identity, seed, 40)

    with pytest.raises(AssertionError, match=r" by \(Manager"):
        try_all()

"""Security 20.3: no change by a manager ends, redirects or opens the sign-in of people with more rights."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.authentication import BY_PASSWORD, PASSWORD, Proof
from identity.domain.errors import DomainError
from identity.domain.managers import Manager
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, Level, organization_resource
from identity.domain.policies import SecondFactor
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, Subject
from identity.plugins.manager_roles import ROLES
from identity.process import Identity
from identity.services.access import THE_OPERATOR, Access, Principal
from identity.services.bundle import Services
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import AddDomain, ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.holders import Holders
from identity.services.policies import Policies
from identity.services.upstream_providers import UpstreamProviders
from tests.services.people import a_person, an_organization, subject_of
from tests.services.test_escalation import DONE, undone

_AT = {level: [one.name for one in ROLES if one.level is level] for level in Level}
_RULES: dict[str, tuple[Any, ...]] = {
    "second_factor": tuple(SecondFactor),
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
#: What an organization may have its people who hold a role at the instance do besides.
_OF_ORGANIZATION = {"second_factor", "consent"}


class Estate:
    """Two organizations with providers, and people, of whom some hold roles at the instance or elsewhere. One of the
    others manages something, and tries."""

    def __init__(self, services: Services, random: Random) -> None:
        self.services, self.random = services, random
        self.organizations = [an_organization(services, name) for name in ("Acme", "Other")]
        self.providers = [self._provider(one, managed) for one in self.organizations for managed in (False, True)]
        self.people = [self._person(self.organizations[number % 2], number) for number in range(6)]
        eve, *others = self.people
        for person in others[:3]:
            self._give(person, Level.INSTANCE)
        for person in others:
            if random.random() < 0.5:
                self._give(person, Level.ORGANIZATION)
        self._give(eve, random.choice([Level.INSTANCE, Level.ORGANIZATION, Level.ORGANIZATION]))
        self.by: Principal = services.access.principal(subject_of(services, eve))
        self.holders = [one for one in others[:3] if self._has_more(one)]

    def _provider(self, organization: Organization, managed: bool) -> UpstreamProvider:
        command = CreateUpstreamProvider(
            name="Company", client_id="us", issuer="https://login.example", client_secret="s", instance_managed=managed
        )
        return self.services.upstream_providers.create(organization.id, command, by=THE_OPERATOR)

    def _person(self, organization: Organization, number: int) -> HumanUser:
        user = a_person(self.services, organization, f"person-{number}", email=f"p{number}@people.example")
        subject = subject_of(self.services, user)
        self.services.passwords.change(subject, "a hash")
        proof = Proof(PASSWORD, (BY_PASSWORD,), self.services.now)
        self.services.sessions.sign_in(subject, (), proofs=(proof,), user_agent="")
        return user

    def _give(self, user: HumanUser, level: Level) -> Manager:
        resource = INSTANCE if level is Level.INSTANCE else organization_resource(user.organization_id)
        command = AddManager(user_id=user.id, roles=frozenset({self.random.choice(_AT[level])}))
        made = self.services.managers.add(resource, command, by=THE_OPERATOR)
        proof = Proof(PASSWORD, (BY_PASSWORD,), self.services.now)
        self.services.sessions.sign_in(subject_of(self.services, user), (), proofs=(proof,), user_agent="")
        return made

    def _has_more(self, user: HumanUser) -> bool:
        other = self.services.access.principal(subject_of(self.services, user))
        here = self.services.access.permissions
        return not here(other, INSTANCE) <= here(self.by, INSTANCE)

    def seen(self, user: HumanUser) -> dict[str, object]:
        """All that the person's sign-in depends on."""
        services = self.services
        found = services.storage.users.find_subject(user.id)
        if found is None:
            return {}
        password = services.storage.users.find_password(user.id)
        policy = services.policies.of_subject(found)
        rules = {name: getattr(policy, name) for name in _RULES if name not in _OF_ORGANIZATION}
        proof = Proof(PASSWORD, (BY_PASSWORD,), services.now)
        return {
            "active": found.active,
            "login name": found.login_name,
            "address": user.profile.email == _profile(found).email,
            "password": None if password is None else (password.hash, password.must_change),
            "allowed": services.policies.allow(found, PASSWORD) and bool(services.policies.counting(found, (proof,))),
            "met": services.policies.second_factor_can_be_met(found),
            "sessions": sum(one.ended_at is None for one in services.sessions.of_user(user.id)),
            "factors": services.factors.of(user.id),
            "roles": {one.roles for one in services.storage.managers.of_user(user.id) if one.resource == INSTANCE.key},
            "providers": frozenset(
                (one.id, one.known_as, one.usable, one.secret)
                for organization in self.organizations
                for one in services.storage.upstream_providers.page(organization.id)
                if services.upstream_providers.serves(one, found)
            ),
            **rules,
        }

    def step(self) -> str:
        """One change by the one who tries, made if a route would let it through; returns what it was."""
        name = self.random.choice(sorted(CHANGES))
        try:
            CHANGES[name](self, self.random.choice(self.people), self.random.choice(self.organizations))
        except DomainError:
            return f"{name} (refused)"
        return name

    def require(self, permission: str, organization_id: str) -> None:
        self.services.access.require(self.by, permission, organization_resource(organization_id))


def _profile(subject: Subject) -> Any:
    user = subject.user
    assert isinstance(user, HumanUser)
    return user.profile


Change = Callable[[Estate, HumanUser, Organization], object]


def change_policy(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.require("organization_policy.write", organization.id)
    rules = {name: estate.random.choice(values) for name, values in _RULES.items() if estate.random.random() < 0.3}
    estate.services.policies.change(organization.id, ChangePolicy.of(**rules))


def _flags(estate: Estate) -> dict[str, bool]:
    return {name: estate.random.random() < 0.5 for name in _FLAGS if estate.random.random() < 0.3}


def add_provider(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.require("upstream_provider.write", organization.id)
    command = CreateUpstreamProvider(
        name="Mine", client_id="me", issuer="https://mine.example", client_secret="s", **_flags(estate)
    )
    estate.services.upstream_providers.create(organization.id, command, by=estate.by)


def change_provider(estate: Estate, person: HumanUser, organization: Organization) -> None:
    provider = estate.random.choice(estate.providers)
    estate.require("upstream_provider.write", provider.organization_id)
    command = ChangeUpstreamProvider.of(**_flags(estate), issuer="https://mine.example", client_secret="mine")
    estate.services.upstream_providers.change(provider.id, command, by=estate.by)


def end_provider(estate: Estate, person: HumanUser, organization: Organization) -> None:
    provider = estate.random.choice(estate.providers)
    estate.require("upstream_provider.delete", provider.organization_id)
    act = estate.random.choice(["deactivate", "remove"])
    getattr(estate.services.upstream_providers, act)(provider.id, by=estate.by)


def rename_domain(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.require("organization.write", organization.id)
    name = estate.services.domains.made_of(f"New {estate.random.random()}", organization.id)
    estate.services.organizations.change(organization.id, ChangeOrganization(primary_domain=name), by=estate.by)


def ask_domain(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.require("organization_domain.write", organization.id)
    estate.services.domains.ask(organization.id, AddDomain(domain=f"d{estate.random.random()}.example"))


def end_organization(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.require("organization.delete", organization.id)
    act = estate.random.choice(["deactivate", "remove"])
    getattr(estate.services.organizations, act)(organization.id, by=estate.by)


def give_role(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.require("organization_manager.write", organization.id)
    command = AddManager(user_id=person.id, roles=frozenset({estate.random.choice(_AT[Level.ORGANIZATION])}))
    estate.services.managers.add(organization_resource(organization.id), command, by=estate.by)


def change_role(estate: Estate, person: HumanUser, organization: Organization) -> None:
    estate.services.access.require(estate.by, "instance_manager.write", INSTANCE)
    for one in estate.services.storage.managers.of_user(person.id):
        if one.resource == INSTANCE.key:
            roles = frozenset({estate.random.choice(_AT[Level.INSTANCE])})
            estate.services.managers.change(one.id, ChangeManager(roles=roles), by=estate.by)


def to_a_person(name: str) -> Change:
    _, action, _, do = DONE[name]

    def change(estate: Estate, person: HumanUser, organization: Organization) -> None:
        estate.require(f"user.{action}", person.organization_id)
        do(estate.services.users, person, estate.by)

    return change


CHANGES: dict[str, Change] = {
    one.__name__: one
    for one in (
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


def run(identity: Identity, seed: int, steps: int) -> None:
    identity.process.hasher.hash = lambda password: "hash"  # type: ignore[method-assign]
    with undone(identity) as services:
        estate = Estate(services, Random(seed))  # noqa: S311 - what is drawn can be drawn again
        before = {one.id: estate.seen(one) for one in estate.holders}
        assert all(one["allowed"] for one in before.values())
        for _ in range(steps):
            done = estate.step()
            after = {one.id: estate.seen(one) for one in estate.holders}
            different = [
                name for one in before for name in before[one] if before[one][name] != after[one].get(name, "gone")
            ]
            assert not different, f"{done} by {estate.by.held}: {different}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_no_manager_decides_over_the_sign_in_of_who_holds_a_role_at_the_instance(
    identity: Identity, seed: int, steps: int
) -> None:
    run(identity, seed, steps)


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "rules of the organization": lambda patch: patch.setattr(
        Policies, "of_subject", lambda self, subject: self.of(subject.organization.id)
    ),
    "providers of the organization": lambda patch: patch.setattr(Holders, "is_one", lambda self, user_id: False),
    "the person": lambda patch: patch.setattr(Access, "require_not_above", lambda self, principal, user: None),
    "the organization": lambda patch: patch.setattr(
        Access, "require_none_above", lambda self, principal, organization_id, **said: None
    ),
    "managed providers": lambda patch: patch.setattr(UpstreamProviders, "_check", lambda self, thing, by: None),
}


@pytest.mark.parametrize("broken", sorted(BROKEN))
def test_property_of_holders_fails_where_a_rule_is_missing(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    BROKEN[broken](monkeypatch)

    def try_all() -> None:
        for seed in range(60):
            run(identity, seed, 40)

    with pytest.raises(AssertionError, match=r" by \(Manager"):
        try_all()

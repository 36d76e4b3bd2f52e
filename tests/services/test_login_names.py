"""Which user a login name or an email address finds: a table of holders and of places where it is typed."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import EmailVerifier, HumanUser
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.users import ChangeHumanUser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

ADDRESS = "ada@post.example"
OWN_LINK, MANAGER, EARLIER = EmailVerifier.OWN_LINK, EmailVerifier.MANAGER, EmailVerifier.EARLIER


@dataclass
class LoginNameScenario:
    """Three organizations, and actions on users who have the address."""

    world: World
    acme: Organization
    bolt: Organization
    post: Organization

    def has(
        self,
        organization: Organization,
        email_verifier: EmailVerifier | None,
        *,
        holder: bool = False,
        active: bool = True,
        email: str = ADDRESS,
    ) -> HumanUser:
        """A new user with the address."""
        person = self.world.make_human_user(organization)
        with self.world.transaction_services() as services:
            stored = services.storage.users.find(person.id)
            assert isinstance(stored, HumanUser)
            profile = replace(stored.profile, email=email, email_verified=email_verifier is not None)
            services.storage.users.update(
                replace(
                    stored, profile=profile, email_verified_by=email_verifier, active=active, version=stored.version + 1
                )
            )
        if holder:
            self.world.assign_manager_role(person, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
        return person

    def proves(self, organization: Organization, proof: DomainProof = DomainProof.DNS) -> None:
        """Verify the address's domain for the organization."""
        with self.world.transaction_services() as services:
            now = services.now
            services.storage.organizations.add_domain(
                OrganizationDomain(
                    organization_id=organization.id,
                    name="post.example",
                    challenge="x",
                    created_at=now,
                    proof=proof,
                    verified_at=now,
                )
            )

    def means(self, typed: str = ADDRESS, at: Organization | None = None) -> str | None:
        """The id of the user whom the text finds; None without one."""
        with self.world.read_only_services() as services:
            subject = services.login_names.resolve(LoginName.parse(typed, at)).subject
        return None if subject is None else subject.user.id


@pytest.fixture
def scene(make_world: WorldFactory) -> LoginNameScenario:
    world = make_world()
    return LoginNameScenario(world, *(world.make_organization() for _ in range(3)))


def test_verified_address_finds_its_user(scene: LoginNameScenario) -> None:
    ada = scene.has(scene.acme, MANAGER)
    assert scene.means(at=scene.acme) == ada.id
    assert scene.means() is None, "what a manager says counts in the organization alone"
    assert scene.means(at=scene.bolt) is None


@pytest.mark.sampled(5)
@pytest.mark.parametrize("verifier", EmailVerifier)
def test_verifier_determines_where_an_address_counts(scene: LoginNameScenario, verifier: EmailVerifier) -> None:
    ada = scene.has(scene.acme, verifier)
    assert scene.means(at=scene.acme) == ada.id
    assert scene.means() == (ada.id if verifier.is_globally_trusted else None)


def test_unverified_address_finds_no_user(scene: LoginNameScenario) -> None:
    scene.has(scene.acme, None)
    assert (scene.means(at=scene.acme), scene.means()) == (None, None)


def test_address_shared_in_organization_is_ambiguous(scene: LoginNameScenario) -> None:
    scene.has(scene.acme, OWN_LINK)
    scene.has(scene.acme, MANAGER)
    other_user = scene.has(scene.bolt, MANAGER)
    assert scene.means(at=scene.acme) is None
    assert scene.means(at=scene.bolt) == other_user.id


def test_address_verified_by_several_is_ambiguous(scene: LoginNameScenario) -> None:
    for organization in (scene.acme, scene.bolt):
        scene.has(organization, OWN_LINK)
    assert scene.means() is None
    assert scene.means(at=scene.post) is None


def test_lookup_falls_back_to_all_organizations(scene: LoginNameScenario) -> None:
    ada = scene.has(scene.acme, OWN_LINK)
    assert scene.means(at=scene.bolt) == ada.id


def test_instance_role_holders_take_precedence_outside_the_organization(scene: LoginNameScenario) -> None:
    holder = scene.has(scene.acme, OWN_LINK, holder=True)
    user = scene.has(scene.post, MANAGER)
    scene.has(scene.bolt, OWN_LINK)
    scene.proves(scene.post)
    assert scene.means() == holder.id
    assert scene.means(at=scene.bolt) != holder.id
    assert scene.means(at=scene.post) == user.id
    assert scene.means(at=scene.world.make_organization()) == holder.id


def test_unverified_instance_role_holder_takes_no_precedence(scene: LoginNameScenario) -> None:
    scene.has(scene.acme, MANAGER, holder=True)
    user = scene.has(scene.bolt, OWN_LINK)
    assert scene.means() == user.id


@pytest.mark.parametrize("proof", DomainProof)
def test_verified_domain_takes_precedence(scene: LoginNameScenario, proof: DomainProof) -> None:
    other_user, user = scene.has(scene.acme, OWN_LINK), scene.has(scene.post, MANAGER)
    scene.proves(scene.post, proof)
    assert scene.means() == (other_user.id if proof is DomainProof.UNPROVEN else user.id)
    scene.has(scene.post, MANAGER)
    assert scene.means() == other_user.id, "two there have it"


@pytest.mark.parametrize("deactivated", ["person", "organization"])
def test_address_of_inactive_user_is_not_resolved(scene: LoginNameScenario, deactivated: str) -> None:
    ada = scene.has(scene.acme, OWN_LINK, active=deactivated != "person")
    if deactivated == "organization":
        scene.world.operator_services.organizations.deactivate(scene.acme.id)
    assert (scene.means(at=scene.acme), scene.means()) == (None, None)
    user = scene.has(scene.bolt, OWN_LINK)
    assert scene.means() == user.id != ada.id


def test_existing_login_name_precedes_address(scene: LoginNameScenario) -> None:
    named = scene.world.make_human_user(scene.acme)
    login_name = f"{named.user_name}@{scene.acme.primary_domain}"
    scene.has(scene.acme, OWN_LINK, email=login_name, holder=True)
    assert scene.means(login_name) == named.id
    scene.world.operator_services.users.deactivate(named.id)
    assert scene.means(login_name) == named.id
    assert scene.means(login_name, scene.bolt) == named.id


def test_service_user_name_precedes_address(scene: LoginNameScenario) -> None:
    robot = scene.world.make_service_user_program(scene.acme).user
    login_name = f"{robot.user_name}@{scene.acme.primary_domain}"
    scene.has(scene.acme, OWN_LINK, email=login_name)
    assert scene.means(login_name) == robot.id


@pytest.mark.parametrize(
    ("typed", "is_meant"),
    [
        ("ADA@Post.Example", True),
        (" ada@post.example ", True),
        ("ａda@post.example", False),
        ("ada@post.example.", False),
        ("ada@x@post.example", False),
        ("ada", False),
    ],
)
def test_addresses_ignore_ascii_case(scene: LoginNameScenario, typed: str, is_meant: bool) -> None:
    ada = scene.has(scene.acme, OWN_LINK)
    assert scene.means(typed) == (ada.id if is_meant else None)


def off(scene: LoginNameScenario, organization: Organization | None) -> None:
    with scene.world.transaction_services() as services:
        owner = "instance" if organization is None else organization.id
        services.policies.change(owner, ChangePolicy.build(sign_in_by_email=False))


def by_nobody(_: LoginNameScenario) -> None:
    """With the default policy."""


@pytest.mark.parametrize(
    ("prepare", "person", "holder"),
    [
        (by_nobody, True, True),
        (lambda scene: off(scene, scene.acme), False, True),
        (lambda scene: off(scene, scene.bolt), True, True),
        (lambda scene: off(scene, None), False, False),
    ],
)
def test_policy_of_the_user_applies(
    scene: LoginNameScenario, prepare: Callable[[LoginNameScenario], None], person: bool, holder: bool
) -> None:
    """Only the instance policy applies to users with an instance role; an organization cannot lock them out."""
    ada = scene.has(scene.acme, OWN_LINK)
    boss = scene.has(scene.acme, OWN_LINK, email="boss@post.example", holder=True)
    prepare(scene)
    for at in (None, scene.acme, scene.bolt):
        assert (scene.means(at=at) == ada.id) is person
        assert (scene.means("boss@post.example", at) == boss.id) is holder


def test_address_of_instance_role_holder_is_reserved(scene: LoginNameScenario) -> None:
    boss, _ = scene.has(scene.acme, OWN_LINK, holder=True), scene.has(scene.bolt, MANAGER)
    with scene.world.read_only_services() as services:
        resolve = services.login_names.resolve
        assert resolve(LoginName.parse(ADDRESS, scene.bolt)).is_barred
        assert not resolve(LoginName.parse(ADDRESS)).is_barred
        subject = resolve(LoginName.parse(ADDRESS)).subject
    assert subject is not None
    assert subject.user.id == boss.id


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("prepare", "losing"),
    [
        (lambda scene: scene.has(scene.acme, OWN_LINK), 0),
        (lambda scene: (scene.has(scene.acme, OWN_LINK), scene.has(scene.post, MANAGER)), 1),
        (lambda scene: (scene.has(scene.acme, OWN_LINK), scene.has(scene.post, OWN_LINK)), 1),
        (lambda scene: (scene.has(scene.acme, MANAGER), scene.has(scene.post, MANAGER)), 0),
        (lambda scene: (scene.has(scene.acme, OWN_LINK, holder=True), scene.has(scene.post, MANAGER)), 0),
        (lambda scene: (scene.has(scene.acme, OWN_LINK), *(scene.has(scene.post, MANAGER) for _ in range(2))), 0),
        (
            lambda scene: (
                *(scene.has(item, OWN_LINK) for item in (scene.acme, scene.bolt)),
                scene.has(scene.post, OWN_LINK),
            ),
            0,
        ),
    ],
)
def test_users_losing_sign_in_by_verified_domain_are_counted(
    scene: LoginNameScenario, prepare: Callable[[LoginNameScenario], object], losing: int
) -> None:
    """The number of users whom their address no longer finds afterwards."""
    prepare(scene)
    with scene.world.read_only_services() as services:
        assert services.login_names.count_losing_email_sign_in(scene.post.id, "post.example") == losing
    before = scene.means()
    scene.proves(scene.post)
    assert (scene.means() != before) or not losing
    with scene.world.read_only_services() as services:
        assert services.login_names.count_losing_email_sign_in(scene.post.id, "post.example") == losing


def test_users_losing_sign_in_by_primary_domain_are_counted(scene: LoginNameScenario) -> None:
    scene.has(scene.acme, OWN_LINK)
    person = scene.world.make_human_user(scene.post)
    scene.world.operator_services.users.change(person.id, ChangeHumanUser(user_name="ada"))
    with scene.world.read_only_services() as services:
        assert services.login_names.count_losing_email_sign_in(scene.post.id, "post.example") == 0
        assert services.login_names.count_losing_email_sign_in(scene.post.id, "post.example", primary=True) == 1

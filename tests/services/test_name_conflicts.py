"""No name or address may equal the text that another user of the organization types to sign in."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.users import EmailVerifier, HumanUser, Profile
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.services.commands.users import ChangeHumanUser, ChangeProfile, CreateHumanUser, RegisterUser
from identity.services.container import Services
from identity.services.one_time_links import InvalidOneTimeLink
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")


@dataclass(frozen=True)
class NameConflictScenario:
    """The user ``reader`` has verified ``address``, which would also be the login name of a user called ``name``."""

    world: World
    organization: Organization
    reader: HumanUser
    other: HumanUser
    name: str
    address: str


@pytest.fixture
def scene(world: World) -> NameConflictScenario:
    organization = world.make_organization()
    reader, user = world.make_human_user(organization), world.make_human_user(organization)
    name = f"bob-{reader.id[-12:]}"
    address = f"{name}@{organization.primary_domain}"
    with world.transaction_services() as services:
        profile = replace(reader.profile, email=address.upper(), email_verified=True)
        services.storage.users.update(
            replace(reader, profile=profile, email_verified_by=EmailVerifier.PROVIDER, version=2)
        )
    return NameConflictScenario(world, organization, reader, user, name, address)


def _create(services: Services, scene: NameConflictScenario, name: str) -> object:
    command = CreateHumanUser(user_name=name, given_name="Bob", family_name="B")
    return services.users.create(scene.organization.id, command)


def _rename(services: Services, scene: NameConflictScenario, name: str) -> object:
    return services.users.change(scene.other.id, ChangeHumanUser(user_name=name), principal=Principal.OPERATOR)


def _create_service_user(services: Services, scene: NameConflictScenario, name: str) -> object:
    command = CreateServiceUser(user_name=name, display_name="Robot")
    return services.service_users.create(scene.organization.id, command)


def _rename_service_user(services: Services, scene: NameConflictScenario, name: str) -> object:
    robot = _create_service_user(services, scene, f"robot-{name}")
    return services.service_users.change(robot.id, ChangeServiceUser(user_name=name), principal=Principal.OPERATOR)  # type: ignore[attr-defined]


def _register(services: Services, scene: NameConflictScenario, name: str) -> object:
    command = RegisterUser(user_name=name, given_name="Bob", family_name="B", email="bob@elsewhere.example")
    return services.registration.register(scene.organization, command, "$hash$")


NAMING: dict[str, Callable[[Services, NameConflictScenario, str], object]] = {
    "created": _create,
    "renamed": _rename,
    "service user created": _create_service_user,
    "service user renamed": _rename_service_user,
    "registered": _register,
}


@pytest.mark.parametrize("change", NAMING)
def test_user_name_equal_to_foreign_verified_address_is_refused(scene: NameConflictScenario, change: str) -> None:
    for spelling in (scene.name, scene.name.upper()):
        with pytest.raises(Invalid) as refused, scene.world.transaction_services() as services:
            NAMING[change](services, scene, spelling)
        assert refused.value.fields.keys() == {"user_name"}
    with scene.world.transaction_services() as services:
        stored = services.users.get(scene.reader.id)
        services.users.change(stored.id, ChangeHumanUser(email="other@elsewhere.example"), principal=Principal.OPERATOR)
        NAMING[change](services, scene, scene.name)


def test_own_address_may_equal_own_login_name(scene: NameConflictScenario) -> None:
    with scene.world.transaction_services() as services:
        services.users.change(scene.reader.id, ChangeHumanUser(user_name=scene.name), principal=Principal.OPERATOR)
        renamed = services.users.change(
            scene.reader.id, ChangeHumanUser(user_name=scene.name.upper()), principal=Principal.OPERATOR
        )
    assert renamed.profile.email_verified


def test_upstream_user_gets_name_without_conflict(scene: NameConflictScenario) -> None:
    with scene.world.transaction_services() as services:
        subject = services.registration.provision_account(scene.organization, scene.name, Profile(given_name="Bob"))
    assert subject.user.user_name == f"{scene.name}-2"


def _set(services: Services, scene: NameConflictScenario, address: str) -> object:
    return services.users.change(scene.reader.id, ChangeHumanUser(email=address), principal=Principal.OPERATOR)


def _say(services: Services, scene: NameConflictScenario, address: str) -> object:
    return services.users.change_profile(scene.reader.id, ChangeProfile(email=address))


def _ask_for_link(services: Services, scene: NameConflictScenario, address: str) -> object:
    return services.users.issue_email_link(scene.reader.id, address)


def _make(services: Services, scene: NameConflictScenario, address: str) -> object:
    command = CreateHumanUser(user_name="new", given_name="N", family_name="N", email=address)
    return services.users.create(scene.organization.id, command)


@pytest.mark.parametrize("give", [_set, _say, _ask_for_link, _make])
def test_address_equal_to_foreign_login_name_is_refused(
    scene: NameConflictScenario, give: Callable[[Services, NameConflictScenario, str], object]
) -> None:
    login_name = f"{scene.other.user_name}@{scene.organization.primary_domain}"
    for spelling in (login_name, login_name.upper()):
        with pytest.raises(Invalid) as refused, scene.world.transaction_services() as services:
            give(services, scene, spelling)
        assert refused.value.fields.keys() == {"email"}
    with scene.world.transaction_services() as services:
        give(services, scene, f"nobody@{scene.organization.primary_domain}")


def test_link_does_not_verify_address_that_became_foreign_login_name(scene: NameConflictScenario) -> None:
    address = f"carl@{scene.organization.primary_domain}"
    with scene.world.transaction_services() as services:
        services.users.change(scene.reader.id, ChangeHumanUser(email=address), principal=Principal.OPERATOR)
        reset = services.passwords.issue_reset_link(scene.reader.id, mailed_to=address).rpartition("/")[2]
        confirm = services.users.issue_email_link(scene.reader.id, address).rpartition("/")[2]
    with scene.world.transaction_services() as services:
        _create(services, scene, "carl")
    with pytest.raises(InvalidOneTimeLink), scene.world.transaction_services() as services:
        services.users.verify_email(confirm, scene.reader.id)
    with scene.world.transaction_services() as services:
        services.passwords.reset(reset, "$hash$")
        assert services.users.get(scene.reader.id).email_verified_by is None


def test_primary_domain_creating_name_conflict_is_refused(scene: NameConflictScenario) -> None:
    domain = "new.example"
    with scene.world.transaction_services() as services:
        stored = services.users.get(scene.reader.id)
        profile = replace(stored.profile, email=f"{scene.other.user_name}@{domain}", email_verified=True)
        services.storage.users.update(replace(stored, profile=profile, version=stored.version + 1))
    change = ChangeOrganization(primary_domain=domain)
    with pytest.raises(Invalid) as refused, scene.world.transaction_services() as services:
        services.organizations.change(scene.organization.id, change, principal=Principal.OPERATOR)
    assert refused.value.fields.keys() == {"primary_domain"}
    with scene.world.transaction_services() as services:
        services.users.remove(scene.other.id, principal=Principal.OPERATOR)
        changed = services.organizations.change(scene.organization.id, change, principal=Principal.OPERATOR)
    assert changed.primary_domain == domain

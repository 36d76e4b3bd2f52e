"""What is demanded of the effect store."""

from datetime import timedelta

import pytest

from identity.domain.effects import Effects, Removed
from identity.domain.permissions import Level, ResourceKey
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_client_secret,
    a_family,
    a_human_user,
    a_key,
    a_manager,
    a_personal_access_token,
    a_project,
    a_project_grant,
    a_project_role,
    a_service_user,
    a_service_user_secret,
    a_session,
    a_user_grant,
    an_access_token,
    an_application,
    an_id,
    an_organization,
)

HOUR = timedelta(hours=1)

# Two organizations with one of everything, each of which holds a grant of the other's project.
ACME, BOLT = an_organization(name="Acme"), an_organization(name="Bolt")
ADA, ROBOT, BOB = a_human_user(ACME), a_service_user(ACME), a_human_user(BOLT)
ROCKET, PLANE = a_project(ACME), a_project(BOLT)
SHOP, SITE = an_application(ROCKET), an_application(PLANE)
LENT = a_project_grant(ROCKET, BOLT, roles=frozenset({"reader"}))
HELD = a_project_grant(PLANE, ACME, roles=frozenset({"pilot"}))
KEY, SECRET, PERSONAL = a_key(ROBOT), a_service_user_secret(ROBOT), a_personal_access_token(ROBOT)
CLIENT_SECRETS = (a_client_secret(), a_client_secret())
OVER = a_session(ADA, ended_at=NOW)
FAMILY, OTHER_FAMILY = a_family(ADA, SHOP), a_family(ADA, SITE)
REVOKED_FAMILY = a_family(BOB, SHOP, revoked_at=NOW)
VALUES = (
    ACME, BOLT, ADA, ROBOT, BOB, ROCKET, PLANE, SHOP, SITE, LENT, HELD, KEY, SECRET, PERSONAL,
    a_project_role(ROCKET, key="reader"), a_project_role(ROCKET, key="writer"), a_project_role(PLANE, key="pilot"),
    a_user_grant(ADA, ROCKET),
    a_user_grant(ROBOT, ROCKET, roles=frozenset({"writer"})),
    a_user_grant(BOB, ROCKET, LENT),
    a_user_grant(ADA, PLANE, HELD, roles=frozenset({"pilot"})),
    a_user_grant(BOB, PLANE, roles=frozenset({"pilot", "reader"})),
    a_manager(ADA),
    a_manager(ADA, ResourceKey(Level.PROJECT_GRANT, HELD.id)),
    a_manager(BOB, ResourceKey(Level.PROJECT_GRANT, HELD.id)),
    a_manager(BOB, ResourceKey(Level.ORGANIZATION, ACME.id)),
    a_manager(BOB, ResourceKey(Level.PROJECT, ROCKET.id)),
    a_manager(BOB, ResourceKey(Level.PROJECT_GRANT, LENT.id)),
    a_manager(BOB, ResourceKey(Level.ORGANIZATION, BOLT.id)),
    OVER, a_session(ADA), a_session(ADA, ends_at=NOW), a_session(BOB),
    FAMILY, OTHER_FAMILY, REVOKED_FAMILY,
    an_access_token(ADA, SHOP, FAMILY),
    an_access_token(ADA, SHOP, FAMILY, expires_at=NOW),
    an_access_token(ADA, SHOP, FAMILY, revoked_at=NOW),
    an_access_token(ADA, SHOP, FAMILY, session_id=OVER.id),
    an_access_token(ADA, SITE, OTHER_FAMILY),
    an_access_token(BOB, SHOP, REVOKED_FAMILY),
    an_access_token(BOB, SITE),
    an_access_token(None, SHOP),
    an_access_token(ROBOT, key_id=KEY.id),
    an_access_token(ROBOT, secret_id=SECRET.id),
    an_access_token(ROBOT, personal_access_token_id=PERSONAL.id),
)  # fmt: skip


class EffectContract(ContractBase):
    """What falls with a thing is counted, each once, and nothing of strangers."""

    @pytest.fixture
    def two_organizations(self, on: On) -> None:
        """Both are stored."""
        on.save(*VALUES)
        with on.writing() as storage:
            for secret in CLIENT_SECRETS:
                storage.applications.add_secret(SHOP.id, secret)

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_an_organization(self, on: On) -> None:
        effects = on.read.effects.of(Removed.ORGANIZATION, ACME.id, NOW)
        assert effects == Effects(
            users=1,
            service_users=1,
            projects=1,
            applications=1,
            roles=2,
            project_grants=2,
            user_grants=4,
            managers=6,
            keys=1,
            secrets=3,
            personal_access_tokens=1,
            sessions=1,
            live_tokens=6,
        )

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_a_project(self, on: On) -> None:
        rocket, plane = (on.read.effects.of(Removed.PROJECT, project.id, NOW) for project in (ROCKET, PLANE))
        assert rocket == Effects(
            applications=1, roles=2, project_grants=1, user_grants=3, managers=2, secrets=2, live_tokens=2
        )
        assert plane == Effects(applications=1, roles=1, project_grants=1, user_grants=2, managers=2, live_tokens=2)

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_an_application(self, on: On) -> None:
        assert on.read.effects.of(Removed.APPLICATION, SHOP.id, NOW) == Effects(secrets=2, live_tokens=2)
        assert on.read.effects.of(Removed.APPLICATION, SHOP.id, NOW - HOUR) == Effects(secrets=2, live_tokens=3), (
            "what expires later is live before"
        )

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_a_user(self, on: On) -> None:
        person, program = (on.read.effects.of(Removed.USER, user.id, NOW) for user in (ADA, ROBOT))
        in_a_year = on.read.effects.of(Removed.USER, ADA.id, NOW + timedelta(days=365))
        assert person == Effects(user_grants=2, managers=2, sessions=1, live_tokens=2)
        assert program == Effects(user_grants=1, keys=1, secrets=1, personal_access_tokens=1, live_tokens=3)
        assert in_a_year == Effects(user_grants=2, managers=2)

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_credentials(self, on: On) -> None:
        assert on.read.effects.of(Removed.KEY, KEY.id, NOW) == Effects(live_tokens=1)
        assert on.read.effects.of(Removed.KEY, KEY.id, NOW + HOUR) == Effects()
        assert on.read.effects.of(Removed.SECRET, SECRET.id, NOW) == Effects(live_tokens=1)
        assert on.read.effects.of(Removed.SECRET, CLIENT_SECRETS[0].id, NOW) == Effects()

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_a_project_grant(self, on: On) -> None:
        effects = on.read.effects.of(Removed.PROJECT_GRANT, LENT.id, NOW)
        assert effects == Effects(users=1, user_grants=1, managers=1)

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_of_a_role(self, on: On) -> None:
        found = [on.read.effects.of_role(ROCKET.id, key) for key in ("reader", "writer", "Reader", "read", '", "')]
        assert on.read.effects.of_role(PLANE.id, "reader") == Effects(user_grants=1)
        nothing = Effects()
        assert found == [Effects(user_grants=2, project_grants=1), Effects(user_grants=1), nothing, nothing, nothing]

    @pytest.mark.usefixtures("two_organizations")
    def test_effects_nothing_falls_with_what_does_not_exist(self, on: On) -> None:
        effects = on.read.effects
        assert {effects.of(removed, an_id(), NOW) for removed in Removed} == {Effects()}
        assert effects.of_role(an_id(), "reader") == Effects()

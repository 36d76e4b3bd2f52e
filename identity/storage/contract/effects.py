"""What is demanded of the effect store."""

from datetime import timedelta

import pytest

from identity.domain.effects import Effects, Removed
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.cascades import (
    ACME,
    ADA,
    CLIENT_SECRETS,
    KEY,
    LENT,
    PLANE,
    ROBOT,
    ROCKET,
    SECRET,
    SHOP,
    VALUES,
)
from identity.storage.contract.factories import NOW, an_id

HOUR = timedelta(hours=1)


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

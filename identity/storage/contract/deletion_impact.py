"""Contract of the deletion impact store."""

from datetime import timedelta

import pytest

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.storage.contract.cascades import (
    ACME,
    ADA,
    ALL_ROWS,
    CLIENT_SECRETS,
    GRANTED_PROJECT,
    KEY,
    PLANE,
    ROBOT,
    ROCKET,
    SECRET,
    SHOP,
)
from identity.storage.contract.factories import NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness

HOUR = timedelta(hours=1)


class DeletionImpactContract(ContractBase):
    """Everything that would be deleted is counted once, and nothing else."""

    @pytest.fixture
    def two_organizations(self, on: StorageHarness) -> None:
        on.store(*ALL_ROWS)
        with on.transaction() as storage:
            for secret in CLIENT_SECRETS:
                storage.applications.add_secret(SHOP.id, secret)

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_of_an_organization(self, on: StorageHarness) -> None:
        effects = on.read.deletion_impact.count(DeletionTarget.ORGANIZATION, ACME.id, NOW)
        assert effects == DeletionImpact(
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
    def test_deletion_impact_of_a_project(self, on: StorageHarness) -> None:
        rocket, plane = (
            on.read.deletion_impact.count(DeletionTarget.PROJECT, project.id, NOW) for project in (ROCKET, PLANE)
        )
        assert rocket == DeletionImpact(
            applications=1, roles=2, project_grants=1, user_grants=3, managers=2, secrets=2, live_tokens=2
        )
        assert plane == DeletionImpact(
            applications=1, roles=1, project_grants=1, user_grants=2, managers=2, live_tokens=2
        )

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_of_an_application(self, on: StorageHarness) -> None:
        assert on.read.deletion_impact.count(DeletionTarget.APPLICATION, SHOP.id, NOW) == DeletionImpact(
            secrets=2, live_tokens=2
        )
        assert on.read.deletion_impact.count(DeletionTarget.APPLICATION, SHOP.id, NOW - HOUR) == DeletionImpact(
            secrets=2, live_tokens=3
        ), "what expires later is live before"

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_of_a_user(self, on: StorageHarness) -> None:
        person, program = (on.read.deletion_impact.count(DeletionTarget.USER, user.id, NOW) for user in (ADA, ROBOT))
        in_a_year = on.read.deletion_impact.count(DeletionTarget.USER, ADA.id, NOW + timedelta(days=365))
        assert person == DeletionImpact(user_grants=2, managers=2, sessions=1, live_tokens=2)
        assert program == DeletionImpact(user_grants=1, keys=1, secrets=1, personal_access_tokens=1, live_tokens=3)
        assert in_a_year == DeletionImpact(user_grants=2, managers=2)

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_of_credentials(self, on: StorageHarness) -> None:
        assert on.read.deletion_impact.count(DeletionTarget.KEY, KEY.id, NOW) == DeletionImpact(live_tokens=1)
        assert on.read.deletion_impact.count(DeletionTarget.KEY, KEY.id, NOW + HOUR) == DeletionImpact()
        assert on.read.deletion_impact.count(DeletionTarget.SECRET, SECRET.id, NOW) == DeletionImpact(live_tokens=1)
        assert on.read.deletion_impact.count(DeletionTarget.SECRET, CLIENT_SECRETS[0].id, NOW) == DeletionImpact()

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_of_a_project_grant(self, on: StorageHarness) -> None:
        effects = on.read.deletion_impact.count(DeletionTarget.PROJECT_GRANT, GRANTED_PROJECT.id, NOW)
        assert effects == DeletionImpact(users=1, user_grants=1, managers=1)

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_of_a_role(self, on: StorageHarness) -> None:
        deletion_impacts = [
            on.read.deletion_impact.count_role_grants(ROCKET.id, key)
            for key in ("reader", "writer", "Reader", "read", '", "')
        ]
        assert on.read.deletion_impact.count_role_grants(PLANE.id, "reader") == DeletionImpact(user_grants=1)
        nothing = DeletionImpact()
        assert deletion_impacts == [
            DeletionImpact(user_grants=2, project_grants=1),
            DeletionImpact(user_grants=1),
            nothing,
            nothing,
            nothing,
        ]

    @pytest.mark.usefixtures("two_organizations")
    def test_deletion_impact_nothing_falls_with_what_does_not_exist(self, on: StorageHarness) -> None:
        effects = on.read.deletion_impact
        assert {effects.count(removed, make_id(), NOW) for removed in DeletionTarget} == {DeletionImpact()}
        assert effects.count_role_grants(make_id(), "reader") == DeletionImpact()

"""Contract of deletions: what is deleted with an entity, and how it is counted before."""

from datetime import timedelta
from typing import Any

import pytest

from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.domain.domains import DomainProof
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, remove
from identity.storage.stores.deletion_impact import DeletionImpactStore
from identity.storage.stores.purges import PurgeKind

HOUR = timedelta(hours=1)

# Two organizations with one entity of every kind; each has a grant of the other's project.
ACME, BOLT = make.organization(name="Acme"), make.organization(name="Bolt")
ADA, ROBOT, BOB = make.human_user(ACME), make.service_user(ACME), make.human_user(BOLT)
ROCKET, PLANE = make.project(ACME), make.project(BOLT)
SHOP, SITE = make.application(ROCKET), make.application(PLANE)
GRANTED_PROJECT = make.project_grant(ROCKET, BOLT, roles=frozenset({"reader"}))
RECEIVED_GRANT = make.project_grant(PLANE, ACME, roles=frozenset({"pilot"}))
KEY, SECRET, PERSONAL = make.service_user_key(ROBOT), make.service_user_secret(ROBOT), make.personal_access_token(ROBOT)
WEBHOOK = make.webhook(ACME)
CLIENT_SECRETS = (make.client_secret(), make.client_secret())
ENDED_SESSION = make.session(ADA, ended_at=NOW)
FAMILY, OTHER_FAMILY = make.token_family(ADA, SHOP, ends_at=NOW), make.token_family(ADA, SITE)
REVOKED_FAMILY = make.token_family(BOB, SHOP, revoked_at=NOW)
TEAM, LOGIN = make.group(ACME), make.upstream_provider(ACME)
#: All values, each with its parents.
CHILD_ROWS: tuple[tuple[Any, ...], ...] = (
    (ACME,), (BOLT,), (ADA, ACME), (ROBOT, ACME), (BOB, BOLT), (ROCKET, ACME), (PLANE, BOLT), (SHOP, ROCKET),
    (SITE, PLANE), (GRANTED_PROJECT, ROCKET, BOLT), (RECEIVED_GRANT, PLANE, ACME), (KEY, ROBOT), (SECRET, ROBOT),
    (PERSONAL, ROBOT),
    (LOGIN, ACME), (make.upstream_provider(BOLT, everywhere=True), BOLT),
    (WEBHOOK, ACME), (make.webhook_delivery(WEBHOOK), WEBHOOK), (make.webhook(BOLT), BOLT),
    (make.organization_domain(ACME), ACME),
    (make.organization_domain(ACME, proof=DomainProof.ASSERTED, verified_at=NOW),),
    (make.organization_domain(BOLT), BOLT),
    (make.password_hash(ADA), ADA),
    (make.password_hash(BOB), BOB),
    (make.project_role(ROCKET, key="reader"), ROCKET),
    (make.project_role(ROCKET, key="writer"), ROCKET),
    (make.project_role(PLANE, key="pilot"), PLANE),
    (make.user_grant(ADA, ROCKET), ADA, ROCKET),
    (make.user_grant(ROBOT, ROCKET, roles=frozenset({"writer"})), ROBOT, ROCKET),
    (make.user_grant(BOB, ROCKET, GRANTED_PROJECT), BOB, ROCKET, GRANTED_PROJECT),
    (make.user_grant(ADA, PLANE, RECEIVED_GRANT, roles=frozenset({"pilot"})), ADA, PLANE, RECEIVED_GRANT),
    (make.user_grant(BOB, PLANE, roles=frozenset({"pilot", "reader"})), BOB, PLANE),
    (make.manager(ADA), ADA),
    (make.manager(ADA, ResourceKey(ManagerLevel.PROJECT_GRANT, RECEIVED_GRANT.id)), ADA, RECEIVED_GRANT),
    (make.manager(BOB, ResourceKey(ManagerLevel.PROJECT_GRANT, RECEIVED_GRANT.id)), BOB, RECEIVED_GRANT),
    (make.manager(BOB, ResourceKey(ManagerLevel.ORGANIZATION, ACME.id)), BOB, ACME),
    (make.manager(BOB, ResourceKey(ManagerLevel.PROJECT, ROCKET.id)), BOB, ROCKET),
    (make.manager(BOB, ResourceKey(ManagerLevel.PROJECT_GRANT, GRANTED_PROJECT.id)), BOB, GRANTED_PROJECT),
    (make.manager(BOB, ResourceKey(ManagerLevel.ORGANIZATION, BOLT.id)), BOB, BOLT),
    (TEAM, ACME), (make.group(BOLT), BOLT), (make.group_member(TEAM, ADA), TEAM, ADA),
    (make.group_mapping(TEAM, LOGIN), TEAM, LOGIN),
    (make.group_grant(TEAM, ROCKET, roles=frozenset({"writer"})), TEAM, ROCKET),
    (make.group_grant(TEAM, PLANE, RECEIVED_GRANT), TEAM, PLANE, RECEIVED_GRANT),
    (make.group_manager(TEAM), TEAM),
    (make.group_manager(TEAM, ResourceKey(ManagerLevel.PROJECT, ROCKET.id)), TEAM, ROCKET),
    (make.group_manager(TEAM, ResourceKey(ManagerLevel.PROJECT_GRANT, RECEIVED_GRANT.id)), TEAM, RECEIVED_GRANT),
    (ENDED_SESSION, ADA), (make.session(ADA), ADA), (make.session(ADA, ends_at=NOW), ADA), (make.session(BOB), BOB),
    (make.pending_authorization(user_id=ADA.id), ADA),
    (make.pending_authorization(SHOP),),
    (make.record(),), (make.record(ADA), ADA), (make.record(None, SITE), SITE), (make.record(BOB, SHOP), BOB, SHOP),
    (FAMILY, ADA, SHOP), (OTHER_FAMILY, ADA, SITE), (REVOKED_FAMILY, BOB, SHOP),
    (make.authorization_code(FAMILY), FAMILY), (make.authorization_code(OTHER_FAMILY), OTHER_FAMILY),
    (make.refresh_token(FAMILY), FAMILY), (make.refresh_token(REVOKED_FAMILY), REVOKED_FAMILY),
    (make.access_token(ADA, SHOP, FAMILY), FAMILY),
    (make.access_token(ADA, SHOP, FAMILY, expires_at=NOW), FAMILY),
    (make.access_token(ADA, SHOP, FAMILY, revoked_at=NOW), FAMILY),
    (make.access_token(ADA, SHOP, FAMILY, session_id=ENDED_SESSION.id), FAMILY),
    (make.access_token(ADA, SITE, OTHER_FAMILY), OTHER_FAMILY),
    (make.access_token(BOB, SHOP, REVOKED_FAMILY), REVOKED_FAMILY),
    (make.access_token(BOB, SITE), BOB, SITE),
    (make.access_token(None, SHOP), SHOP),
    (make.access_token(ROBOT, expires_at=NOW), ROBOT),
    (make.access_token(ROBOT, key_id=KEY.id, expires_at=NOW), ROBOT, KEY),
    (make.access_token(ROBOT, key_id=KEY.id), ROBOT, KEY),
    (make.access_token(ROBOT, secret_id=SECRET.id), ROBOT, SECRET),
    (make.access_token(ROBOT, personal_access_token_id=PERSONAL.id), ROBOT, PERSONAL),
)  # fmt: skip
ALL_ROWS = tuple(value for value, *_ in CHILD_ROWS)

DELETABLE_ROWS = (ACME, ROCKET, SHOP, GRANTED_PROJECT, ADA, ROBOT, KEY, SECRET, PERSONAL, FAMILY)


def is_deleted_with(value: Any, removed: Any) -> bool:
    """True if the value is the deleted one or belongs to it."""
    owners = next(owners for item, *owners in CHILD_ROWS if item is value)
    return value is removed or any(is_deleted_with(owner, removed) for owner in owners)


def _store_all(on: StorageHarness) -> None:
    on.store(*ALL_ROWS)
    for secret in CLIENT_SECRETS:
        on.write.applications.add_secret(SHOP.id, secret)


class CascadeContract(ContractBase):
    """What belongs to an entity is deleted with it, over any number of levels; everything else stays."""

    @pytest.mark.parametrize("deleted", DELETABLE_ROWS, ids=lambda deleted: type(deleted).__name__)
    def test_deletion_cascades_to_dependent_rows_only(self, on: StorageHarness, deleted: Any) -> None:
        _store_all(on)
        with on.transaction() as storage:
            if deleted is FAMILY:
                before = FAMILY.ends_at.replace(second=1)
                storage.purges.delete(
                    PurgeKind.FAMILIES, storage.purges.find_candidates(PurgeKind.FAMILIES, before, 10).keys, before
                )
            else:
                remove(storage, deleted)
        assert on.unchanged(*ALL_ROWS) == [value for value in ALL_ROWS if not is_deleted_with(value, deleted)]
        assert len(on.read.applications.list_secrets(SHOP.id)) == (
            0 if is_deleted_with(SHOP, deleted) else len(CLIENT_SECRETS)
        )


class DeletionImpactContract(ContractBase):
    """Everything that would be deleted is counted once, and nothing else."""

    @pytest.fixture
    def impact(self, on: StorageHarness) -> DeletionImpactStore:
        """The store, with all these values."""
        _store_all(on)
        return on.read.deletion_impact

    def test_deletion_impact_of_an_organization(self, impact: DeletionImpactStore) -> None:
        effects = impact.count(DeletionTarget.ORGANIZATION, ACME.id, NOW)
        assert effects == DeletionImpact(
            users=1,
            service_users=1,
            projects=1,
            applications=1,
            roles=2,
            project_grants=2,
            user_grants=4,
            managers=6,
            groups=1,
            keys=1,
            secrets=3,
            personal_access_tokens=1,
            sessions=1,
            live_tokens=6,
        )

    def test_deletion_impact_of_a_project(self, impact: DeletionImpactStore) -> None:
        rocket, plane = (impact.count(DeletionTarget.PROJECT, project.id, NOW) for project in (ROCKET, PLANE))
        assert rocket == DeletionImpact(
            applications=1, roles=2, project_grants=1, user_grants=3, managers=2, groups=1, secrets=2, live_tokens=2
        )
        assert plane == DeletionImpact(
            applications=1, roles=1, project_grants=1, user_grants=2, managers=2, groups=1, live_tokens=2
        )

    def test_deletion_impact_of_an_application(self, impact: DeletionImpactStore) -> None:
        assert impact.count(DeletionTarget.APPLICATION, SHOP.id, NOW) == DeletionImpact(secrets=2, live_tokens=2)
        assert impact.count(DeletionTarget.APPLICATION, SHOP.id, NOW - HOUR) == DeletionImpact(
            secrets=2, live_tokens=3
        ), "what expires later is live before"

    def test_deletion_impact_of_a_user(self, impact: DeletionImpactStore) -> None:
        person, program = (impact.count(DeletionTarget.USER, user.id, NOW) for user in (ADA, ROBOT))
        in_a_year = impact.count(DeletionTarget.USER, ADA.id, NOW + timedelta(days=365))
        assert person == DeletionImpact(user_grants=2, managers=2, sessions=1, live_tokens=2)
        assert program == DeletionImpact(user_grants=1, keys=1, secrets=1, personal_access_tokens=1, live_tokens=3)
        assert in_a_year == DeletionImpact(user_grants=2, managers=2)

    def test_deletion_impact_of_credentials(self, impact: DeletionImpactStore) -> None:
        assert impact.count(DeletionTarget.KEY, KEY.id, NOW) == DeletionImpact(live_tokens=1)
        assert impact.count(DeletionTarget.KEY, KEY.id, NOW + HOUR) == DeletionImpact()
        assert impact.count(DeletionTarget.SECRET, SECRET.id, NOW) == DeletionImpact(live_tokens=1)
        assert impact.count(DeletionTarget.SECRET, CLIENT_SECRETS[0].id, NOW) == DeletionImpact()

    def test_deletion_impact_of_a_project_grant(self, impact: DeletionImpactStore) -> None:
        effects = impact.count(DeletionTarget.PROJECT_GRANT, GRANTED_PROJECT.id, NOW)
        assert effects == DeletionImpact(users=1, user_grants=1, managers=1)

    def test_deletion_impact_of_a_role(self, impact: DeletionImpactStore) -> None:
        assert impact.count_role_grants(PLANE.id, "reader") == DeletionImpact(user_grants=1, groups=1)
        assert impact.count_role_grants(ROCKET.id, "reader") == DeletionImpact(user_grants=2, project_grants=1)
        assert impact.count_role_grants(ROCKET.id, "writer") == DeletionImpact(user_grants=1, groups=1)
        assert {impact.count_role_grants(ROCKET.id, key) for key in ("Reader", "read", '", "')} == {DeletionImpact()}

    def test_deletion_impact_nothing_falls_with_what_does_not_exist(self, impact: DeletionImpactStore) -> None:
        assert {impact.count(removed, make_id(), NOW) for removed in DeletionTarget} == {DeletionImpact()}
        assert impact.count_role_grants(make_id(), "reader") == DeletionImpact()

"""What is demanded of removals: what is removed takes all along that belongs to it, and nothing else."""

from typing import Any

import pytest

from identity.domain.domains import Proof
from identity.domain.permissions import Level, ResourceKey
from identity.storage.contract.base import ContractBase, On, remove
from identity.storage.contract.factories import (
    NOW,
    a_client_secret,
    a_code,
    a_domain,
    a_family,
    a_human_user,
    a_key,
    a_manager,
    a_password,
    a_pending,
    a_personal_access_token,
    a_project,
    a_project_grant,
    a_project_role,
    a_record,
    a_refresh_token,
    a_service_user,
    a_service_user_secret,
    a_session,
    a_user_grant,
    an_access_token,
    an_application,
    an_organization,
    an_upstream_provider,
)
from identity.storage.stores.purges import Purged

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
FAMILY, OTHER_FAMILY = a_family(ADA, SHOP, ends_at=NOW), a_family(ADA, SITE)
REVOKED_FAMILY = a_family(BOB, SHOP, revoked_at=NOW)
#: All values, each with those to which it belongs.
BELONGING: tuple[tuple[Any, ...], ...] = (
    (ACME,), (BOLT,), (ADA, ACME), (ROBOT, ACME), (BOB, BOLT), (ROCKET, ACME), (PLANE, BOLT), (SHOP, ROCKET),
    (SITE, PLANE), (LENT, ROCKET, BOLT), (HELD, PLANE, ACME), (KEY, ROBOT), (SECRET, ROBOT), (PERSONAL, ROBOT),
    (an_upstream_provider(ACME), ACME), (an_upstream_provider(BOLT, everywhere=True), BOLT),
    (a_domain(ACME), ACME),
    (a_domain(ACME, proof=Proof.ASSERTED, verified_at=NOW),),
    (a_domain(BOLT), BOLT),
    (a_password(ADA), ADA),
    (a_password(BOB), BOB),
    (a_project_role(ROCKET, key="reader"), ROCKET),
    (a_project_role(ROCKET, key="writer"), ROCKET),
    (a_project_role(PLANE, key="pilot"), PLANE),
    (a_user_grant(ADA, ROCKET), ADA, ROCKET),
    (a_user_grant(ROBOT, ROCKET, roles=frozenset({"writer"})), ROBOT, ROCKET),
    (a_user_grant(BOB, ROCKET, LENT), BOB, ROCKET, LENT),
    (a_user_grant(ADA, PLANE, HELD, roles=frozenset({"pilot"})), ADA, PLANE, HELD),
    (a_user_grant(BOB, PLANE, roles=frozenset({"pilot", "reader"})), BOB, PLANE),
    (a_manager(ADA), ADA),
    (a_manager(ADA, ResourceKey(Level.PROJECT_GRANT, HELD.id)), ADA, HELD),
    (a_manager(BOB, ResourceKey(Level.PROJECT_GRANT, HELD.id)), BOB, HELD),
    (a_manager(BOB, ResourceKey(Level.ORGANIZATION, ACME.id)), BOB, ACME),
    (a_manager(BOB, ResourceKey(Level.PROJECT, ROCKET.id)), BOB, ROCKET),
    (a_manager(BOB, ResourceKey(Level.PROJECT_GRANT, LENT.id)), BOB, LENT),
    (a_manager(BOB, ResourceKey(Level.ORGANIZATION, BOLT.id)), BOB, BOLT),
    (OVER, ADA), (a_session(ADA), ADA), (a_session(ADA, ends_at=NOW), ADA), (a_session(BOB), BOB),
    (a_pending(user_id=ADA.id), ADA),
    (a_pending(SHOP),),
    (a_record(),), (a_record(ADA), ADA), (a_record(None, SITE), SITE), (a_record(BOB, SHOP), BOB, SHOP),
    (FAMILY, ADA, SHOP), (OTHER_FAMILY, ADA, SITE), (REVOKED_FAMILY, BOB, SHOP),
    (a_code(FAMILY), FAMILY), (a_code(OTHER_FAMILY), OTHER_FAMILY),
    (a_refresh_token(FAMILY), FAMILY), (a_refresh_token(REVOKED_FAMILY), REVOKED_FAMILY),
    (an_access_token(ADA, SHOP, FAMILY), FAMILY),
    (an_access_token(ADA, SHOP, FAMILY, expires_at=NOW), FAMILY),
    (an_access_token(ADA, SHOP, FAMILY, revoked_at=NOW), FAMILY),
    (an_access_token(ADA, SHOP, FAMILY, session_id=OVER.id), FAMILY),
    (an_access_token(ADA, SITE, OTHER_FAMILY), OTHER_FAMILY),
    (an_access_token(BOB, SHOP, REVOKED_FAMILY), REVOKED_FAMILY),
    (an_access_token(BOB, SITE), BOB, SITE),
    (an_access_token(None, SHOP), SHOP),
    (an_access_token(ROBOT, expires_at=NOW), ROBOT),
    (an_access_token(ROBOT, key_id=KEY.id, expires_at=NOW), ROBOT, KEY),
    (an_access_token(ROBOT, key_id=KEY.id), ROBOT, KEY),
    (an_access_token(ROBOT, secret_id=SECRET.id), ROBOT, SECRET),
    (an_access_token(ROBOT, personal_access_token_id=PERSONAL.id), ROBOT, PERSONAL),
)  # fmt: skip
VALUES = tuple(value for value, *_ in BELONGING)

REMOVED = (ACME, ROCKET, SHOP, LENT, ADA, ROBOT, KEY, SECRET, PERSONAL, FAMILY)


def goes(value: Any, removed: Any) -> bool:
    """True if the value is what is removed, or belongs to it."""
    owners = next(owners for one, *owners in BELONGING if one is value)
    return value is removed or any(goes(owner, removed) for owner in owners)


class CascadeContract(ContractBase):
    """What belongs to a thing goes with it, in however many steps; what belongs to others stays as it is."""

    @pytest.mark.parametrize("thing", REMOVED, ids=lambda thing: type(thing).__name__)
    def test_removals_take_along_what_belongs_to_the_thing_and_nothing_else(self, on: On, thing: Any) -> None:
        on.save(*VALUES)
        with on.writing() as storage:
            for secret in CLIENT_SECRETS:
                storage.applications.add_secret(SHOP.id, secret)
            if thing is FAMILY:
                before = FAMILY.ends_at.replace(second=1)
                storage.purges.delete(Purged.FAMILIES, storage.purges.find(Purged.FAMILIES, before, 10).keys, before)
            else:
                remove(storage, thing)
        assert on.left(*VALUES) == [value for value in VALUES if not goes(value, thing)]
        assert len(on.read.applications.secrets(SHOP.id)) == (0 if goes(SHOP, thing) else len(CLIENT_SECRETS))

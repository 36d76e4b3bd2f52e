"""Domains of organizations in SQL."""

from sqlalchemy import bindparam, delete, insert, not_, select, update

from identity.domain.domains import OrganizationDomain, Proof
from identity.plugins.sql.rows import (
    SqlStore,
    Values,
    moment,
    moment_or_none,
    readable,
    row_of,
    seconds,
    seconds_or_none,
)
from identity.plugins.sql.tables import domains as table
from identity.plugins.sql.tables import organizations
from identity.storage.errors import Missing
from identity.storage.stores.domains import DomainStore

_COLUMNS = (
    table.c.organization_id,
    table.c.name,
    table.c.challenge,
    table.c.created_at,
    table.c.proof,
    table.c.verified_at,
)
_THIS = (table.c.organization_id == bindparam("organization"), table.c.name == bindparam("domain"))

_ADD = insert(table)
_FIND = select(*_COLUMNS).where(*_THIS)
_FIND_HOLDER = select(*_COLUMNS).where(table.c.name == bindparam("domain"), table.c.proof.is_not(None))
_OF_ORGANIZATION = select(*_COLUMNS).where(table.c.organization_id == bindparam("organization")).order_by(table.c.name)
#: Users may be made meanwhile: their reference to the row does not wait for this.
_LOCK = select(organizations.c.id).where(organizations.c.id == bindparam("key")).with_for_update(key_share=True)
_UNPROVEN = (
    select(*_COLUMNS)
    .where(
        table.c.proof == Proof.UNPROVEN.value,
        not_(table.c.name.endswith(bindparam("name_space"))),
    )
    .order_by(table.c.name, table.c.organization_id)
    .limit(bindparam("limit"))
)
_PROVE = update(table).where(*_THIS, table.c.challenge == bindparam("shown"))
_REMOVE = delete(table).where(*_THIS)
#: What waits goes with its organization; what counts stays bound to it.
REMOVE_WAITING = delete(table).where(table.c.organization_id == bindparam("key"), table.c.proof.is_(None))


class SqlDomainStore(SqlStore, DomainStore):
    """One row each. A partial index lets one of each name count."""

    def add(self, domain: OrganizationDomain) -> None:
        """Store a new domain."""
        values = {
            "organization_id": domain.organization_id,
            "name": domain.name,
            "challenge": domain.challenge,
            "created_at": seconds(domain.created_at),
            **_proof_values(domain),
        }
        self._try(_ADD, values)

    def find(self, organization_id: str, name: str) -> OrganizationDomain | None:
        """The organization's domain of this name."""
        row = self._one(_FIND, {"organization": organization_id, "domain": name})
        return None if row is None else _domain_of(*row)

    def find_holder(self, name: str) -> OrganizationDomain | None:
        """The one that counts."""
        row = self._one(_FIND_HOLDER, {"domain": name})
        return None if row is None else _domain_of(*row)

    def of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        """All of the organization."""
        return tuple(_domain_of(*row) for row in self._all(_OF_ORGANIZATION, {"organization": organization_id}))

    def lock_of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        """The same, locked by their organization's row."""
        self._one(_LOCK, {"key": organization_id})
        return self.of_organization(organization_id)

    def unproven(self, name_space: str, limit: int) -> tuple[OrganizationDomain, ...]:
        """Those that count without a proof."""
        parameters = {"name_space": f".{name_space}", "limit": limit}
        return tuple(readable(_domain_of, self._all(_UNPROVEN, parameters)))

    def prove(self, domain: OrganizationDomain) -> None:
        """Keep the proof, if the challenge is still the one that was answered."""
        values = {
            "organization": domain.organization_id,
            "domain": domain.name,
            "shown": domain.challenge,
            **_proof_values(domain),
        }
        if not self._try(_PROVE, values):
            raise Missing

    def remove(self, organization_id: str, name: str) -> None:
        """Delete it."""
        self._touch_one(_REMOVE, {"organization": organization_id, "domain": name})


def _proof_values(domain: OrganizationDomain) -> Values:
    return {
        "proof": None if domain.proof is None else domain.proof.value,
        "verified_at": seconds_or_none(domain.verified_at),
    }


@row_of(*_COLUMNS)
def _domain_of(
    organization_id: str, name: str, challenge: str, created_at: int, proof: str | None, verified_at: int | None
) -> OrganizationDomain:
    return OrganizationDomain(
        organization_id=organization_id,
        name=name,
        challenge=challenge,
        created_at=moment(created_at),
        proof=None if proof is None else Proof(proof),
        verified_at=moment_or_none(verified_at),
    )

"""Domains of organizations in SQL."""

from sqlalchemy import bindparam, delete, not_, select, update

from identity.domain.domains import OrganizationDomain, Proof
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.tables import domains as table
from identity.plugins.sql.tables import organizations
from identity.storage.errors import Missing
from identity.storage.stores.domains import DomainStore

_ROWS = Mapped[OrganizationDomain](table)
_THIS = (table.c.organization_id == bindparam("organization"), table.c.name == bindparam("domain"))

_FIND = _ROWS.select.where(*_THIS)
_FIND_HOLDER = _ROWS.select.where(table.c.name == bindparam("domain"), table.c.proof.is_not(None))
_OF_ORGANIZATION = _ROWS.select.where(table.c.organization_id == bindparam("organization")).order_by(table.c.name)
#: Users may be made meanwhile: their reference to the row does not wait for this.
_LOCK = select(organizations.c.id).where(organizations.c.id == bindparam("key")).with_for_update(key_share=True)
_UNPROVEN = (
    _ROWS.select.where(
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
        self._try(_ROWS.insert, _ROWS.values(domain))

    def find(self, organization_id: str, name: str) -> OrganizationDomain | None:
        return self._find(_ROWS.of, _FIND, {"organization": organization_id, "domain": name})

    def find_holder(self, name: str) -> OrganizationDomain | None:
        return self._find(_ROWS.of, _FIND_HOLDER, {"domain": name})

    def of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        return tuple(map(_ROWS.of, self._all(_OF_ORGANIZATION, {"organization": organization_id})))

    def lock_of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        self._one(_LOCK, {"key": organization_id})
        return self.of_organization(organization_id)

    def unproven(self, name_space: str, limit: int) -> tuple[OrganizationDomain, ...]:
        return self._list(_ROWS.of, _UNPROVEN, {"name_space": f".{name_space}", "limit": limit})

    def prove(self, domain: OrganizationDomain) -> None:
        values = _ROWS.values(domain)
        proven = {name: values[name] for name in ("proof", "verified_at")}
        this = {"organization": domain.organization_id, "domain": domain.name, "shown": domain.challenge}
        if not self._try(_PROVE, {**this, **proven}):
            raise Missing

    def remove(self, organization_id: str, name: str) -> None:
        self._touch_one(_REMOVE, {"organization": organization_id, "domain": name})

"""Organizations in SQL."""

from sqlalchemy import bindparam, delete, not_, select, update

from identity.domain.domains import OrganizationDomain, Proof
from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.galera_locks import guard
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.tables import domains
from identity.plugins.sql.tables import instance as instance_table
from identity.plugins.sql.tables import organizations as table
from identity.storage.errors import Missing
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.organizations import OrganizationStore

ROWS = Entities[Organization](table)

_FIND_BY_DOMAIN = ROWS.select.where(table.c.primary_domain == bindparam("domain"))
_ORDERS = {
    "name": table.c.name_key,
    "primary_domain": table.c.primary_domain,
    "created_at": table.c.created_at,
}

_DOMAINS = Mapped[OrganizationDomain](domains)
_THIS_DOMAIN = (domains.c.organization_id == bindparam("organization"), domains.c.name == bindparam("domain"))
_FIND_DOMAIN = _DOMAINS.select.where(*_THIS_DOMAIN)
_FIND_DOMAIN_HOLDER = _DOMAINS.select.where(domains.c.name == bindparam("domain"), domains.c.proof.is_not(None))
_DOMAINS_OF = _DOMAINS.select.where(domains.c.organization_id == bindparam("organization")).order_by(domains.c.name)
_UNPROVEN_DOMAINS = (
    _DOMAINS.select.where(
        domains.c.proof == Proof.UNPROVEN.value,
        not_(domains.c.name.endswith(bindparam("name_space"))),
    )
    .order_by(domains.c.name, domains.c.organization_id)
    .limit(bindparam("limit"))
)
_PROVE_DOMAIN = update(domains).where(*_THIS_DOMAIN, domains.c.challenge == bindparam("shown"))
_REMOVE_DOMAIN = delete(domains).where(*_THIS_DOMAIN)
#: What waits goes with its organization; what counts stays bound to it.
_REMOVE_WAITING = delete(domains).where(domains.c.organization_id == bindparam("key"), domains.c.proof.is_(None))

_INSTANCE = Mapped[Instance](instance_table)
_RULES_VERSION = select(instance_table.c.rules_version)
_MOVE_RULES_VERSION = update(instance_table).values(rules_version=instance_table.c.rules_version + 1)


class SqlOrganizationStore(SqlEntityStore[Organization], OrganizationStore):
    """One row each; what belongs to it goes by foreign keys."""

    rows = ROWS

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        return self._find(ROWS.of, _FIND_BY_DOMAIN, {"domain": primary_domain})

    def remove(self, id: str) -> None:  # noqa: A002
        super().remove(id)
        self._change(_REMOVE_WAITING, {"key": id})

    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        return self._page(ROWS, ROWS.select, request, _ORDERS)

    def add_domain(self, domain: OrganizationDomain) -> None:
        self._try(_DOMAINS.insert, _DOMAINS.values(domain))

    def find_domain(self, organization_id: str, name: str) -> OrganizationDomain | None:
        return self._find(_DOMAINS.of, _FIND_DOMAIN, {"organization": organization_id, "domain": name})

    def find_domain_holder(self, name: str) -> OrganizationDomain | None:
        return self._find(_DOMAINS.of, _FIND_DOMAIN_HOLDER, {"domain": name})

    def domains(self, organization_id: str, *, locked: bool = False) -> tuple[OrganizationDomain, ...]:
        if locked:
            guard(self._connection, "domains", organization_id)
            self._one(ROWS.lock, {"key": organization_id})
        return tuple(map(_DOMAINS.of, self._all(_DOMAINS_OF, {"organization": organization_id})))

    def unproven_domains(self, name_space: str, limit: int) -> tuple[OrganizationDomain, ...]:
        return self._list(_DOMAINS.of, _UNPROVEN_DOMAINS, {"name_space": f".{name_space}", "limit": limit})

    def prove_domain(self, domain: OrganizationDomain) -> None:
        values = _DOMAINS.values(domain)
        proven = {name: values[name] for name in ("proof", "verified_at")}
        this = {"organization": domain.organization_id, "domain": domain.name, "shown": domain.challenge}
        if not self._try(_PROVE_DOMAIN, {**this, **proven}):
            raise Missing

    def remove_domain(self, organization_id: str, name: str) -> None:
        self._touch_one(_REMOVE_DOMAIN, {"organization": organization_id, "domain": name})

    def find_instance(self) -> Instance | None:
        return self._find(_INSTANCE.of, _INSTANCE.select, {})

    def rules_version(self) -> int | None:
        row = self._one(_RULES_VERSION, {})
        return None if row is None else row[0]

    def move_rules_version(self) -> None:
        self._change(_MOVE_RULES_VERSION, {})

    def add_instance(self, instance: Instance) -> None:
        self._try(_INSTANCE.insert, _INSTANCE.values(instance))

"""Organizations in SQL."""

from sqlalchemy import bindparam, delete, not_, select, update

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.tables import domains
from identity.plugins.sql.tables import instance as instance_table
from identity.plugins.sql.tables import organizations as table
from identity.storage.errors import RowNotFound
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.organizations import OrganizationStore

ENTITY_TABLE = EntityTable[Organization](table)

_FIND_BY_DOMAIN = ENTITY_TABLE.select.where(table.c.primary_domain == bindparam("domain"))
_SORT_COLUMNS = {"name": table.c.name_key, "primary_domain": table.c.primary_domain, "created_at": table.c.created_at}

_DOMAIN_TABLE = MappedTable[OrganizationDomain](domains)
_DOMAIN_CONDITION = (domains.c.organization_id == bindparam("organization"), domains.c.name == bindparam("domain"))
_FIND_DOMAIN = _DOMAIN_TABLE.select.where(*_DOMAIN_CONDITION)
_FIND_EFFECTIVE_DOMAIN = _DOMAIN_TABLE.select.where(domains.c.name == bindparam("domain"), domains.c.proof.is_not(None))
_LIST_DOMAINS = _DOMAIN_TABLE.select.where(domains.c.organization_id == bindparam("organization")).order_by(
    domains.c.name
)
_LIST_UNPROVEN_DOMAINS = (
    _DOMAIN_TABLE.select.where(
        domains.c.proof == DomainProof.UNPROVEN.value, not_(domains.c.name.endswith(bindparam("name_space")))
    )
    .order_by(domains.c.name, domains.c.organization_id)
    .limit(bindparam("limit"))
)
_PROVE_DOMAIN = update(domains).where(*_DOMAIN_CONDITION, domains.c.challenge == bindparam("shown"))
_DELETE_DOMAIN = delete(domains).where(*_DOMAIN_CONDITION)
#: Pending domains are deleted with their organization; verified ones stay reserved for it.
_DELETE_UNPROVEN = delete(domains).where(domains.c.organization_id == bindparam("key"), domains.c.proof.is_(None))

_INSTANCE_TABLE = MappedTable[Instance](instance_table)
_GET_RULES_VERSION = select(instance_table.c.rules_version)
_BUMP_RULES_VERSION = update(instance_table).values(rules_version=instance_table.c.rules_version + 1)


class SqlOrganizationStore(SqlEntityStore[Organization], OrganizationStore):
    """One row each; dependent rows are deleted by foreign keys."""

    entity_table = ENTITY_TABLE

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        return self._fetch_value(ENTITY_TABLE.from_row, _FIND_BY_DOMAIN, {"domain": primary_domain})

    def delete(self, id: str) -> None:  # noqa: A002
        super().delete(id)
        self._execute(_DELETE_UNPROVEN, {"key": id})

    def page(self, request: PageRequest = FIRST_PAGE) -> ResultPage[Organization]:
        return self._page(ENTITY_TABLE, ENTITY_TABLE.select, request, _SORT_COLUMNS)

    def add_domain(self, domain: OrganizationDomain) -> None:
        self._execute_in_savepoint(_DOMAIN_TABLE.insert, _DOMAIN_TABLE.to_row(domain))

    def find_domain(self, organization_id: str, name: str) -> OrganizationDomain | None:
        return self._fetch_value(
            _DOMAIN_TABLE.from_row, _FIND_DOMAIN, {"organization": organization_id, "domain": name}
        )

    def find_effective_domain(self, name: str) -> OrganizationDomain | None:
        return self._fetch_value(_DOMAIN_TABLE.from_row, _FIND_EFFECTIVE_DOMAIN, {"domain": name})

    def list_domains(self, organization_id: str, *, locked: bool = False) -> tuple[OrganizationDomain, ...]:
        if locked:
            lock_names(self._connection, "domains", organization_id)
            self._fetch_one(ENTITY_TABLE.lock, {"key": organization_id})
        return tuple(map(_DOMAIN_TABLE.from_row, self._fetch_all(_LIST_DOMAINS, {"organization": organization_id})))

    def list_unproven_domains(self, reserved: str, limit: int) -> tuple[OrganizationDomain, ...]:
        return self._fetch_values(
            _DOMAIN_TABLE.from_row, _LIST_UNPROVEN_DOMAINS, {"name_space": f".{reserved}", "limit": limit}
        )

    def prove_domain(self, domain: OrganizationDomain) -> None:
        values = _DOMAIN_TABLE.to_row(domain)
        proven = {name: values[name] for name in ("proof", "verified_at")}
        this = {"organization": domain.organization_id, "domain": domain.name, "shown": domain.challenge}
        if not self._execute_in_savepoint(_PROVE_DOMAIN, {**this, **proven}):
            raise RowNotFound

    def delete_domain(self, organization_id: str, name: str) -> None:
        self._execute_for_one(_DELETE_DOMAIN, {"organization": organization_id, "domain": name})

    def find_instance(self) -> Instance | None:
        return self._fetch_value(_INSTANCE_TABLE.from_row, _INSTANCE_TABLE.select, {})

    def get_rules_version(self) -> int | None:
        row = self._fetch_one(_GET_RULES_VERSION, {})
        return None if row is None else row[0]

    def bump_rules_version(self) -> None:
        self._execute(_BUMP_RULES_VERSION, {})

    def add_instance(self, instance: Instance) -> None:
        self._execute_in_savepoint(_INSTANCE_TABLE.insert, _INSTANCE_TABLE.to_row(instance))

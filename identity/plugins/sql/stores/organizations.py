"""Organizations in SQL."""

from sqlalchemy import ColumnElement, delete, select, update

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.plugins.sql.entity_store import EntityTable
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.tables import domains, organization_search_terms
from identity.plugins.sql.tables import instance as instance_table
from identity.plugins.sql.tables import organizations as table
from identity.plugins.sql.term_index import TermIndexedStore
from identity.storage.errors import RowNotFound
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.organizations import OrganizationStore

ENTITY_TABLE = EntityTable[Organization](table)

_SORT_COLUMNS = {"name": table.c.name_key, "primary_domain": table.c.primary_domain, "created_at": table.c.created_at}

_DOMAIN_TABLE = MappedTable[OrganizationDomain](domains)
_INSTANCE_TABLE = MappedTable[Instance](instance_table)
_GET_RULES_VERSION = select(instance_table.c.rules_version)


class SqlOrganizationStore(TermIndexedStore[Organization], OrganizationStore):
    """One row each; dependent rows are deleted by foreign keys."""

    entity_table = ENTITY_TABLE
    term_table = organization_search_terms

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        statement = ENTITY_TABLE.select.where(table.c.primary_domain == primary_domain)
        return self._fetch_value(ENTITY_TABLE.from_row, statement)

    def delete(self, id: str) -> None:
        super().delete(id)
        # Pending domains are deleted with their organization; verified ones stay reserved for it.
        self._execute(delete(domains).where(domains.c.organization_id == id, domains.c.proof.is_(None)))

    def page(self, request: PageRequest = FIRST_PAGE) -> ResultPage[Organization]:
        return self._page(ENTITY_TABLE, ENTITY_TABLE.select, request, _SORT_COLUMNS)

    def add_domain(self, domain: OrganizationDomain) -> None:
        self._execute_in_savepoint(_DOMAIN_TABLE.insert, _DOMAIN_TABLE.to_row(domain))

    def find_domain(self, organization_id: str, name: str) -> OrganizationDomain | None:
        return self._fetch_value(_DOMAIN_TABLE.from_row, _DOMAIN_TABLE.select.where(*_is_domain(organization_id, name)))

    def find_effective_domain(self, name: str) -> OrganizationDomain | None:
        statement = _DOMAIN_TABLE.select.where(domains.c.name == name, domains.c.proof.is_not(None))
        return self._fetch_value(_DOMAIN_TABLE.from_row, statement)

    def list_domains(self, organization_id: str, *, locked: bool = False) -> tuple[OrganizationDomain, ...]:
        if locked:
            lock_names(self._connection, "domains", organization_id)
            self._fetch_one(ENTITY_TABLE.lock(organization_id))
        select_domains = _DOMAIN_TABLE.select.where(domains.c.organization_id == organization_id)
        return tuple(map(_DOMAIN_TABLE.from_row, self._fetch_all(select_domains.order_by(domains.c.name))))

    def list_unproven_domains(self, reserved: str, limit: int) -> tuple[OrganizationDomain, ...]:
        unproven = (domains.c.proof == DomainProof.UNPROVEN.value, ~domains.c.name.endswith(f".{reserved}"))
        ordered = _DOMAIN_TABLE.select.where(*unproven).order_by(domains.c.name, domains.c.organization_id)
        return self._fetch_values(_DOMAIN_TABLE.from_row, ordered.limit(limit))

    def prove_domain(self, domain: OrganizationDomain) -> None:
        values, this = _DOMAIN_TABLE.to_row(domain), _is_domain(domain.organization_id, domain.name)
        prove = update(domains).where(*this, domains.c.challenge == domain.challenge)
        proven = {name: values[name] for name in ("proof", "verified_at")}
        if not self._execute_in_savepoint(prove.values(proven)):
            raise RowNotFound

    def delete_domain(self, organization_id: str, name: str) -> None:
        self._execute_for_one(delete(domains).where(*_is_domain(organization_id, name)))

    def find_instance(self) -> Instance | None:
        return self._fetch_value(_INSTANCE_TABLE.from_row, _INSTANCE_TABLE.select)

    def get_rules_version(self) -> int | None:
        row = self._fetch_one(_GET_RULES_VERSION)
        return None if row is None else row[0]

    def bump_rules_version(self) -> None:
        self._execute(update(instance_table).values(rules_version=instance_table.c.rules_version + 1))

    def add_instance(self, instance: Instance) -> None:
        self._execute_in_savepoint(_INSTANCE_TABLE.insert, _INSTANCE_TABLE.to_row(instance))


def _is_domain(organization_id: str, name: str) -> tuple[ColumnElement[bool], ...]:
    return domains.c.organization_id == organization_id, domains.c.name == name

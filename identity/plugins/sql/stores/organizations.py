"""Organizations in SQL."""

from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, delete, insert, select

from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import Values, find_by_id, find_many_by_id, moment, row_of, seconds, versioned
from identity.plugins.sql.stores.domains import REMOVE_WAITING
from identity.plugins.sql.tables import organizations as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.organizations import OrganizationStore

COLUMNS = (
    table.c.id,
    table.c.name,
    table.c.primary_domain,
    table.c.created_at,
    table.c.changed_at,
    table.c.registration,
    table.c.active,
    table.c.version,
)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
_FIND_MANY = find_many_by_id(table, COLUMNS)
_FIND_BY_DOMAIN = select(*COLUMNS).where(table.c.primary_domain == bindparam("domain"))
_UPDATE = versioned(table)
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = select(*COLUMNS)
_ORDERS = {
    "name": table.c.name_key,
    "primary_domain": table.c.primary_domain,
    "created_at": table.c.created_at,
}


class SqlOrganizationStore(PagedStore, OrganizationStore):
    """One row each; what belongs to it goes by foreign keys."""

    def add(self, organization: Organization) -> None:
        """Store a new organization."""
        self._try(_ADD, _values(organization))

    def find(self, organization_id: str) -> Organization | None:
        """The organization with this id."""
        row = self._one(_FIND, {"key": organization_id})
        return None if row is None else organization_of(*row)

    def find_many(self, ids: Collection[str]) -> Mapping[str, Organization]:
        """The organizations with these ids."""
        return {each.id: each for each in self._many(_FIND_MANY, ids, organization_of)}

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        """The organization with this primary domain."""
        row = self._one(_FIND_BY_DOMAIN, {"domain": primary_domain})
        return None if row is None else organization_of(*row)

    def update(self, organization: Organization) -> None:
        """Replace the stored value."""
        self._replace(_UPDATE, _values(organization))

    def remove(self, organization_id: str) -> None:
        """Delete it with all that is its own."""
        self._touch_one(_REMOVE, {"key": organization_id})
        self._change(REMOVE_WAITING, {"key": organization_id})

    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        """Organizations by name."""
        return self._page(_PAGE, table, request, organization_of, _ORDERS)


@row_of(*COLUMNS)
def organization_of(
    id_: str,
    name: str,
    primary_domain: str,
    created_at: int,
    changed_at: int,
    registration: bool,
    active: bool,
    version: int,
) -> Organization:
    """The organization in a row of ``COLUMNS``."""
    return Organization(
        id=id_,
        name=name,
        primary_domain=primary_domain,
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        registration=registration,
        active=active,
        version=version,
    )


def _values(organization: Organization) -> Values:
    return {
        "id": organization.id,
        "name": organization.name,
        "name_key": name_key(organization.name),
        "search_text": organization.search_text,
        "primary_domain": organization.primary_domain,
        "created_at": seconds(organization.created_at),
        "changed_at": seconds(organization.changed_at),
        "registration": organization.registration,
        "active": organization.active,
        "version": organization.version,
    }

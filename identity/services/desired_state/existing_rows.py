"""Existing entities, by the names that documents use for them."""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.storage.backend import Storage
from identity.storage.paging import iterate_rows

DUPLICATE_SPEC = gettext_lazy("This is described twice.")

Row = TypeVar("Row")


class ExistingRows(Generic[Row]):
    """The rows of one list by name, as they were before reconciliation."""

    def __init__(self, kind: str, rows: Iterable[Row]) -> None:
        self._kind = kind
        self._by_name: dict[str, list[Any]] = {}
        row: Any
        for row in rows:
            self._by_name.setdefault(name_key(row.name), []).append(row)
        self._used_names: set[str] = set()

    def find(self, described: Any) -> Row | None:
        """By id, else by name. Raises NotFound for an id, Invalid for an ambiguous or repeated name. Names need not be
        unique; but where a document refers by name, the same name is the same entity."""
        if described.id is not None:
            having = (item for several in self._by_name.values() for item in several if item.id == described.id)
            found: Row | None = next(having, None)
            if found is None:
                raise NotFound(self._kind, described.id)
            return found
        key = name_key(described.name)
        if key in self._used_names:
            raise Invalid({"name": DUPLICATE_SPEC})
        self._used_names.add(key)
        return require_unambiguous(described.name, self._by_name.get(key, []))


def find_organizations_by_name(storage: Storage, name: str) -> list[Organization]:
    rows = iterate_rows(storage.organizations.page)
    return [organization for organization in rows if name_key(organization.name) == name_key(name)]


def require_unambiguous(name: str, found: list[Row]) -> Row | None:
    """The only row of this name; None if there is none. Raises Invalid if there are several."""
    if len(found) > 1:
        raise Invalid(
            {"name": gettext_lazy("Several entries are named {name}. Add the id of the right one.", name=name)}
        )
    return found[0] if found else None

"""Pages of rows that lie in memory, the latest made first."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from identity.storage.paging import Identified, Page, PageRequest, Sort, in_order, page_sorted


class Dated(Identified, Protocol):
    """A row that knows when it was made."""

    @property
    def created_at(self) -> datetime:
        """When the row was made."""


DatedRow = TypeVar("DatedRow", bound=Dated)


def page_newest_first(rows: Iterable[DatedRow], request: PageRequest) -> Page[DatedRow]:
    """A page of the rows, the latest made first."""
    orders = {"created_at": lambda row: in_order(row.created_at)}
    return page_sorted(rows, request, orders, usual=Sort("created_at", descending=True))

"""What a manager chose for a list of the console: its columns, and saved searches.

They are records of the plugin, one for each manager and list, and are deleted with the user. A saved search is no more
than a query of the list, whose rows are judged again each time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyramid.request import Request

from identity.api.services import Record, RecordNamespace, RecordService
from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.users import Subject

MAX_SAVED_SEARCHES = 20
MAX_NAME_LENGTH, MAX_SEARCH_LENGTH = 60, 1000
#: Stored columns of one list, including those that only other organizations have.
MAX_COLUMNS = 100
#: The field with the name of a search.
NAME_FIELD = "search_name"

_KIND = "list_preferences"
_REGISTRY_KEY = "console_records"


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """``query`` is the query of the list's URL."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class ListPreferences:
    """``columns`` are the ids of the chosen columns, None for the default ones."""

    columns: tuple[str, ...] | None = None
    searches: tuple[SavedSearch, ...] = ()

    def with_search(self, name: str, query: str) -> "ListPreferences":
        """With the search at the end, or in the position of the one that has this name. Raises Invalid."""
        name = " ".join(name.split())
        if not name or not name.isprintable():
            raise Invalid({NAME_FIELD: _("Enter a name.")})
        if len(name) > MAX_NAME_LENGTH:
            raise Invalid({NAME_FIELD: _("Use at most {length} characters.", length=MAX_NAME_LENGTH)})
        if not query:
            raise Invalid({NAME_FIELD: _("Search the list first, then save the search.")})
        if len(query) > MAX_SEARCH_LENGTH:
            raise Invalid({NAME_FIELD: _("This search is too long to be saved.")})
        searches = {item.name: item for item in self.searches} | {name: SavedSearch(name, query)}
        if len(searches) > MAX_SAVED_SEARCHES:
            raise Invalid(
                {NAME_FIELD: _("A list can have {n} saved searches. Remove one first.", n=MAX_SAVED_SEARCHES)}
            )
        return replace(self, searches=tuple(searches.values()))

    def without_search(self, name: str) -> "ListPreferences":
        return replace(self, searches=tuple(item for item in self.searches if item.name != name))

    def with_columns(self, chosen: Sequence[str], known: Sequence[str]) -> "ListPreferences":
        """Raises Invalid for a column that the list does not have. Earlier choices that it does not have here, such as
        attributes of another organization, stay."""
        if not set(chosen) <= set(known):
            raise Invalid({"column": _("Choose one of the values offered.")})
        unavailable = [item for item in self.columns or () if item not in known]
        return replace(self, columns=tuple(dict.fromkeys([*chosen, *unavailable]))[:MAX_COLUMNS])


def set_record_namespace(registry: Any, namespace: RecordNamespace) -> None:
    registry[_REGISTRY_KEY] = namespace


def load_preferences(request: Request, list_id: str) -> ListPreferences:
    """Those of the signed-in manager for the list."""
    return _read(_records(request).find(_KIND, _key(request, list_id)))


def change_preferences(
    request: Request, list_id: str, change: Callable[[ListPreferences], ListPreferences]
) -> ListPreferences:
    """Store what the function makes of them. Raises Conflict if they are changed at the same time."""
    records, key = _records(request), _key(request, list_id)
    record = records.find(_KIND, key)
    changed = change(_read(record))
    value = {"list": list_id, **asdict(changed)}
    if record is not None:
        records.replace(record, value)
    elif records.add(_KIND, key, value, user_id=request.identity.id) is not None:
        raise Conflict(_("This was changed in the meantime. Check the fields, then save again."))
    return changed


def export_preferences(request: Request, subject: Subject) -> Sequence[Mapping[str, Any]]:
    """A member of the user's data export."""
    return [dict(record.value) for record in _records(request).list_by_owner(_KIND, user_id=subject.user.id)]


def _records(request: Request) -> RecordService:
    service: RecordService = request.services.record_service(request.registry[_REGISTRY_KEY])
    return service


def _key(request: Request, list_id: str) -> str:
    return f"{request.identity.id}\n{list_id}"


def _read(record: Record | None) -> ListPreferences:
    if record is None:
        return ListPreferences()
    columns = record.value["columns"]
    searches = tuple(SavedSearch(**item) for item in record.value["searches"])
    return ListPreferences(None if columns is None else tuple(columns), searches)

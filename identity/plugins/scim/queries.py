"""Lists and searches (RFC 7644 §3.4.2, §3.4.3): filter, sort, page.

A filter is parsed and never evaluated as code. ``eq`` on id, userName, externalId, a primary email address, displayName
of groups and members uses an index; other filters and sorting read every resource, of organizations up to
MAX_SCANNED.
"""

from collections.abc import Mapping
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any

from scim2_models import (
    Context,
    InvalidFilterException,
    ListResponse,
    SearchRequest,
    TooManyException,
)

from identity.plugins.scim.collection import ResourceCollection
from identity.plugins.scim.groups import GroupCollection
from identity.plugins.scim.schemas import MAX_FILTER_LENGTH, MAX_RESULTS, POLICY

#: Most resources that are read for one filter or sort order, and most that are counted.
MAX_SCANNED, MAX_COUNTED = 5_000, 100_000
DEFAULT_COUNT = 100

_PARAMETERS = ("filter", "sortBy", "sortOrder", "startIndex", "count", "attributes", "excludedAttributes")


def parse_query(collections: list[ResourceCollection], parameters: Mapping[str, Any]) -> Any:
    """The validated SearchRequest; unknown parameters are ignored. Raises ValidationError, SCIMException."""
    known = {name.lower(): name for name in _PARAMETERS}
    values = {known[name.lower()]: value for name, value in parameters.items() if name.lower() in known}
    values = {name: value for name, value in values.items() if value not in ("", None)}
    for name in ("filter", "sortBy", "attributes", "excludedAttributes"):
        if len(str(values.get(name, ""))) > MAX_FILTER_LENGTH:
            raise InvalidFilterException(detail=f"{name} is longer than {MAX_FILTER_LENGTH} characters.")
    models: Any = reduce(or_, (collection.model for collection in collections))
    query = SearchRequest[models].model_validate(values, scim_policy=POLICY)
    for collection in collections:
        if isinstance(collection, GroupCollection):
            collection.includes_members = _needs_members(query)
    return query


def search(collections: list[ResourceCollection], query: Any) -> Any:
    """The page of all resources that match."""
    start = query.start_index or 1
    count = DEFAULT_COUNT if query.count is None else min(query.count, MAX_RESULTS)
    if len(collections) == 1 and query.filter is None and query.sort_by is None:
        total, found = _list_page(collections[0], start, count)
    else:
        matching = query.sort(item for collection in collections for item in _find(collection, query))
        total, found = len(matching), matching[start - 1 :][:count]
    models: Any = reduce(or_, (collection.model for collection in collections))
    return ListResponse[models](
        total_results=total, start_index=start, items_per_page=len(found), resources=found or None
    )


def dump(message: Any, query: Any, context: Context) -> dict[str, Any]:
    """The message as JSON values, with the attributes that the query asks for."""
    members: dict[str, Any] = message.model_dump(scim_ctx=context, response_parameters=query)
    return members


def _list_page(collection: ResourceCollection, start: int, count: int) -> tuple[int, list[Any]]:
    entities = list(islice(collection.iterate(), MAX_COUNTED + 1))
    if len(entities) > MAX_COUNTED:
        raise TooManyException(detail=f"The organization has more than {MAX_COUNTED} resources. Use a filter.")
    return len(entities), collection.load(entities[start - 1 :][:count])


def _find(collection: ResourceCollection, query: Any) -> list[Any]:
    entities = None if query.filter is None else collection.find_candidates(query.filter.ast)
    if entities is None:
        entities = list(islice(collection.iterate(), MAX_SCANNED + 1))
    if len(entities) > MAX_SCANNED:
        raise TooManyException(
            detail=f"The organization has more than {MAX_SCANNED} resources. Filter by an indexed attribute."
        )
    resources = collection.load(entities)
    return resources if query.filter is None else [item for item in resources if query.filter.match(item)]


def _needs_members(query: Any) -> bool:
    def names_members(paths: Any) -> bool:
        return any("members" in str(path).lower() for path in paths or ())

    if "members" in str(query.filter or "").lower():
        return True
    if query.attributes:
        return names_members(query.attributes)
    return not names_members(query.excluded_attributes)

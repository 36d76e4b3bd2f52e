"""Search: everything that the caller may read, in all organizations."""

from typing import Annotated

from pydantic import Field

from identity.domain.instance import Instance
from identity.http.list_parameters import MAX_QUERY_LENGTH
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation
from identity.services.commands import Command
from identity.services.search import HitKind, SearchHit

_DEFAULT_LIMIT, _MAX_LIMIT = 5, 50


class SearchHitRepresentation(Representation):
    """Something that the caller may read. `organization_id` is null for audit events of the instance, `project_id` for
    what belongs to no project. `name` of an audit event is its event."""

    kind: HitKind
    id: str
    name: str
    organization_id: str | None
    project_id: str | None


class SearchFilters(Command):
    """What to search for: starts of words, a login name, an id or its start, or a request id."""

    q: Annotated[str, Field(max_length=MAX_QUERY_LENGTH)] = ""
    limit: Annotated[int, Field(ge=1, le=_MAX_LIMIT)] = _DEFAULT_LIMIT


def _search(call: OperationCall[Instance]) -> list[SearchHitRepresentation]:
    filters = call.filters_as(SearchFilters)
    result = call.services.search.search(filters.q, filters.limit, principal=call.principal)
    return [
        SearchHitRepresentation.from_value(
            hit,
            organization_id=None if hit.organization is None else hit.organization.id,
            project_id=None if hit.project is None else hit.project.id,
        )
        for hit in result.hits
    ]


OPERATIONS = (
    ApiResource[SearchHit]("search", SearchHitRepresentation).list(
        INSTANCE / "search",
        "Searches everything that the caller may read.",
        _search,
        name="search",
        is_paged=False,
        permission=ANY_MANAGER_PERMISSION,
        filters=SearchFilters,
        description=(
            "Users, service users, applications, projects, organizations and groups by the starts of words of their"
            " names, user names and email addresses, ignoring case and accents; users also by login name; anything by"
            " its id, or by at least eight characters of its start; audit events by request id. At most `limit` of each"
            " kind, 5 by default. Managers of more than 100 organizations search 100 of them."
        ),
    ),
)

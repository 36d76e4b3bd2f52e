"""Search over everything that the caller may read, in all organizations."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from identity.domain.applications import Application
from identity.domain.audit import AuditEvent, AuditFilter
from identity.domain.groups import Group
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.search import PrefixQuery, id_prefix
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import ServiceUser, Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.base import Service
from identity.storage.paging import PageRequest
from identity.storage.stores.search import SearchedKind, SearchScope

#: Organizations that one search covers; managers of the instance search all with one range of an index.
MAX_ORGANIZATIONS = 100
#: Hooks may hide hits, so more are read than returned.
_SPARE_HITS = 10
_MAX_EVENTS = 50
#: As ``identity.http.request_ids`` accepts them.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{8,64}", re.ASCII)


class HitKind(StrEnum):
    USER = "user"
    SERVICE_USER = "service_user"
    APPLICATION = "application"
    PROJECT = "project"
    ORGANIZATION = "organization"
    GROUP = "group"
    PROJECT_GRANT = "project_grant"
    UPSTREAM_PROVIDER = "upstream_provider"
    AUDIT_EVENT = "audit_event"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found entity (of users the Subject) with its organization, None for the instance's own events, and its
    project. ``name`` is the id for what has no name."""

    kind: HitKind
    id: str
    name: str
    entity: Any
    organization: Organization | None
    project: Project | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``hits`` are ordered by kind. ``has_more`` are the kinds with more hits than requested. ``is_complete`` is False
    if the caller manages more organizations than one search covers."""

    hits: tuple[SearchHit, ...] = ()
    has_more: frozenset[HitKind] = frozenset()
    is_complete: bool = True


@dataclass(eq=False, repr=False)
class SearchService(Service):
    """Reads a bounded number of index ranges, however many organizations there are. Every hit is checked with the
    permission to read it, including deny hooks."""

    _access: AccessControl

    def search(self, query: str, limit: int, *, principal: Principal) -> SearchResult:
        """Up to ``limit`` hits of each kind: by words of names, addresses and user names, by login name, by id or its
        start, and audit events by request id."""
        query = query.strip()
        if not query or not query.isprintable():
            return SearchResult()
        permitted, complete = self._permission_check(principal), True
        hits: dict[HitKind, dict[str, SearchHit]] = {kind: {} for kind in HitKind}
        for hit in filter(permitted, self._find_exact(query)):
            hits[hit.kind].setdefault(hit.id, hit)
        for kind in SearchedKind:
            scope = self._access.permitted_scope(principal, f"{kind}.read")
            covered = _limit_scope(scope, principal)
            complete = complete and covered == scope
            ids = self._find_ids(kind, query, covered, limit + _SPARE_HITS)
            for hit in filter(permitted, self._load(kind, ids)):
                hits[hit.kind].setdefault(hit.id, hit)
        return SearchResult(
            tuple(hit for found in hits.values() for hit in list(found.values())[:limit]),
            frozenset(kind for kind, found in hits.items() if len(found) > limit),
            complete,
        )

    def _find_ids(self, kind: SearchedKind, query: str, scope: SearchScope, limit: int) -> tuple[str, ...]:
        if scope.is_empty:
            return ()
        start = id_prefix(query)
        by_id = () if start is None else self._storage.search.find_ids_by_start(kind, start, scope, limit)
        return (*by_id, *self._storage.search.find_ids(kind, PrefixQuery.parse(query), scope, limit))

    def _load(self, kind: SearchedKind, ids: tuple[str, ...]) -> Iterable[SearchHit]:
        """The hits with these ids, in their order, with a fixed number of queries."""
        storage = self._storage
        match kind:
            case SearchedKind.ORGANIZATION:
                organizations = storage.organizations.find_many(ids)
                hits: Mapping[str, SearchHit] = {id_: _organization_hit(item) for id_, item in organizations.items()}
            case SearchedKind.PROJECT:
                hits = {hit.id: hit for hit in self._project_hits(storage.projects.find_many(ids).values())}
            case SearchedKind.APPLICATION:
                hits = {hit.id: hit for hit in self._application_hits(storage.applications.find_many(ids).values())}
            case SearchedKind.GROUP:
                hits = {hit.id: hit for hit in self._group_hits(storage.groups.find_many(ids).values())}
            case _:
                hits = {id_: _user_hit(subject) for id_, subject in storage.users.find_subjects(ids).items()}
        return [hits[id_] for id_ in ids if id_ in hits]

    def _project_hits(self, projects: Iterable[Project]) -> Iterator[SearchHit]:
        projects = tuple(projects)
        organizations = self._storage.organizations.find_many({item.organization_id for item in projects})
        for item in projects:
            yield SearchHit(HitKind.PROJECT, item.id, item.name, item, organizations.get(item.organization_id), item)

    def _group_hits(self, groups: Iterable[Group]) -> Iterator[SearchHit]:
        groups = tuple(groups)
        organizations = self._storage.organizations.find_many({item.organization_id for item in groups})
        for item in groups:
            yield SearchHit(HitKind.GROUP, item.id, item.name, item, organizations.get(item.organization_id))

    def _application_hits(self, applications: Iterable[Application]) -> Iterator[SearchHit]:
        applications = tuple(applications)
        projects = self._storage.projects.find_many({item.project_id for item in applications})
        parents = {hit.id: hit for hit in self._project_hits(projects.values())}
        for item in applications:
            parent = parents[item.project_id]
            yield SearchHit(HitKind.APPLICATION, item.id, item.name, item, parent.organization, parent.project)

    def _find_exact(self, query: str) -> Iterator[SearchHit]:
        """What a login name, a whole id or a request id names."""
        storage = self._storage
        if "@" in query:
            subject = storage.users.find_by_login_name(query)
            if subject is not None:
                yield _user_hit(subject)
        if not _REQUEST_ID.fullmatch(query):
            return
        grant = storage.project_grants.find(query)
        if grant is not None:
            for hit in self._project_hits(storage.projects.find_many([grant.project_id]).values()):
                yield SearchHit(HitKind.PROJECT_GRANT, grant.id, hit.name, grant, hit.organization, hit.project)
        provider = storage.upstream_providers.find(query)
        if provider is not None:
            owner = storage.organizations.find(provider.organization_id)
            yield SearchHit(HitKind.UPSTREAM_PROVIDER, provider.id, provider.name, provider, owner)
        event = storage.audit.find(query)
        events = storage.audit.page(PageRequest(limit=_MAX_EVENTS), AuditFilter(request_id=query)).items
        found = (*(() if event is None else (event,)), *events)
        organizations = storage.organizations.find_many(
            {item.organization_id for item in found if item.organization_id is not None}
        )
        for item in found:
            owner = None if item.organization_id is None else organizations.get(item.organization_id)
            yield SearchHit(HitKind.AUDIT_EVENT, item.id, item.event, item, owner)

    def _permission_check(self, principal: Principal) -> Callable[[SearchHit], bool]:
        @cache
        def is_permitted(permission: str, resource: Resource) -> bool:
            return self._access.is_permitted(principal, permission, resource)

        return lambda hit: is_permitted(f"{hit.kind}.read", _resource_of(hit))


def _resource_of(hit: SearchHit) -> Resource:
    """Where the permission to read it is checked."""
    match hit.entity:
        case AuditEvent(organization_id=None):
            return Resource.INSTANCE
        case (
            AuditEvent(organization_id=str(organization_id))
            | Group(organization_id=organization_id)
            | UpstreamProvider(organization_id=organization_id)
        ):
            return Resource.of_organization(organization_id)
        case Project() | Application() if hit.project is not None:
            return project_resource(hit.project)
        case ProjectGrant() if hit.project is not None:
            return project_grant_resource(hit.entity, hit.project)
        case Subject():
            return Resource.of_organization(hit.entity.organization.id)
        case Organization():
            return Resource.of_organization(hit.entity.id)
        case _:
            raise TypeError(f"a hit of the kind {hit.kind} without its parents")


def _organization_hit(organization: Organization) -> SearchHit:
    return SearchHit(HitKind.ORGANIZATION, organization.id, organization.name, organization, organization)


def _user_hit(subject: Subject) -> SearchHit:
    kind = HitKind.SERVICE_USER if isinstance(subject.user, ServiceUser) else HitKind.USER
    return SearchHit(kind, subject.user.id, subject.user.display_name, subject, subject.organization)


def _limit_scope(scope: SearchScope, principal: Principal) -> SearchScope:
    """The caller's own organization and project first, others by id."""

    def limited(ids: frozenset[str]) -> frozenset[str]:
        home = "" if principal.subject is None else principal.subject.organization.id
        return frozenset(sorted(ids, key=lambda id_: (id_ != home, id_))[:MAX_ORGANIZATIONS])

    organizations = scope.organization_ids
    return SearchScope(None if organizations is None else limited(organizations), limited(scope.project_ids))

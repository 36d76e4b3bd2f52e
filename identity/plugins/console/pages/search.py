"""Search over everything that the caller may read, and over pages and settings in the caller's language."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup, escape

from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.domain.search import PrefixQuery, search_terms, search_text
from identity.http import route_contexts
from identity.http.list_parameters import MAX_QUERY_LENGTH, QUERY_PARAM
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.pages.event_labels import EventLabels
from identity.plugins.console.console_page import CONSOLE_PATH, SEARCH_PATH
from identity.plugins.console.field_labels import FieldLabel
from identity.plugins.console.fields.branding import BRANDING_FIELDS
from identity.plugins.console.fields.organizations import ORGANIZATION_FIELDS
from identity.plugins.console.fields.policies import POLICY_FIELDS
from identity.plugins.console.query_page import QueryPage
from identity.plugins.console.resource_types import (
    APPLICATION,
    GROUP,
    ORGANIZATION,
    PROJECT,
    PROJECT_GRANT,
    SERVICE_USER,
    UPSTREAM_PROVIDER,
    USER,
    AnyResourceType,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.services.search import HitKind, SearchHit, SearchResult

_KIND_PARAM = "kind"
#: Hits of each kind, and of one kind alone.
_FEW, _MANY = 5, 50

_TYPES: Mapping[HitKind, AnyResourceType] = {
    HitKind.USER: USER,
    HitKind.SERVICE_USER: SERVICE_USER,
    HitKind.APPLICATION: APPLICATION,
    HitKind.PROJECT: PROJECT,
    HitKind.ORGANIZATION: ORGANIZATION,
    HitKind.GROUP: GROUP,
    HitKind.PROJECT_GRANT: PROJECT_GRANT,
    HitKind.UPSTREAM_PROVIDER: UPSTREAM_PROVIDER,
}
#: Heading of the group, and the name of the kind on each hit.
_KIND_LABELS = {
    HitKind.USER: (_("Users"), _("User")),
    HitKind.SERVICE_USER: (_("Service users"), _("Service user")),
    HitKind.APPLICATION: (_("Applications"), _("Application")),
    HitKind.PROJECT: (_("Projects"), _("Project")),
    HitKind.ORGANIZATION: (_("Organizations"), _("Organization")),
    HitKind.GROUP: (_("Groups"), _("Group")),
    HitKind.PROJECT_GRANT: (_("Project grants"), _("Project grant")),
    HitKind.UPSTREAM_PROVIDER: (_("Identity providers"), _("Identity provider")),
    HitKind.AUDIT_EVENT: (_("Audit events"), _("Audit event")),
}


@dataclass(frozen=True)
class _Settings:
    """The settings of one page: ``path`` is below the organization's, or below /console for the instance's."""

    label: str
    path: str
    fields: Mapping[str, FieldLabel]
    permission: str
    of_instance: bool = False


_SETTINGS = (
    _Settings(_("Organization"), "/edit", ORGANIZATION_FIELDS, "organization.write"),
    _Settings(_("Branding"), "/branding", BRANDING_FIELDS, "organization.write"),
    _Settings(_("Texts of mails"), "/mail-texts", {}, "organization.write"),
    _Settings(_("Sign-in policy"), "/policy", POLICY_FIELDS, "organization.read"),
    _Settings(_("Sign-in policy of the instance"), "/instance/policy", POLICY_FIELDS, "instance.read", True),
)
#: Label, path below the organization's, permission.
_NEW_PAGES = (
    (_("New user"), "/users/new", "user.write"),
    (_("New service user"), "/service-users/new", "service_user.write"),
    (_("New project"), "/projects/new", "project.create"),
)


@dataclass(frozen=True)
class HitLink:
    """A hit as the template shows it: ``name`` with its matches marked, ``plain_name`` for the avatar, which is round
    for people."""

    name: Markup
    href: str
    secondary_text: str
    kind_label: str
    plain_name: str
    is_square: bool = True


@dataclass(frozen=True)
class HitGroup:
    """Hits of one kind; ``more`` is the path of all of them, empty if these are all."""

    id: str
    title: str
    hits: Sequence[HitLink]
    more: str = ""


class SearchPage(QueryPage):
    template = "console/search.html"
    title = _("Find anything")
    fields: tuple[str, ...] = (QUERY_PARAM, _KIND_PARAM)

    def template_variables(self) -> Mapping[str, object]:
        query = self.query().get(QUERY_PARAM, "")
        if len(query) > MAX_QUERY_LENGTH:
            self.problems[QUERY_PARAM] = _("Use at most {length} characters.", length=MAX_QUERY_LENGTH)
            query = ""
        kind = next((kind for kind in HitKind if kind == self.query().get(_KIND_PARAM)), None)
        found: SearchResult = self.services.search.search(
            query, _FEW if kind is None else _MANY, principal=self.principal
        )
        groups = [group for group in self._groups(query, found) if kind is None or group.id == kind]
        if kind is None:
            groups += [group for group in self._page_groups(query) if group.hits]
        return {
            "q": query,
            "groups": groups,
            "count": sum(len(group.hits) for group in groups),
            "is_complete": found.is_complete,
            "all_kinds": self._path_of(query) if kind is not None else "",
        }

    def _groups(self, query: str, found: SearchResult) -> Iterator[HitGroup]:
        matched = PrefixQuery.parse(query)
        for kind, (title, label) in _KIND_LABELS.items():
            links = [self._link(hit, matched, label) for hit in found.hits if hit.kind is kind]
            if links:
                more = self._path_of(query, kind) if kind in found.has_more else ""
                yield HitGroup(kind, self.translator.gettext(title), links, more)

    def _link(self, hit: SearchHit, matched: PrefixQuery, label: str) -> HitLink:
        t, resource_type = self.translator.gettext, _TYPES.get(hit.kind)
        organization = "" if hit.organization is None else hit.organization.name
        below: tuple[str, ...]
        match hit.kind:
            case HitKind.USER | HitKind.SERVICE_USER:
                below = (hit.entity.login_name, organization)
            case HitKind.APPLICATION | HitKind.PROJECT_GRANT:
                below = ("" if hit.project is None else hit.project.name, organization)
            case HitKind.ORGANIZATION:
                below = (hit.entity.primary_domain,)
            case HitKind.AUDIT_EVENT:
                below = (str(self.template_macros.moment(hit.entity.at).striptags()), organization)
            case _:
                below = (organization,)
        name = t(EventLabels.EVENTS.get(hit.name, hit.name)) if resource_type is None else hit.name
        entity = getattr(hit.entity, "user", hit.entity)
        return HitLink(
            name=mark_matches(name, matched),
            href=f"{CONSOLE_PATH}/audit-events/{hit.id}" if resource_type is None else resource_type.path_of(entity),
            secondary_text=", ".join(filter(None, below)),
            kind_label=t(label),
            plain_name=name,
            is_square=hit.kind is not HitKind.USER,
        )

    def _page_groups(self, query: str) -> Iterator[HitGroup]:
        """Pages and settings that the caller may open, of the caller's own organization and the instance."""
        matched, t = PrefixQuery.parse(query), self.translator.gettext
        pages = [
            HitLink(mark_matches(label, matched), href, below, t("Page"), label)
            for label, href, below in self._pages()
            if matched.first_match(search_text(label)) is not None
        ]
        settings = [
            HitLink(mark_matches(label, matched), href, below, t("Setting"), label)
            for label, href, below in self._settings()
            if matched.first_match(search_text(label)) is not None
        ]
        yield HitGroup("pages", t("Pages"), pages[:_FEW])
        yield HitGroup("settings", t("Settings"), settings[:_FEW])
        if matched.terms and self.organization is not None and self._may("user.read"):
            users = f"{self.base_path}/users?{urlencode({QUERY_PARAM: query})}"
            label = t("Users that contain “{q}”", q=query)
            yield HitGroup("lists", t("Lists"), [HitLink(label, users, self.organization.name, t("List"), str(label))])

    def _pages(self) -> Iterator[tuple[str, str, str]]:
        """Label, path and place."""
        for group in self.navigation():
            yield from ((str(item.label), item.href, group.title) for item in group.items)
        for label, path, permission in _NEW_PAGES:
            if self.organization is not None and self._may(permission):
                yield self.translator.gettext_plain(label), f"{self.base_path}{path}", self.organization.name

    def _settings(self) -> Iterator[tuple[str, str, str]]:
        for settings in _SETTINGS:
            root = CONSOLE_PATH if settings.of_instance else self.base_path
            if self._may(settings.permission, of_instance=settings.of_instance):
                for field in settings.fields.values():
                    label = self.translator.gettext_plain(field.label)
                    yield label, f"{root}{settings.path}", self.translator.gettext_plain(settings.label)

    def _may(self, permission: str, *, of_instance: bool = False) -> bool:
        """At the instance, or at the organization of the navigation."""
        resource = Resource.INSTANCE
        if not of_instance:
            if self.organization is None:
                return False
            resource = Resource.of_organization(self.organization.id)
        allowed: bool = self.services.access_control.is_permitted(self.principal, permission, resource)
        return allowed

    def _path_of(self, query: str, kind: str = "") -> str:
        parameters = {QUERY_PARAM: query, _KIND_PARAM: kind}
        return f"{SEARCH_PATH}?{urlencode({name: value for name, value in parameters.items() if value})}"


def mark_matches(name: str, matched: PrefixQuery) -> Markup:
    """The name with the words marked that the query matches."""

    def is_match(part: str) -> bool:
        folded = "".join(search_terms(part))
        return any(folded.startswith(spelling) for term in matched.terms for spelling in term)

    parts = re.split(r"(\w+)", name)
    return Markup().join(Markup("<mark>{}</mark>").format(part) if is_match(part) else escape(part) for part in parts)


ROUTES = (ConsoleRoute("/search", SearchPage, ANY_MANAGER_PERMISSION, route_contexts.instance_context),)

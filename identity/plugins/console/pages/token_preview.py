"""Token preview: which tokens and claims a user and an application would get, and why. Nothing is issued."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.search import matches_query
from identity.http import route_contexts
from identity.http.endpoint_routes import request_context
from identity.http.token_previews import APPLICATION_PARAM, USER_PARAM, build_token_preview, find_application, find_user
from identity.plugins.console.preview_results import SCOPE_FIELD, preview_variables
from identity.plugins.console.query_page import QueryPage
from identity.plugins.console.routes import ConsoleRoute
from identity.provider.scope import Scope
from identity.provider.token_preview import TokenPreviewResult
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, iterate_rows
from identity.storage.stores.users import UserKind

RESPONSE_TYPE_FIELD, RESOURCE_FIELD = "response_type", "resource"

#: They narrow the options.
USER_QUERY_FIELD, APPLICATION_QUERY_FIELD = "user_query", "application_query"

#: Further options are found by searching.
_MAX_OPTIONS = 50


@dataclass(frozen=True)
class PreviewOptions:
    """Values and labels; whether there are more than these, or a search narrowed them."""

    options: list[tuple[str, str]]
    has_more: bool


class TokenPreviewPage(QueryPage):
    template = "console/token_preview.html"
    section = "token-preview"
    title = _("Token preview")
    fields: tuple[str, ...] = (
        USER_PARAM,
        USER_QUERY_FIELD,
        APPLICATION_PARAM,
        APPLICATION_QUERY_FIELD,
        SCOPE_FIELD,
        RESPONSE_TYPE_FIELD,
        RESOURCE_FIELD,
    )

    def query(self) -> Mapping[str, str]:
        """The query, with defaults before the first one."""
        parameters = {**({} if SCOPE_FIELD in self.request.GET else {SCOPE_FIELD: Scope.OPENID}), **super().query()}
        named = find_user(request_context(self.request), self.principal, parameters.get(USER_PARAM, ""))
        return parameters if named is None else {**parameters, USER_PARAM: named.user.id}

    def template_variables(self) -> Mapping[str, object]:
        """The preview, if a user is selected, and the options to select from."""
        parameters = self.query()
        searches = not parameters.keys() & {USER_PARAM, APPLICATION_PARAM} and parameters.keys() & {
            USER_QUERY_FIELD,
            APPLICATION_QUERY_FIELD,
        }
        answer = self._build_preview(parameters) if USER_PARAM in self.request.GET and not searches else None
        response_types = self.request.registry.application.protocol_registry.response_types.values()
        return {
            "users": self._user_options(parameters),
            "applications": self._application_options(parameters),
            "has_resources": bool(self.request.registry.application.protocol_registry.resource_resolvers),
            "response_types": [(response_type.value, response_type.value) for response_type in response_types],
            **preview_variables(self, answer),
        }

    def _build_preview(self, parameters: Mapping[str, str]) -> TokenPreviewResult | None:
        """None if a parameter is invalid."""
        try:
            return build_token_preview(
                request_context(self.request),
                self.principal,
                user=parameters.get(USER_PARAM, ""),
                application=parameters.get(APPLICATION_PARAM, ""),
                scope=parameters.get(SCOPE_FIELD, ""),
                response_type=parameters.get(RESPONSE_TYPE_FIELD, "code"),
                resource=parameters.get(RESOURCE_FIELD, ""),
            )
        except Invalid as refused:
            self.problems.update(refused.fields)
            return None

    def _user_options(self, parameters: Mapping[str, str]) -> PreviewOptions:
        """The selected user, then those that match the search."""
        context, query = request_context(self.request), parameters.get(USER_QUERY_FIELD, "")
        named = (find_user(context, self.principal, text) for text in (parameters.get(USER_PARAM, ""), query))
        offered = {
            subject.user.id: (subject.user.display_name, subject.login_name) for subject in named if subject is not None
        }
        kind = None if self.has_permission("service_user.read") else UserKind.HUMAN
        first = PageRequest(limit=_MAX_OPTIONS, query=query)
        page: ResultPage[Any] = self.services.storage.users.page(self.context.entity.id, kind, first)
        offered |= {item.id: (item.display_name, item.user_name) for item in self.filter_page(page)}
        return _build_options(offered, searched=bool(query) or page.next_cursor is not None)

    def _application_options(self, parameters: Mapping[str, str]) -> PreviewOptions:
        """The selected application, then those that match the search."""
        context, query = request_context(self.request), parameters.get(APPLICATION_QUERY_FIELD, "")
        named = (
            find_application(context, self.principal, text) for text in (parameters.get(APPLICATION_PARAM, ""), query)
        )
        offered = {client.id: (client.application.name, client.project.name) for client in named if client is not None}
        found = (
            list(islice(self._search_applications(query), _MAX_OPTIONS + 1))
            if self.has_permission("application.read")
            else []
        )
        offered |= dict(found[:_MAX_OPTIONS])
        return _build_options(offered, searched=bool(query) or len(found) > _MAX_OPTIONS)

    def _search_applications(self, query: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """Client id with name and project; matches names of applications and of projects."""
        storage = self.services.storage
        for project in iterate_rows(
            lambda page_request: self.filter_page(storage.projects.page(self.context.entity.id, page_request))
        ):
            page_request = FIRST_PAGE if matches_query(query, project) else PageRequest(query=query)
            for application in storage.applications.page(project.id, page_request):
                yield application.id, (application.name, project.name)


def _build_options(offered: Mapping[str, tuple[str, str]], *, searched: bool) -> PreviewOptions:
    """An empty option, then these."""
    texts = [(value, f"{name} ({note})") for value, (name, note) in offered.items()]
    return PreviewOptions([("", "–"), *texts], searched)


ROUTES = (
    ConsoleRoute(
        "/organizations/{organization}/token-preview",
        TokenPreviewPage,
        "user.read",
        route_contexts.organization_context,
    ),
)

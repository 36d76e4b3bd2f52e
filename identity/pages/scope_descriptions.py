"""Descriptions of scopes for users, on sign-in pages and in the list of connected applications."""

from collections.abc import Collection, Mapping

from markupsafe import Markup

from identity.domain.applications import ApplicationClient
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.pages.translation import Translator
from identity.provider.scope import GrantedScopes, Scope
from identity.services.container import Services

#: Scopes outside the list: the first only identifies the user, the second has its own sentence.
_NO_ITEM_SCOPES = (Scope.OPENID, Scope.OFFLINE_ACCESS)

#: In display order.
_DESCRIPTIONS = {
    "profile": gettext_lazy("your name and profile"),
    "email": gettext_lazy("your email address"),
    "phone": gettext_lazy("your phone number"),
    "address": gettext_lazy("your postal address"),
}
_ORGANIZATION = ":user:resourceowner"
_ATTRIBUTES = ":user:metadata"
#: These choose who may sign in, or a project: the first two disclose nothing, the last has its own description.
_UNDESCRIBED_SCOPES = (":org:id:", ":org:domain:primary:", ":org:project:id:")


def _requests_roles(scope_name: str, namespaces: Collection[str]) -> bool:
    return _is_scope_in_namespace(scope_name, namespaces, ":org:projects:roles", ":org:project:role:")


def _is_scope_in_namespace(scope_name: str, namespaces: Collection[str], *rests: str) -> bool:
    return scope_name.startswith(tuple(f"{namespace}{rest}" for namespace in namespaces for rest in rests))


class ScopeDescriptions:
    """What scopes disclose, in words."""

    @staticmethod
    def describe(
        scope: Collection[str], project: str, translator: Translator, namespaces: Collection[str]
    ) -> list[Markup]:
        """What the scopes disclose about the user to an application of this project; if empty, only who they are."""
        found = [translator.gettext(text) for scope_name, text in _DESCRIPTIONS.items() if scope_name in scope]
        if any(_is_scope_in_namespace(scope_name, namespaces, _ORGANIZATION) for scope_name in scope):
            found.append(translator.gettext("your organization"))
        if any(_is_scope_in_namespace(scope_name, namespaces, _ATTRIBUTES) for scope_name in scope):
            found.append(translator.gettext("further details that your organization keeps about you"))
        if any(_requests_roles(scope_name, namespaces) for scope_name in scope):
            found.append(translator.gettext("your roles in {project}", project=project))
        return found

    @staticmethod
    def covers(scope: str, namespaces: Collection[str]) -> bool:
        """True if ``describe`` describes the scope, or it discloses nothing."""
        return (
            scope in _DESCRIPTIONS
            or _requests_roles(scope, namespaces)
            or _is_scope_in_namespace(scope, namespaces, _ORGANIZATION, _ATTRIBUTES, *_UNDESCRIBED_SCOPES)
        )

    @staticmethod
    def requested_access(
        client: ApplicationClient,
        granted: GrantedScopes,
        services: Services,
        translator: Translator,
        namespaces: Collection[str],
    ) -> Mapping[str, object]:
        """Variables of the template ``requested_access.html``: who requests access, and to what. The organization is
        empty for a dynamic client: none vouches for it."""
        is_own, organization = services.projects.is_own_project, client.responsible_organization
        undescribed_scopes = [
            value
            for value in granted.values
            if value not in _NO_ITEM_SCOPES and not ScopeDescriptions.covers(value, namespaces)
        ]
        return {
            "scope": granted.scope_string,
            "known_host": client.application.known_host,
            "organization": client.organization_name,
            "domain": "" if organization is None else _verified_domain(organization, services),
            "received": ScopeDescriptions.describe(granted.values, client.project.name, translator, namespaces),
            "manages": any(is_own(item) for item in granted.audience),
            "projects": _other_project_names(client, granted, services),
            "others": [Markup("<code>{}</code>").format(scope) for scope in undescribed_scopes],
            "stays_connected": Scope.OFFLINE_ACCESS in granted,
        }


def _verified_domain(organization: Organization, services: Services) -> str:
    with services.read_session() as storage:
        domain = storage.organizations.find_domain(organization.id, organization.primary_domain)
    return domain.name if domain is not None and domain.is_verified else ""


def _other_project_names(client: ApplicationClient, granted: GrantedScopes, services: Services) -> list[Markup]:
    with services.read_session() as storage:
        # Read one by one, so that a damaged project fails the page instead of missing from the list.
        found = [storage.projects.find(item) for item in sorted({*granted.audience} - {client.project.id})]
    named = [item for item in found if item is not None and not services.projects.is_own_project(item.id)]
    return [Markup("<strong>{}</strong>").format(item.name) for item in named]

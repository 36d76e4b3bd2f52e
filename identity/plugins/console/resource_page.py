"""Base classes of pages about one resource: for each kind its path, name and parent pages."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, ClassVar, Generic, Self, TypeVar

from pyramid.request import Request

from identity.annotations import annotated_names
from identity.api.plugins import cached_property
from identity.domain.applications import Application
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.http import route_contexts
from identity.http.route_contexts import RouteContext
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.routes import ConsoleRoute

ORGANIZATIONS_PATH = f"{CONSOLE_PATH}/organizations"
ORGANIZATIONS_BREADCRUMBS: Breadcrumbs = ((gettext_lazy("Organizations"), ORGANIZATIONS_PATH),)

EntityT = TypeVar("EntityT")


class ResourcePage(ConsolePage, Generic[EntityT]):
    """A page about one entity. Subclasses for each kind declare the path and its variables."""

    path: ClassVar[str]
    context_factory: ClassVar[Callable[[Request], RouteContext]]
    #: The prefix of permissions, and the service.
    permission_subject: ClassVar[str]
    service_name: ClassVar[str]
    #: The path below the entity's, and the last part of the required permission.
    path_suffix: ClassVar[str] = ""
    permission_verb: ClassVar[str] = "read"

    @classmethod
    def for_resource(cls, kind: "type[ResourcePage[Any]]", /, **attributes: Any) -> type[Self]:
        """The page for a kind of resource with these class attributes; functions become properties. Raises TypeError
        for an unknown attribute.
        """
        unknown = attributes.keys() - {*dir(kind), *annotated_names(kind), *dir(cls), *annotated_names(cls)}
        if unknown:
            raise TypeError(f"{cls.__name__} says nothing of {', '.join(sorted(unknown))}")
        members = {
            name: property(item) if isinstance(item, FunctionType) else item for name, item in attributes.items()
        }
        page_class: type[Self] = type(cls.__name__, (kind, cls), {"__module__": kind.__module__, **members})
        return page_class

    @classmethod
    def permission(cls) -> str:
        return f"{cls.permission_subject}.{cls.permission_verb}"

    #: Appended to the entity's path for the list or section to return to.
    back_path_suffix: ClassVar[str] = ""

    @property
    def entity(self) -> EntityT:
        entity: EntityT = self.context.entity
        return entity

    @property
    def entity_name(self) -> str:
        """Users are named by their display name."""
        value = self.context.entity
        return str(value.display_name if isinstance(value, HumanUser | ServiceUser) else value.name)

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"name": self.entity_name}

    @property
    def resource_path(self) -> str:
        return f"{CONSOLE_PATH}{self.path.partition('{')[0]}{self.context.entity.id}"

    @property
    def parent_breadcrumbs(self) -> Breadcrumbs:
        return self.list_breadcrumbs

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*self.parent_breadcrumbs, (self.entity_name, self.resource_path)]

    @property
    def cancel_path(self) -> str:
        return f"{self.resource_path}{self.back_path_suffix}"

    @property
    def list_path(self) -> str:
        return self.cancel_path

    @property
    def service(self) -> Any:
        return getattr(self.services, self.service_name)


class OrganizationResourcePage(ResourcePage[Organization]):
    section = ""
    path, context_factory = "/organizations/{organization}", route_contexts.organization_context
    permission_subject, service_name = "organization", "organizations"

    @property
    def parent_breadcrumbs(self) -> Breadcrumbs:
        return ORGANIZATIONS_BREADCRUMBS


class UserResourcePage(ResourcePage[HumanUser]):
    section, section_label = "users", gettext_lazy("Users")
    path, context_factory = "/users/{user}", route_contexts.user_context
    permission_subject, service_name = "user", "users"

    @property
    def person(self) -> Subject:
        """The user with their organization."""
        if self.organization is None:
            raise ValueError("a user belongs to an organization")
        return Subject(self.entity, self.organization)


class ServiceUserResourcePage(ResourcePage[ServiceUser]):
    section, section_label = "service-users", gettext_lazy("Service users")
    path, context_factory = "/service-users/{service_user}", route_contexts.service_user_context
    permission_subject, service_name = "service_user", "service_users"


class UpstreamProviderResourcePage(ResourcePage[UpstreamProvider]):
    section, section_label = "upstream-providers", gettext_lazy("Identity providers")
    path, context_factory = "/upstream-providers/{upstream_provider}", route_contexts.upstream_provider_context
    permission_subject, service_name = "upstream_provider", "upstream_providers"


class ProjectResourcePage(ResourcePage[Project]):
    section, section_label = "projects", gettext_lazy("Projects")
    path, context_factory = "/projects/{project}", route_contexts.project_context
    permission_subject, service_name = "project", "projects"


class ApplicationResourcePage(ResourcePage[Application]):
    section = "projects"
    path, context_factory = "/applications/{application}", route_contexts.application_context
    permission_subject, service_name = "application", "applications"

    @cached_property
    def project(self) -> Project:
        return self.services.projects.get(self.entity.project_id)

    @property
    def parent_breadcrumbs(self) -> Breadcrumbs:
        return project_breadcrumbs(self, self.project)


class ProjectGrantResourcePage(ResourcePage[ProjectGrant]):
    """For managers of both organizations, the granting and the grantee."""

    path, context_factory = "/project-grants/{project_grant}", route_contexts.project_grant_context
    permission_subject, service_name = "project_grant", "project_grants"

    @property
    def section(self) -> str:
        return "granted-projects" if is_holder_page(self, self.entity) else "projects"

    @property
    def project(self) -> Project:
        return self.services.projects.get(self.entity.project_id)

    @property
    def holder_organization(self) -> Organization:
        return self.services.organizations.get(self.entity.organization_id)

    @property
    def entity_name(self) -> str:
        return project_grant_name(self.project, self.holder_organization)

    @property
    def message_values(self) -> Mapping[str, object]:
        return {
            "project": self.project.name,
            "organization": self.holder_organization.name,
            "name": self.holder_organization.name,
        }

    @property
    def parent_breadcrumbs(self) -> Breadcrumbs:
        """The list in which the caller finds the grant; empty for managers of the grant alone."""
        access = self.services.access_control
        if is_holder_page(self, self.entity):
            if access.is_permitted(
                self.principal, "project_grant.read", Resource.of_organization(self.entity.organization_id)
            ):
                return [(gettext_lazy("Granted projects"), f"{self.base_path}/granted-projects")]
        elif self.has_permission("project.read"):
            grants = f"{CONSOLE_PATH}/projects/{self.entity.project_id}/grants"
            return [*project_breadcrumbs(self, self.project), (gettext_lazy("Project grants"), grants)]
        return []


def project_grant_path(grant: ProjectGrant) -> str:
    return f"{CONSOLE_PATH}/project-grants/{grant.id}"


def project_grant_name(project: Project, holder: Organization) -> str:
    return gettext_lazy("{project} for {organization}", project=project.name, organization=holder.name)


def is_holder_page(page: ConsolePage, grant: ProjectGrant) -> bool:
    """True if the page is shown to the grantee, not to the granting organization."""
    return page.organization is not None and page.organization.id == grant.organization_id


def project_breadcrumbs(page: ConsolePage, project: Project) -> Breadcrumbs:
    return [
        (gettext_lazy("Projects"), f"{page.base_path}/projects"),
        (project.name, f"{CONSOLE_PATH}/projects/{project.id}"),
    ]


def resource_routes(*pages: type[ResourcePage[Any]]) -> tuple[ConsoleRoute, ...]:
    return tuple(
        ConsoleRoute(f"{page.path}{page.path_suffix}", page, page.permission(), page.context_factory) for page in pages
    )

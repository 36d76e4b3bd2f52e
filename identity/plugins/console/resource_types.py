"""ResourceType: paths, permissions and breadcrumbs of pages about one kind of entity. ResourcePage is their base."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pyramid.request import Request

from identity.api.plugins import cached_property
from identity.domain.applications import Application
from identity.domain.attributes import AttributeDefinition
from identity.domain.directories import OrganizationDirectory
from identity.domain.groups import Group
from identity.domain.instance import Instance
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, ServiceUser
from identity.domain.webhooks import Webhook
from identity.http import route_contexts
from identity.http.route_contexts import RouteContext
from identity.pages.page import PageFactory
from identity.plugins.console.console_page import (
    CONSOLE_PATH,
    DIRECTORIES_SECTION,
    Breadcrumbs,
    ConsolePage,
    path_value,
)
from identity.plugins.console.routes import ConsoleRoute

ORGANIZATIONS_PATH = f"{CONSOLE_PATH}/organizations"
ORGANIZATIONS_BREADCRUMBS: Breadcrumbs = ((_("Organizations"), ORGANIZATIONS_PATH),)

EntityT = TypeVar("EntityT")
ChildT = TypeVar("ChildT")


def display_name(page: ConsolePage, entity: Any) -> str:
    """The display name of users, the name of other entities."""
    return str(entity.display_name if isinstance(entity, HumanUser | ServiceUser) else entity.name)


@dataclass(frozen=True, kw_only=True)
class ResourceType(Generic[EntityT]):
    """``path`` is relative to /console and ends with the entity's id; ``context`` loads what the path names.

    ``section`` is the navigation link that is current, ``label`` that of its list in breadcrumbs. ``parents`` are the
    pages above the entity's own, by default that list; ``has_page`` is false for entities without a page of their own.
    ``find`` and ``find_path`` load the entity and make its path if more than one id names it.
    """

    model: type[EntityT]
    path: str
    context: Callable[[Request], RouteContext]
    permission_prefix: str
    section: str | Callable[[ConsolePage, EntityT], str] = ""
    is_instance_page: Callable[[ConsolePage], bool] = lambda page: False
    label: str = ""
    name: Callable[[ConsolePage, EntityT], str] = display_name
    message_values: Callable[[ConsolePage, EntityT], Mapping[str, object]] | None = None
    parents: Callable[[ConsolePage, EntityT], Breadcrumbs] | None = None
    has_page: bool = True
    find: Callable[[ConsolePage], EntityT] | None = None
    find_path: Callable[[ConsolePage, EntityT], str] | None = None

    def path_of(self, entity: Any) -> str:
        """The path of the page of an entity that its id names."""
        value = entity.path_id if isinstance(entity, Application) else entity.id
        return f"{CONSOLE_PATH}{self.path.partition('{')[0]}{quote(value)}"

    def own_path(self, page: ConsolePage, entity: EntityT) -> str:
        return self.path_of(entity) if self.find_path is None else self.find_path(page, entity)

    def find_entity(self, page: ConsolePage) -> EntityT:
        """The entity that the URL names. Raises NotFound."""
        found: EntityT = page.context.entity if self.find is None else self.find(page)
        return found

    def section_of(self, page: ConsolePage, entity: EntityT) -> str:
        return self.section if isinstance(self.section, str) else self.section(page, entity)

    def parents_of(self, page: ConsolePage, entity: EntityT) -> Breadcrumbs:
        if self.parents is not None:
            return self.parents(page, entity)
        return [(self.label, f"{page.base_path}/{self.section_of(page, entity)}")]

    def breadcrumbs(self, page: ConsolePage, entity: EntityT) -> Breadcrumbs:
        """The pages above those about the entity; its own page is the last."""
        last = [(self.name(page, entity), self.own_path(page, entity))] if self.has_page else []
        return [*self.parents_of(page, entity), *last]

    def child(
        self,
        path: str,
        model: type[ChildT],
        *,
        find: Callable[[ConsolePage], ChildT],
        message_values: Callable[[ConsolePage, ChildT], Mapping[str, object]],
        permission_prefix: str = "",
    ) -> "ResourceType[ChildT]":
        """The type of an entity below this one's, without a page of its own: its pages return to this one's."""
        return ResourceType(
            model=model,
            path=f"{self.path}{path}",
            context=self.context,
            permission_prefix=permission_prefix or self.permission_prefix,
            section=lambda page, child: self.section_of(page, page.entity_of(self.model)),
            message_values=message_values,
            parents=lambda page, child: self.breadcrumbs(page, page.entity_of(self.model)),
            has_page=False,
            find=find,
        )

    def route(self, path: str, page: PageFactory, permission: str) -> ConsoleRoute:
        """The route of a page below the entity's; see ``permission``."""
        return ConsoleRoute(f"{self.path}{path}", page, self.permission(permission), self.context)

    def page_route(self, path: str, page: "type[ResourcePage[EntityT]]", permission: str) -> ConsoleRoute:
        """The same for a page class that needs nothing else."""
        return self.route(path, partial(page, resource_type=self), permission)

    def permission(self, name: str) -> str:
        """The whole name of a permission; "read", "write" and "delete" get the prefix of this type."""
        return f"{self.permission_prefix}.{name}" if name in ("read", "write", "delete") else name


#: Of whichever entity.
AnyResourceType = ResourceType[Any]


class ResourcePage(ConsolePage, Generic[EntityT]):
    """A page about one entity."""

    #: Title, and path below the entity's, of the list to which the page belongs.
    list_breadcrumb: tuple[str, str] | None = None
    #: Appended to the entity's path for the list or section to return to.
    back_path_suffix: str = ""

    def __init__(self, context: RouteContext, request: Request, *, resource_type: ResourceType[EntityT]) -> None:
        super().__init__(context, request)
        self.resource_type = resource_type

    @cached_property
    def entity(self) -> EntityT:
        """Raises NotFound."""
        find = self.resource_type.find
        return self.entity_of(self.resource_type.model) if find is None else find(self)

    @property
    def entity_name(self) -> str:
        return self.resource_type.name(self, self.entity)

    @cached_property
    def section(self) -> str:
        return self.resource_type.section_of(self, self.entity)

    @property
    def is_instance_page(self) -> bool:
        return self.resource_type.is_instance_page(self)

    @cached_property
    def message_values(self) -> Mapping[str, object]:
        values = self.resource_type.message_values
        return {"name": self.entity_name} if values is None else values(self, self.entity)

    @property
    def resource_path(self) -> str:
        return self.resource_type.own_path(self, self.entity)

    @cached_property
    def parent_breadcrumbs(self) -> Breadcrumbs:
        return self.resource_type.parents_of(self, self.entity)

    @cached_property
    def breadcrumbs(self) -> Breadcrumbs:
        trail = self.resource_type.breadcrumbs(self, self.entity)
        if self.list_breadcrumb is None:
            return trail
        title, path = self.list_breadcrumb
        return [*trail, (title, f"{self.resource_path}{path}")]

    @property
    def cancel_path(self) -> str:
        return f"{self.breadcrumbs[-1][1]}{self.back_path_suffix}"


class EntityTitledPage(ResourcePage[EntityT]):
    """A page with a title of its own; the entity's name completes it, and stands below the heading."""

    @property
    def title_suffix(self) -> str:
        return self.entity_name

    @property
    def lead(self) -> str:
        return self.entity_name


# --- types that several files need ------------------------------------------------------------------------------------


def project_breadcrumbs(page: ConsolePage, project: Project) -> Breadcrumbs:
    return PROJECT.breadcrumbs(page, project)


def _project_of(page: ConsolePage, entity: Application | ProjectGrant) -> Project:
    return page.services.projects.get(entity.project_id)


def holder_organization(page: ConsolePage, grant: ProjectGrant) -> Organization:
    """The organization to which the project is granted."""
    return page.services.organizations.get(grant.organization_id)


def is_holder_page(page: ConsolePage, grant: ProjectGrant) -> bool:
    """True if the page is shown to the grantee, not to the granting organization."""
    return page.organization is not None and page.organization.id == grant.organization_id


def project_grant_name(project: Project, holder: Organization) -> str:
    return _("{project} for {organization}", project=project.name, organization=holder.name)


def _project_grant_values(page: ConsolePage, grant: ProjectGrant) -> Mapping[str, object]:
    holder = holder_organization(page, grant).name
    return {"project": _project_of(page, grant).name, "organization": holder, "name": holder}


def _project_grant_parents(page: ConsolePage, grant: ProjectGrant) -> Breadcrumbs:
    """The list in which the caller finds the grant; empty for managers of the grant alone."""
    if is_holder_page(page, grant):
        resource = Resource.of_organization(grant.organization_id)
        if page.services.access_control.is_permitted(page.principal, "project_grant.read", resource):
            return [(_("Granted projects"), f"{page.base_path}/granted-projects")]
    elif page.has_permission("project.read"):
        project = _project_of(page, grant)
        grants = (_("Project grants"), f"{PROJECT.path_of(project)}/grants")
        return [*project_breadcrumbs(page, project), grants]
    return []


#: For lists of the instance; their paths are complete.
INSTANCE = ResourceType(
    model=Instance,
    path="",
    context=route_contexts.instance_context,
    permission_prefix="instance",
    is_instance_page=lambda page: True,
)
ORGANIZATION = ResourceType(
    model=Organization,
    path="/organizations/{organization}",
    context=route_contexts.organization_context,
    permission_prefix="organization",
    parents=lambda page, organization: ORGANIZATIONS_BREADCRUMBS,
)
USER = ResourceType(
    model=HumanUser,
    path="/users/{user}",
    context=route_contexts.user_context,
    permission_prefix="user",
    section="users",
    label=_("Users"),
)
SERVICE_USER = ResourceType(
    model=ServiceUser,
    path="/service-users/{service_user}",
    context=route_contexts.service_user_context,
    permission_prefix="service_user",
    section="service-users",
    label=_("Service users"),
)
GROUP = ResourceType(
    model=Group,
    path="/groups/{group}",
    context=route_contexts.group_context,
    permission_prefix="group",
    section="groups",
    label=_("Groups"),
)
ATTRIBUTE = ResourceType(
    model=AttributeDefinition,
    path="/attributes/{attribute}",
    context=route_contexts.attribute_context,
    permission_prefix="attribute",
    section="attributes",
    label=_("Attributes"),
    name=lambda page, attribute: attribute.label,
    has_page=False,
)
UPSTREAM_PROVIDER = ResourceType(
    model=UpstreamProvider,
    path="/upstream-providers/{upstream_provider}",
    context=route_contexts.upstream_provider_context,
    permission_prefix="upstream_provider",
    section="upstream-providers",
    label=_("Identity providers"),
)
PROJECT = ResourceType(
    model=Project,
    path="/projects/{project}",
    context=route_contexts.project_context,
    permission_prefix="project",
    section="projects",
    label=_("Projects"),
)
APPLICATION = ResourceType(
    model=Application,
    path="/applications/{application}",
    context=route_contexts.application_context,
    permission_prefix="application",
    section="projects",
    parents=lambda page, application: project_breadcrumbs(page, _project_of(page, application)),
)
DIRECTORY = ResourceType(
    model=OrganizationDirectory,
    path="/organizations/{organization}/directories/{directory}",
    context=route_contexts.organization_context,
    permission_prefix="upstream_provider",
    section=DIRECTORIES_SECTION,
    label=_("Directories"),
    find=lambda page: page.services.directories.get(page.entity_of(Organization).id, path_value(page, "directory")),
    find_path=lambda page, item: f"{ORGANIZATIONS_PATH}/{item.organization_id}/{DIRECTORIES_SECTION}/{item.name}",
)
#: Of an organization, or of the instance.
WEBHOOK = ResourceType(
    model=Webhook,
    path="/webhooks/{webhook}",
    context=route_contexts.webhook_context,
    permission_prefix="webhook",
    section=lambda page, webhook: "webhooks" if webhook.organization_id else "instance/webhooks",
    is_instance_page=lambda page: page.entity_of(Webhook).organization_id is None,
    parents=lambda page, webhook: [
        (
            (_("Webhooks"), f"{page.base_path}/webhooks")
            if webhook.organization_id
            else (_("Webhooks of the instance"), f"{CONSOLE_PATH}/instance/webhooks")
        )
    ],
)
#: For managers of both organizations, the granting and the grantee.
PROJECT_GRANT = ResourceType(
    model=ProjectGrant,
    path="/project-grants/{project_grant}",
    context=route_contexts.project_grant_context,
    permission_prefix="project_grant",
    section=lambda page, grant: "granted-projects" if is_holder_page(page, grant) else "projects",
    name=lambda page, grant: project_grant_name(_project_of(page, grant), holder_organization(page, grant)),
    message_values=_project_grant_values,
    parents=_project_grant_parents,
)

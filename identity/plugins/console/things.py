"""OfThing: pages about one thing, told once for each kind: where its pages lie, what it is called, what is above it."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, ClassVar, Generic, Self, TypeVar

from pyramid.request import Request

from identity.annotations import annotated
from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.domain.words import say
from identity.http import targets
from identity.http.targets import Target
from identity.lazily import lazily
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Trail

#: The address of the list of organizations.
ORGANIZATIONS = f"{CONSOLE}/organizations"
BELOW_ORGANIZATIONS: Trail = ((say("Organizations"), ORGANIZATIONS),)

Kind = TypeVar("Kind")


class OfThing(ConsolePage, Generic[Kind]):
    """A page about one thing. Each kind says where such pages lie and what their addresses name."""

    path: ClassVar[str]
    target: ClassVar[Callable[[Request], Target]]
    #: What permissions call it, and the use cases that work on it.
    subject_of: ClassVar[str]
    used_by: ClassVar[str]
    #: Where the page lies below that of the thing, and the last part of the permission that it takes.
    at: ClassVar[str] = ""
    action: ClassVar[str] = "read"

    @classmethod
    def of(cls, kind: "type[OfThing[Any]]", /, **said: Any) -> type[Self]:
        """Such a page about things of a kind, with what is said of it; a function of the page is asked when it is
        drawn. Raises TypeError for what such pages say nothing of."""
        unknown = said.keys() - {*dir(kind), *annotated(kind), *dir(cls), *annotated(cls)}
        if unknown:
            raise TypeError(f"{cls.__name__} says nothing of {', '.join(sorted(unknown))}")
        members = {name: property(one) if isinstance(one, FunctionType) else one for name, one in said.items()}
        made: type[Self] = type(cls.__name__, (kind, cls), {"__module__": kind.__module__, **members})
        return made

    @classmethod
    def permission(cls) -> str:
        """The permission that the page takes."""
        return f"{cls.subject_of}.{cls.action}"

    #: What follows the address of its page in that of a list, or of the section to get back to.
    below: ClassVar[str] = ""

    @property
    def thing(self) -> Kind:
        """Which one."""
        thing: Kind = self.context.value
        return thing

    @property
    def name(self) -> str:
        """What it is called; users by the name that is shown."""
        value = self.context.value
        return str(value.display_name if isinstance(value, HumanUser | ServiceUser) else value.name)

    @property
    def names(self) -> Mapping[str, object]:
        return {"name": self.name}

    @property
    def href(self) -> str:
        """The address of its page."""
        return f"{CONSOLE}{self.path.partition('{')[0]}{self.context.value.id}"

    @property
    def above(self) -> Trail:
        """The pages above its own."""
        return self.list_above

    @property
    def trail(self) -> Trail:
        return [*self.above, (self.name, self.href)]

    @property
    def back(self) -> str:
        """The address of that list or section; of the page itself, where nothing is below."""
        return f"{self.href}{self.below}"

    @property
    def list_href(self) -> str:
        """The same."""
        return self.back

    @property
    def use_case(self) -> Any:
        """What works on it."""
        return getattr(self.services, self.used_by)


class OfOrganization(OfThing[Organization]):
    """A page about one organization, which its navigation calls just that."""

    section = ""
    path, target = "/organizations/{organization}", targets.organization
    subject_of, used_by = "organization", "organizations"

    @property
    def above(self) -> Trail:
        return BELOW_ORGANIZATIONS


class OfUser(OfThing[HumanUser]):
    """A page about one person."""

    section, under = "users", say("Users")
    path, target = "/users/{user}", targets.user
    subject_of, used_by = "user", "users"

    @property
    def person(self) -> Subject:
        """The same, with the organization."""
        if self.organization is None:
            raise ValueError("a user belongs to an organization")
        return Subject(self.thing, self.organization)


class OfServiceUser(OfThing[ServiceUser]):
    """A page about one service user."""

    section, under = "service-users", say("Service users")
    path, target = "/service-users/{service_user}", targets.service_user
    subject_of, used_by = "service_user", "service_users"


class OfUpstreamProvider(OfThing[UpstreamProvider]):
    """A page about one identity provider."""

    section, under = "upstream-providers", say("Identity providers")
    path, target = "/upstream-providers/{upstream_provider}", targets.upstream_provider
    subject_of, used_by = "upstream_provider", "upstream_providers"


class OfProject(OfThing[Project]):
    """A page about one project, or about something that belongs to it."""

    section, under = "projects", say("Projects")
    path, target = "/projects/{project}", targets.project
    subject_of, used_by = "project", "projects"


class OfApplication(OfThing[Application]):
    """A page about one application."""

    section = "projects"
    path, target = "/applications/{application}", targets.application
    subject_of, used_by = "application", "applications"

    @lazily
    def project(self) -> Project:
        """Whose."""
        return self.services.projects.get(self.thing.project_id)

    @property
    def above(self) -> Trail:
        return project_trail(self, self.project)


class OfProjectGrant(OfThing[ProjectGrant]):
    """A page about one project grant, for those who gave it and those who hold it."""

    path, target = "/project-grants/{project_grant}", targets.project_grant
    subject_of, used_by = "project_grant", "project_grants"

    @property
    def section(self) -> str:  # type: ignore[override]
        return "granted-projects" if held_here(self, self.thing) else "projects"

    @property
    def project(self) -> Project:
        """Of which project."""
        return self.services.projects.get(self.thing.project_id)

    @property
    def holder(self) -> Organization:
        """Granted to which organization."""
        return self.services.organizations.get(self.thing.organization_id)

    @property
    def name(self) -> str:
        return grant_name(self.project, self.holder)

    @property
    def names(self) -> Mapping[str, object]:
        return {"project": self.project.name, "organization": self.holder.name, "name": self.holder.name}

    @property
    def above(self) -> Trail:
        """The list in which whoever looks finds it; nothing for those who manage the grant alone."""
        access = self.services.access
        if held_here(self, self.thing):
            if access.may(self.principal, "project_grant.read", organization_resource(self.thing.organization_id)):
                return [(say("Granted projects"), f"{self.root}/granted-projects")]
        elif self.may("project.read"):
            grants = f"{CONSOLE}/projects/{self.thing.project_id}/grants"
            return [*project_trail(self, self.project), (say("Project grants"), grants)]
        return []


def grant_href(grant: ProjectGrant) -> str:
    """The address of a project grant's page."""
    return f"{CONSOLE}/project-grants/{grant.id}"


def grant_name(project: Project, holder: Organization) -> str:
    """What a project grant is called."""
    return say("{project} for {organization}", project=project.name, organization=holder.name)


def held_here(page: ConsolePage, grant: ProjectGrant) -> bool:
    """True if the page is drawn for the organization that holds the grant, not for the one that gave it."""
    return page.organization is not None and page.organization.id == grant.organization_id


def project_trail(page: ConsolePage, project: Project) -> Trail:
    """List of projects and, below it, the project."""
    return [(say("Projects"), f"{page.root}/projects"), (project.name, f"{CONSOLE}/projects/{project.id}")]

"""Project grants: a project, with some of its roles, granted to another organization."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyramid.response import Response

from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.confirm_page import ConfirmPage, DeactivatePage, ReactivatePage
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Link
from identity.plugins.console.holdings import FEW
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.managers import managers_section
from identity.plugins.console.pages.organizations import seen_page
from identity.plugins.console.pages.user_grants import user_grants_section
from identity.plugins.console.places import Place
from identity.plugins.console.project_ways import grant_href, grant_name, grant_trail, held_here, project_trail
from identity.plugins.console.roles_form import ROLE, Candidate, RolesForm, SelectFirst, role_options
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import Page, PageRequest


@dataclass(frozen=True)
class Row:
    """A project grant as the lists of its project show it."""

    grant: ProjectGrant
    name: str
    href: str
    roles: tuple[str, ...]
    state: Badge


def project_grant_rows(page: ConsolePage, grants: Sequence[ProjectGrant]) -> list[Row]:
    """Project grants with the names of the organizations that hold them."""
    holders = page.services.storage.organizations.find_many({one.organization_id for one in grants})
    return [
        Row(
            grant=one,
            name=holders[one.organization_id].name,
            href=grant_href(one),
            roles=tuple(sorted(one.roles)),
            state=state_badge(one.active, page.words),
        )
        for one in grants
        if one.organization_id in holders
    ]


def project_grants_section(page: ConsolePage) -> Mapping[str, object]:
    """What ``project_grants_section`` of sections.html shows: the newest grants of the page's project."""
    project_id = page.resource.key.id
    found = page.listed(page.services.storage.project_grants.page(project_id, PageRequest(limit=FEW)))
    return {
        "rows": project_grant_rows(page, found.items),
        "more": found.next is not None,
        "href": f"{CONSOLE}/projects/{project_id}/grants",
        "may_read": page.may("project_grant.read"),
        "may_write": page.may("project_grant.write"),
    }


class OfProjectGrants(ConsolePage):
    """A page about the grants of one project."""

    section = "projects"

    @property
    def project(self) -> Project:
        """Which one."""
        project: Project = self.context.value
        return project

    @property
    def href(self) -> str:
        """The address of the list."""
        return f"{CONSOLE}/projects/{self.project.id}/grants"

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project."""
        return project_trail(self, self.project)


class ProjectGrantList(OfProjectGrants, ListPage):
    """One row an organization, newest first."""

    template = "console/project_grants.html"
    heading = say("Project grants")
    lead = say("Organizations that may give roles of the project to their own users.")
    columns = (say("Organization"), say("Roles"), say("State"), say("Since"))
    empty_title = say("No project grants yet")
    empty_text = say("Grant the project to another organization, so that its managers give the roles to their users.")

    def fetch(self, asked: PageRequest) -> Page[ProjectGrant]:
        """The grants of the project."""
        return self.listed(self.services.storage.project_grants.page(self.project.id, asked))

    def rows(self, found: Sequence[ProjectGrant]) -> Sequence[Row]:
        """With the names of the organizations."""
        return project_grant_rows(self, found)

    def new(self) -> Link | None:
        """For whoever may grant."""
        if not self.may("project_grant.write"):
            return None
        return self.link(say("New"), f"{self.href}/new", say("project grant"))


class NewProjectGrant(OfProjectGrants, SelectFirst):
    """Step 1: select an organization. Step 2: choose the roles that it may give."""

    parameter = "organization_id"
    select = say("Select an organization")
    select_another = say("Select another organization")
    needs_roles = False

    def second_title(self) -> str:
        """The heading of step 2."""
        return say("Choose roles for {name}", name=self.holder.name)

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project and its grants."""
        return [*super().trail(), (say("Project grants"), self.href)]

    def about(self) -> str:
        """The project."""
        return self.project.name

    @property
    def holder(self) -> Organization:
        """The organization of step 2. Raises NotFound."""
        found: Organization = self.services.organizations.get(self.selected)
        return found

    def facts(self) -> Sequence[tuple[str, str]]:
        """The organization."""
        return [(say("Organization"), self.holder.name), (say("Primary domain"), self.holder.primary_domain)]

    def search_hint(self) -> str:
        """What one searches by."""
        if self.services.access.seen_organizations(self.principal) is None:
            return say("Any part of its name or primary domain, or its whole id.")
        return say("Its whole primary domain or id; of organizations that you manage, any part of the name.")

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Other organizations: those one may know of by name, any by what only those who know it can type."""
        found = seen_page(self, asked)
        organizations = self.services.storage.organizations
        named = organizations.find_by_domain(asked.query.lower()) or organizations.find(asked.query)
        every = {one.id: one for one in (*([named] if named is not None else []), *found)}
        every.pop(self.project.organization_id, None)
        candidates = (
            Candidate(name=one.name, note=one.primary_domain, icon="organization", href=self.href_of(one.id))
            for one in every.values()
        )
        return Page(tuple(candidates), found.next)

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said if none fits."""
        if asked.query:
            return say("There is no such organization.")
        return say("Enter the primary domain of the organization, for example {example}.", example="acme.example")

    def options(self) -> Sequence[tuple[str, str, str]]:
        """All roles of the project."""
        return role_options(self, self.project.id)

    def hint(self) -> str:
        """What they are for."""
        return say("Managers of the organization can give these roles to their users, and no others.")

    def nothing_to_choose(self) -> str:
        """The organization gets access, and roles later."""
        return say("The project has no roles yet. Users of the organization can sign in to it all the same.")

    def label(self) -> str:
        """The button."""
        return say("Grant project")

    def back(self) -> str:
        """The list."""
        return self.href

    def submit(self, form: Form) -> Response:
        """Grant it."""
        values = {"organization_id": self.selected, "roles": self.chosen_roles(form)}
        command = self.decoded(AddProjectGrant, values)
        self.use_once(form)
        grant = self.services.project_grants.add(self.project.id, command, by=self.principal)
        return self.redirect(self.done(grant_href(grant)))


class OfProjectGrant(ConsolePage):
    """A page about one project grant, for those who gave it and those who hold it."""

    @property
    def section(self) -> str:  # type: ignore[override]
        """Among the own projects, or those that others have granted."""
        return "granted-projects" if held_here(self, self.grant) else "projects"

    @property
    def grant(self) -> ProjectGrant:
        """Which one."""
        grant: ProjectGrant = self.context.value
        return grant

    @property
    def project(self) -> Project:
        """Of which project."""
        project: Project = self.services.projects.get(self.grant.project_id)
        return project

    @property
    def holder(self) -> Organization:
        """Granted to which organization."""
        holder: Organization = self.services.organizations.get(self.grant.organization_id)
        return holder

    @property
    def href(self) -> str:
        """The address of its page."""
        return grant_href(self.grant)

    def trail(self) -> Sequence[tuple[str, str]]:
        """The project's grants, or the granted projects, and below them this one."""
        name = grant_name(self.project, self.holder)
        return [*grant_trail(self, self.project, self.grant), (name, self.href)]


class ProjectGrantPage(OfProjectGrant):
    """All about one: facts, who has roles by it, who manages it."""

    template = "console/project_grant.html"

    def title(self) -> str:
        """What is granted to whom."""
        return grant_name(self.project, self.holder)

    def trail(self) -> Sequence[tuple[str, str]]:
        """Without itself."""
        return super().trail()[:-1]

    def show(self) -> Mapping[str, object]:
        """With links to what whoever looks may read."""
        services, holder, project = self.services, self.holder, self.project
        access = services.access
        reads_holder = access.may(self.principal, "organization.read", organization_resource(holder.id))
        return {
            "grant": self.grant,
            "roles": sorted(self.grant.roles),
            "href": self.href,
            "badge": state_badge(self.grant.active, self.words),
            "project": project,
            "project_href": f"{CONSOLE}/projects/{project.id}" if self.may("project.read") else "",
            "owner": services.organizations.get(project.organization_id),
            "holder": holder,
            "holder_href": f"{CONSOLE}/organizations/{holder.id}" if reads_holder else "",
            "user_grants": user_grants_section(self),
            "managers": managers_section(self),
        }


class ChangeProjectGrantPage(OfProjectGrant, RolesForm):
    """Other roles."""

    needs_roles = False

    def title(self) -> str:
        """The heading."""
        return say("Choose roles for {name}", name=self.holder.name)

    def about(self) -> str:
        """The project."""
        return self.project.name

    def values(self) -> Mapping[str, str | tuple[str, ...]]:
        """What is granted, and in which version."""
        return {ROLE: tuple(sorted(self.grant.roles)), VERSION: str(self.grant.version)}

    def options(self) -> Sequence[tuple[str, str, str]]:
        """All roles of the project."""
        return role_options(self, self.grant.project_id)

    def hint(self) -> str:
        """What falls with a role."""
        return say("Users of the organization lose a role at once that is not granted any more.")

    def back(self) -> str:
        """The grant."""
        return self.href

    def submit(self, form: Form) -> Response:
        """Replace the roles."""
        command = self.decoded(ChangeProjectGrant, {"roles": self.chosen_roles(form)})
        version = version_of(form.one(VERSION))
        self.services.project_grants.change(self.grant.id, command, expected_version=version, by=self.principal)
        return self.redirect(self.done(self.href))


class _Confirm(OfProjectGrant, ConfirmPage):
    fields = ()

    def back(self) -> str:
        return self.href

    def who_loses(self) -> str:
        """How many users lose access."""
        n = self.services.effects.of_project_grant(self.grant.id).users
        return self.words.tn(
            "{n} user of {organization} loses access at once.",
            "{n} users of {organization} lose access at once.",
            n,
            organization=self.holder.name,
        )


class Deactivate(DeactivatePage, _Confirm):
    """Asks before access is interrupted."""

    def question(self) -> str:
        """What, to whom."""
        return say(
            "Deactivate the grant of {project} to {organization}?",
            project=self.project.name,
            organization=self.holder.name,
        )

    def effects(self) -> Sequence[str]:
        """Who loses access."""
        return [self.who_loses(), say("You can reactivate it later.")]

    def label(self) -> str:
        """The button."""
        return say("Deactivate project grant")

    def act(self) -> str:
        """Do it."""
        self.services.project_grants.deactivate(self.grant.id, by=self.principal)
        return self.href


class Reactivate(ReactivatePage, _Confirm):
    """Asks before it brings access again."""

    def question(self) -> str:
        """What, to whom."""
        return say(
            "Reactivate the grant of {project} to {organization}?",
            project=self.project.name,
            organization=self.holder.name,
        )

    def effects(self) -> Sequence[str]:
        """Who has access again."""
        return [say("Users of {organization} have their roles in the project again.", organization=self.holder.name)]

    def label(self) -> str:
        """The button."""
        return say("Reactivate project grant")

    def act(self) -> str:
        """Do it."""
        self.services.project_grants.reactivate(self.grant.id, by=self.principal)
        return self.href


class Withdraw(_Confirm):
    """Asks before the grant is gone."""

    def question(self) -> str:
        """What, from whom."""
        return say(
            "Withdraw the grant of {project} to {organization}?",
            project=self.project.name,
            organization=self.holder.name,
        )

    def effects(self) -> Sequence[str]:
        """Who loses access, and that nothing of it stays."""
        return [self.who_loses(), say("Its user grants and managers are removed for ever.")]

    def label(self) -> str:
        """The button."""
        return say("Withdraw project grant")

    def act(self) -> str:
        """Do it; then to the other grants of the project."""
        self.services.project_grants.remove(self.grant.id, by=self.principal)
        return f"{CONSOLE}/projects/{self.grant.project_id}/grants"


_LIST = "/projects/{project}/grants"
_ONE = "/project-grants/{project_grant}"

PLACES = (
    Place(_LIST, ProjectGrantList, "project_grant.read", targets.project),
    Place(f"{_LIST}/new", NewProjectGrant, "project_grant.write", targets.project),
    Place(_ONE, ProjectGrantPage, "project_grant.read", targets.project_grant),
    Place(f"{_ONE}/edit", ChangeProjectGrantPage, "project_grant.write", targets.project_grant),
    Place(f"{_ONE}/deactivate", Deactivate, "project_grant.write", targets.project_grant),
    Place(f"{_ONE}/reactivate", Reactivate, "project_grant.write", targets.project_grant),
    Place(f"{_ONE}/delete", Withdraw, "project_grant.delete", targets.project_grant),
)

"""Project grants: a project, with some of its roles, granted to another organization."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.effects import Removed
from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.projects import ProjectGrant
from identity.domain.words import say, say_many
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.badges import Named, state_badge
from identity.plugins.console.confirm_page import LATER, ConfirmThing, DeactivatePage, ReactivatePage
from identity.plugins.console.console_form import ChangePage
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Trail
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.pages.managers import ManagerList
from identity.plugins.console.pages.organizations import seen_page
from identity.plugins.console.pages.user_grants import USER_GRANTS
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.roles_form import Candidate, Choices, RolesForm, SelectFirst, role_options
from identity.plugins.console.sections import Facts, Note, Section
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import OfProject, OfProjectGrant, grant_href
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import Page, PageRequest


def holder_names(page: ConsolePage, grants: Sequence[ProjectGrant]) -> Mapping[str, str]:
    """The names of the organizations that hold the grants, by id."""
    holders = page.services.storage.organizations.find_many({one.organization_id for one in grants})
    return {key: one.name for key, one in holders.items()}


class ProjectGrantList(OfProject, ListPage):
    """One row an organization, newest first."""

    below = "/grants"

    title = say("Project grants")
    lead = say("Organizations that may give roles of the project to their own users.")
    columns = (say("Organization"), say("Roles"), say("State"), say("Since"))
    empty_title = say("No project grants yet")
    empty_text = say("Grant the project to another organization, so that its managers give the roles to their users.")
    reading, writing, what = "project_grant.read", "project_grant.write", say("project grant")
    id, all_of_them = "grants", say("All project grants …")

    def fetch(self, asked: PageRequest) -> Page[ProjectGrant]:
        return self.listed(self.services.storage.project_grants.page("project_id", self.thing.id, asked))

    def rows(self, found: Sequence[ProjectGrant]) -> Sequence[Cells]:
        names = holder_names(self, found)
        return [
            (
                self.ui.named(names[one.organization_id], grant_href(one)),
                self.roles(one.roles) or self.faint(say("None")),
                self.badge(state_badge(one.active, self.words)),
                self.ui.when(one.created_at),
            )
            for one in found
            if one.organization_id in names
        ]


class NewProjectGrant(OfProject, SelectFirst):
    """Step 1: select an organization. Step 2: choose the roles that it may give."""

    below = "/grants"

    parameter = "organization_id"
    select = say("Select an organization")
    select_another = say("Select another organization")
    needs_roles = False
    hint = say("Managers of the organization can give these roles to their users, and no others.")
    nothing_to_choose = say("The project has no roles yet. Users of the organization can sign in to it all the same.")
    label = say("Grant project")

    @property
    def trail(self) -> Trail:
        return [*super().trail, (ProjectGrantList.title, self.back)]

    @property
    def about(self) -> str:
        return self.thing.name

    @property
    def chosen_name(self) -> str:
        return self.holder.name

    @property
    def holder(self) -> Organization:
        """The organization of step 2. Raises NotFound."""
        return self.services.organizations.get(self.selected)

    @property
    def facts(self) -> Facts:
        return [(say("Organization"), self.holder.name), (say("Primary domain"), self.holder.primary_domain)]

    @property
    def search_hint(self) -> str:
        if self.services.access.seen_organizations(self.principal) is None:
            return say("Any part of its name or primary domain, or its whole id.")
        return say("Its whole primary domain or id; of organizations that you manage, any part of the name.")

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Other organizations: those one may know of by name, any by what only those who know it can type."""
        found = seen_page(self, asked)
        organizations = self.services.storage.organizations
        named = organizations.find_by_domain(asked.query.lower()) or organizations.find(asked.query)
        every = {one.id: one for one in (*([named] if named is not None else []), *found)}
        every.pop(self.thing.organization_id, None)
        candidates = (
            Candidate(one.name, one.primary_domain, "organization", self.href_of(one.id)) for one in every.values()
        )
        return Page(tuple(candidates), found.next)

    def nothing_found(self, asked: PageRequest) -> str:
        if asked.query:
            return say("There is no such organization.")
        return say("Enter the primary domain of the organization, for example {example}.", example="acme.example")

    def options(self) -> Choices:
        return role_options(self, self.thing.id)

    def submit(self, form: Form) -> Response:
        values = {"organization_id": self.selected, "roles": self.chosen_roles(form)}
        command = self.decoded(AddProjectGrant, values)
        self.use_once(form)
        grant = self.services.project_grants.add(self.thing.id, command, by=self.principal)
        return self.redirect(self.done(grant_href(grant)))


class ChangeProjectGrantPage(OfProjectGrant, RolesForm, ChangePage):
    """Other roles."""

    needs_roles = False
    title = say("Choose roles for {name}")
    hint = say("Users of the organization lose a role at once that is not granted any more.")
    command = ChangeProjectGrant

    @property
    def about(self) -> str:
        return self.project.name

    def options(self) -> Choices:
        return role_options(self, self.thing.project_id)


def _loss(page: Any) -> str:
    """How many users lose access."""
    return say_many(
        "{n} user of {organization} loses access at once.",
        "{n} users of {organization} lose access at once.",
        page.services.effects(Removed.PROJECT_GRANT, page.thing.id).users,
        organization=page.holder.name,
    )


class Withdraw(OfProjectGrant, ConfirmThing):
    """Asks before the grant is gone."""

    at, action = "/delete", "delete"
    way = (say("Withdraw"), say("Withdraw …"))
    title = say("Withdraw the grant of {project} to {organization}?")
    offer = say("Removes the grant, its user grants and its managers for ever.")
    label = say("Withdraw project grant")

    @property
    def effects(self) -> Sequence[str]:
        return [_loss(self), say("Its user grants and managers are removed for ever.")]

    def act(self) -> str:
        """Do it; then to the other grants of the project."""
        self.services.project_grants.remove(self.thing.id, by=self.principal)
        return f"{CONSOLE}/projects/{self.thing.project_id}/grants"


_DEEDS = (
    DeactivatePage.of(
        OfProjectGrant,
        title=say("Deactivate the grant of {project} to {organization}?"),
        offer=say("Its users lose access at once. You can reactivate it later."),
        effects=lambda page: [_loss(page), LATER],
        label=say("Deactivate project grant"),
    ),
    ReactivatePage.of(
        OfProjectGrant,
        title=say("Reactivate the grant of {project} to {organization}?"),
        offer=say("Its users have their roles again."),
        effects=(say("Users of {organization} have their roles in the project again."),),
        label=say("Reactivate project grant"),
    ),
    Withdraw,
)


_MANAGERS_LEAD = say(
    "Users who give the granted roles to users of the organization. Each of the two organizations sees its own."
)


class ProjectGrantPage(OfProjectGrant, ShowPage):
    """All about one: facts, who has roles by it, who manages it."""

    lead = (say("Project grant"),)
    deeds = _DEEDS
    deeds_title = say("Deactivate or withdraw")

    @property
    def facts(self) -> Facts:
        grant, holder, project = self.thing, self.holder, self.project
        reads_project, of_holder = self.may("project.read"), organization_resource(holder.id)
        reads_holder = self.services.access.may(self.principal, "organization.read", of_holder)
        consent = say(
            "Users of the organization are asked before they use the project's applications, until one of its managers"
            " has given a role here."
        )
        if grant.accepted:
            consent = say(
                "Users of the organization are not asked whether they want to use the project's applications."
            )
        return [
            (say("Project grant id"), self.ui.identifier(grant.id)),
            (say("Project"), self._linked(project.name, "projects", project.id, reads_project)),
            (say("Owner"), self.services.organizations.get(project.organization_id).name),
            (say("Granted to"), self._linked(holder.name, "organizations", holder.id, reads_holder)),
            (say("Roles"), self.roles(grant.roles) or say("None")),
            (say("Consent"), consent),
            (say("Managers of the other organization"), self._other_managers),
            (say("Since"), self.ui.when(grant.created_at, relative=True)),
        ]

    @property
    def _other_managers(self) -> str:
        """How many there are; they are known to their own organization."""
        others = self.services.managers.others(self.resource, by=self.principal)
        if not others.count and others.exact:
            return ""
        return str(others.count) if others.exact else say("More than {n}", n=others.count)

    def _linked(self, name: str, pages: str, identifier: str, reads: bool) -> Markup:
        return self.linked(Named(name, f"{CONSOLE}/{pages}/{identifier}" if reads else ""))

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        users = USER_GRANTS[OfProjectGrant].on(self)
        return [
            users.as_section(lead=say("Users of the organization with roles of the project.")),
            ManagerList.on(self).as_section(lead=_MANAGERS_LEAD),
        ]


_LIST = "/projects/{project}/grants"

PLACES = (
    Place(_LIST, ProjectGrantList, "project_grant.read", targets.project),
    Place(f"{_LIST}/new", NewProjectGrant, "project_grant.write", targets.project),
    *of_things(ProjectGrantPage, ChangeProjectGrantPage, *_DEEDS),
)

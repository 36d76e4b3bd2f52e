"""Projects: list, make, look at, change, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pyramid.response import Response

from identity.domain.applications import Application
from identity.domain.audiences import audience_scope
from identity.domain.projects import Project, ProjectRole
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import VERSION, Form
from identity.pages.signed_in_page import version_of
from identity.plugins.console.application_words import TYPES
from identity.plugins.console.badges import Badge, secrets_badge, state_badge
from identity.plugins.console.confirm_page import ConfirmPage, DeactivatePage, ReactivatePage
from identity.plugins.console.console_page import CONSOLE, ConsoleForm, ConsolePage, Link
from identity.plugins.console.effect_words import effect_words
from identity.plugins.console.holdings import FEW
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.managers import managers_section
from identity.plugins.console.pages.project_grants import project_grants_section
from identity.plugins.console.pages.user_grants import user_grants_section
from identity.plugins.console.places import Place
from identity.plugins.console.project_ways import project_trail
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.paging import Page, PageRequest

SECTION = "projects"

#: The value of a ticked checkbox.
YES = "yes"

_SWITCHES = ("assert_roles", "check_roles")


@dataclass(frozen=True)
class Row:
    """A project as the list shows it."""

    project: Project
    href: str
    applications: int
    roles: int
    state: Badge


class ProjectList(ListPage):
    """One row a project, by name; who manages single ones sees these alone."""

    template = "console/projects.html"
    section = SECTION
    heading = say("Projects")
    lead = say("What belongs together: applications, the roles that they know, and who has them.")
    columns = (say("Name"), say("Applications"), say("Roles"), say("State"), say("Created"))
    orders = (("name", say("Name")), ("created_at", say("Created")))
    empty_title = say("No projects yet")
    empty_text = say("A project holds applications, roles and who has them. Create one, then register an application.")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """Projects of the organization."""
        found: Page[Any] = self.services.projects.page(self.context.value.id, asked, by=self.principal)
        return found

    def rows(self, found: Sequence[Project]) -> Sequence[Row]:
        """With what they hold, in numbers."""
        counts = self.services.storage.projects.counts([one.id for one in found])
        return [
            Row(
                project=one,
                href=f"{CONSOLE}/projects/{one.id}",
                applications=counts[one.id][0],
                roles=counts[one.id][1],
                state=state_badge(one.active, self.words),
            )
            for one in found
            if one.id in counts
        ]

    def new(self) -> Link | None:
        """For whoever may make one."""
        if not self.may("project.create"):
            return None
        return self.link(say("New"), f"{self.root}/{SECTION}/new", say("project"))


class ProjectForm(ConsoleForm):
    """The fields of a project."""

    template = "console/project_form.html"
    section = SECTION
    fields = ("name", *_SWITCHES)
    missing = {"name": say("Enter a name.")}  # noqa: RUF012

    def show(self) -> Mapping[str, object]:
        """The button, and the way back."""
        return {"label": self.words.t(self.label()), "back": self.trail()[-1][1]}

    def label(self) -> str:
        """The button."""
        raise NotImplementedError

    def typed(self, form: Form) -> dict[str, object]:
        """The fields as commands take them."""
        return {"name": form.one("name"), **{name: bool(form.one(name)) for name in _SWITCHES}}


class NewProject(ProjectForm):
    """Makes one, and leads to its page."""

    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New project")

    def label(self) -> str:
        """The button."""
        return say("Create")

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return [(say("Projects"), f"{self.root}/{SECTION}")]

    def submit(self, form: Form) -> Response:
        """Make it."""
        command = self.decoded(CreateProject, self.typed(form))
        self.use_once(form)
        project = self.services.projects.create(self.context.value.id, command, by=self.principal)
        return self.redirect(self.done(f"{CONSOLE}/projects/{project.id}"))


class OfProject(ConsolePage):
    """A page about one project, or about something that belongs to it."""

    section = SECTION

    @property
    def project(self) -> Project:
        """Which one."""
        project: Project = self.context.value
        return project

    @property
    def project_href(self) -> str:
        """The address of its page."""
        return f"{CONSOLE}/projects/{self.project.id}"

    def trail(self) -> Sequence[tuple[str, str]]:
        """List and, below it, the project."""
        return project_trail(self, self.project)


@dataclass(frozen=True)
class ApplicationRow:
    """An application as lists show it; ``secret`` is None for one that has none by its nature."""

    application: Application
    href: str
    type: str
    secret: Badge | None
    state: Badge


def application_rows(page: ConsolePage, applications: Sequence[Application]) -> list[ApplicationRow]:
    """Applications with all their secrets in one badge."""
    words = page.words
    counts = page.services.storage.applications.secret_counts([one.id for one in applications])
    return [
        ApplicationRow(
            application=one,
            href=f"{CONSOLE}/applications/{one.id}",
            type=words.t(TYPES[one.type].label),
            secret=None if one.public else secrets_badge(counts.get(one.id, 0), words),
            state=state_badge(one.active, words),
        )
        for one in applications
    ]


def role_rows(roles: Sequence[ProjectRole], href: str) -> list[tuple[ProjectRole, str]]:
    """Roles with the addresses below which their pages lie; ``href`` is that of the list."""
    return [(one, f"{href}/{quote(one.key, safe='')}") for one in roles]


class ProjectPage(OfProject):
    """All about one: facts, applications, roles, who has them, who manages it."""

    template = "console/project.html"

    def title(self) -> str:
        """Its name."""
        return self.project.name

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return super().trail()[:1]

    def show(self) -> Mapping[str, object]:
        """A few of each."""
        project, storage = self.project, self.services.storage
        applications = storage.applications.page(project.id, PageRequest(limit=FEW))
        roles = storage.projects.roles(project.id)
        instance = self.services.instance()
        namespace = self.request.registry.identity.settings.urn_namespaces[0]
        return {
            "project": project,
            "href": self.project_href,
            "badge": state_badge(project.active, self.words),
            "audience_scope": audience_scope(project.id, namespace),
            "own": instance is not None and instance.project_id == project.id,
            "applications": application_rows(self, applications.items),
            "more_applications": applications.next is not None,
            "roles": role_rows(roles[:FEW], f"{self.project_href}/roles"),
            "more_roles": len(roles) > FEW,
            "project_grants": project_grants_section(self),
            "user_grants": user_grants_section(self),
            "managers": managers_section(self),
        }


class ChangeProjectPage(OfProject, ProjectForm):
    """Changes name and settings."""

    def title(self) -> str:
        """The heading."""
        return say("Change {name}", name=self.project.name)

    def label(self) -> str:
        """The button."""
        return say("Save")

    def values(self) -> Mapping[str, str]:
        """What is stored, and in which version."""
        project = self.project
        switches = {name: YES for name in _SWITCHES if getattr(project, name)}
        return {"name": project.name, **switches, VERSION: str(project.version)}

    def submit(self, form: Form) -> Response:
        """Save it."""
        command = self.decoded(ChangeProject, self.typed(form))
        self.services.projects.change(
            self.project.id, command, expected_version=version_of(form.one(VERSION)), by=self.principal
        )
        return self.redirect(self.done(self.project_href))


class _Confirm(OfProject, ConfirmPage):
    def back(self) -> str:
        return self.project_href


class Deactivate(DeactivatePage, _Confirm):
    """Asks before its applications stop working."""

    def question(self) -> str:
        """With its name."""
        return say("Deactivate the project “{name}”?", name=self.project.name)

    def effects(self) -> Sequence[str]:
        """What stops."""
        return [
            say("Nobody signs in to its applications, and no token is issued for it."),
            say("You can reactivate it later."),
        ]

    def label(self) -> str:
        """The button."""
        return say("Deactivate project")

    def act(self) -> str:
        """Do it."""
        self.services.projects.deactivate(self.project.id, by=self.principal)
        return self.project_href


class Reactivate(ReactivatePage, _Confirm):
    """Asks before it works again."""

    def question(self) -> str:
        """With its name."""
        return say("Reactivate the project “{name}”?", name=self.project.name)

    def effects(self) -> Sequence[str]:
        """What works again."""
        return [say("Its applications work again, but for those that are deactivated themselves.")]

    def label(self) -> str:
        """The button."""
        return say("Reactivate project")

    def act(self) -> str:
        """Do it."""
        self.services.projects.reactivate(self.project.id, by=self.principal)
        return self.project_href


class Delete(_Confirm):
    """Asks for the name before it is gone for ever."""

    def question(self) -> str:
        """With its name."""
        return say("Delete the project “{name}”?", name=self.project.name)

    def effects(self) -> Sequence[str]:
        """In numbers."""
        return [
            say("This cannot be undone. Nobody signs in to its applications any more."),
            *effect_words(self.services.effects.of_project(self.project.id), self),
        ]

    def label(self) -> str:
        """The button."""
        return say("Delete project")

    def name_to_type(self) -> str:
        """Its name."""
        return self.project.name

    def act(self) -> str:
        """Do it."""
        self.services.projects.remove(self.project.id, by=self.principal)
        return f"{self.root}/{SECTION}"


_LIST = f"/organizations/{{organization}}/{SECTION}"
_ONE = "/projects/{project}"

PLACES = (
    Place(_LIST, ProjectList, "project.read", targets.organization_or_part),
    Place(f"{_LIST}/new", NewProject, "project.create", targets.organization),
    Place(_ONE, ProjectPage, "project.read", targets.project),
    Place(f"{_ONE}/edit", ChangeProjectPage, "project.write", targets.project),
    Place(f"{_ONE}/deactivate", Deactivate, "project.write", targets.project),
    Place(f"{_ONE}/reactivate", Reactivate, "project.write", targets.project),
    Place(f"{_ONE}/delete", Delete, "project.delete", targets.project),
)

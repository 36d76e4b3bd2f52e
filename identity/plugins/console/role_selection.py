"""RolesFormPage: role checkboxes and an end. SelectThenRolesPage: select a grantee first, then the roles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode

from identity.domain.errors import Invalid, NotFound
from identity.domain.expirations import MAX_TERM
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.domain.users import ServiceUser, Subject, User
from identity.http.list_parameters import QUERY_PARAM, ListParameters
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import Descriptions
from identity.storage.paging import PageRequest, ResultPage

ROLE_FIELD, UNTIL_FIELD = "role", "until"

#: Further candidates are found by searching.
_MAX_CANDIDATES = 20


RoleOptions = Sequence[tuple[str, str, str]]


class RolesFormPage(ConsoleFormPage):
    """Roles as checkboxes and the last day on which they count; commands take them as ``roles`` and ``until``."""

    template = "console/role_selection.html"
    fields = (ROLE_FIELD, UNTIL_FIELD)
    field_aliases = {"roles": ROLE_FIELD}  # noqa: RUF012
    repeated_fields = frozenset({ROLE_FIELD})
    #: False if no role is a valid choice.
    requires_role: ClassVar[bool] = True
    #: The hint above the roles, and the text if there are none to choose from.
    hint: ClassVar[str] = ""
    until_hint: ClassVar[str] = _("The last day on which the roles count, in UTC. Leave it empty for no end.")
    no_options_message: ClassVar[str] = _("The project has no roles yet. Add one on the page of the project.")

    @property
    def lead(self) -> str:
        """The resource in which the roles are held, shown below the heading."""
        raise NotImplementedError

    @property
    def facts(self) -> Descriptions:
        """Label and value of each fact about the grantee."""
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """Warnings before roles are granted."""
        return ()

    def role_options(self) -> RoleOptions:
        """Value, label and explanation of each role."""
        raise NotImplementedError

    @property
    def current_until(self) -> datetime | None:
        """The end before the change."""
        return None

    def entity_values(self, entity: Any) -> dict[str, FieldValue]:
        return {
            ROLE_FIELD: tuple(sorted(entity.roles)),
            UNTIL_FIELD: "" if entity.until is None else str(entity.until.date()),
            Form.VERSION_FIELD: str(entity.version),
        }

    def parse_form(self, form: Form) -> dict[str, object]:
        """Raises Invalid if a role is required and none is selected."""
        roles = frozenset(form.texts(ROLE_FIELD))
        if self.requires_role and not roles:
            raise Invalid({"roles": _("Choose at least one role.")})
        return {"roles": roles, "until": self._parse_until(form)}

    def _parse_until(self, form: Form) -> datetime | None:
        """The end of the chosen day (UTC). An end that the API set within that day stays. Raises Invalid."""
        text = form.text(UNTIL_FIELD)
        if not text:
            return None
        try:
            day = date.fromisoformat(text)
        except ValueError:
            raise Invalid({"until": _("Enter a date such as 2027-12-31.")}) from None
        current = self.current_until
        if current is not None and current.date() == day:
            return current
        return datetime.combine(day, time(23, 59, 59), UTC)

    def _until_arguments(self) -> dict[str, object]:
        today: date = self.services.now.date()
        suggestions = (
            (timedelta(days=30), _("in 30 days")),
            (timedelta(days=90), _("in 90 days")),
            (timedelta(days=365), _("in 1 year")),
        )
        return {
            "hint": self.translate(self.until_hint),
            "min": str(today),
            "max": str(today + MAX_TERM - timedelta(days=1)),
            "suggestions": [(str(today + span), self.translate(message)) for span, message in suggestions],
        }

    def template_variables(self) -> Mapping[str, object]:
        options = self.role_options()
        return {
            "about": self.translate(self.lead),
            "step": 0,
            "facts": [(self.translate(label), value) for label, value in self.facts],
            "notes": [self.translate(note) for note in self.notes],
            "options": options,
            "hint": self.translate(self.hint),
            "until": self._until_arguments(),
            "nothing_to_choose": self.translate(self.no_options_message),
            "label": self.translate(self.submit_label) if options or not self.requires_role else "",
            "danger": False,
            "back": self.cancel_path,
        }


@dataclass(frozen=True)
class SelectionCandidate:
    """``icon`` is a name that the template macro knows, ``href`` leads to step 2."""

    name: str
    note: str
    icon: str
    href: str


class SelectThenRolesPage(RolesFormPage):
    """Step 1 searches and selects, step 2 chooses roles. The selection is a query parameter."""

    is_creation = True
    submit_label = _("Add")
    selection_param: ClassVar[str]
    #: The heading of step 1 and the link back to it, and the heading of step 2.
    selection_title: ClassVar[str]
    reselect_label: ClassVar[str]
    roles_title: ClassVar[str] = _("Choose roles for {name}")

    @property
    def title(self) -> str:
        return (
            _(self.roles_title, name=self.selected_name, project=self.selected_name)
            if self.selected_id
            else self.selection_title
        )

    @property
    def selected_name(self) -> str:
        """Raises NotFound for what may not be selected."""
        raise NotImplementedError

    @property
    def selected_id(self) -> str:
        """Empty in step 1."""
        return str(self.request.GET.get(self.selection_param, ""))

    @property
    def search_hint(self) -> str:
        raise NotImplementedError

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        raise NotImplementedError

    def empty_search_message(self, page_request: PageRequest) -> str:
        return _("Nothing here contains “{q}”.", q=page_request.query)

    @property
    def _other_parameters(self) -> list[tuple[str, str]]:
        """What the query has besides the search and the selection."""
        of_steps = (self.selection_param, QUERY_PARAM)
        return [(name, value) for name, value in self.request.GET.items() if name not in of_steps]

    def selection_path(self, identifier: str = "") -> str:
        """The address of step 2 with this selection, or of step 1."""
        selection = [(self.selection_param, identifier)] if identifier else []
        query = urlencode([*self._other_parameters, *selection])
        return f"{self.form_action()}?{query}" if query else self.form_action()

    def template_variables(self) -> Mapping[str, object]:
        if self.selected_id:
            another = self.translate(self.reselect_label)
            return {
                **super().template_variables(),
                "step": 2,
                "first_step": self.selection_path(),
                "select_another": another,
            }
        page_request = ListParameters.read(self.request, usual=_MAX_CANDIDATES)
        page = self.candidates(page_request)
        return {
            "about": self.translate(self.lead),
            "step": 1,
            "hidden": self._other_parameters,
            "q": page_request.query,
            "search_hint": self.translate(self.search_hint),
            "candidates": page.items,
            "more": page.next_cursor is not None,
            "nothing_found": self.translate(self.empty_search_message(page_request)),
        }


class SelectUserThenRolesPage(SelectThenRolesPage):
    """Selects a user, by any part of their name if the caller may read users. Otherwise only the whole login name or
    id matches, so that nothing is disclosed about other users.
    """

    selection_param = "user_id"
    selection_title = _("Select a user")
    reselect_label = _("Select another user")
    #: True to include users of other organizations that the caller may see.
    includes_other_organizations: ClassVar[bool] = False

    @property
    def search_organization_id(self) -> str | None:
        """The organization whose users may be selected; None for all."""
        raise NotImplementedError

    def is_selectable(self, subject: Subject) -> bool:
        raise NotImplementedError

    @property
    def selected_subject(self) -> Subject:
        """The user of step 2. Raises NotFound if they may not be selected."""
        subject: Subject | None = self.services.storage.users.find_subject(self.selected_id)
        if subject is None or not self.is_selectable(subject):
            raise NotFound("user", self.selected_id)
        return subject

    @property
    def selected_name(self) -> str:
        return self.selected_subject.user.display_name

    @property
    def facts(self) -> Descriptions:
        return [(_("User"), self.selected_name), (_("Login name"), self.selected_subject.login_name)]

    @property
    def search_hint(self) -> str:
        if can_read_users(self, self.search_organization_id):
            return _("Any part of a user name, name or email address.")
        return _("The full login name or id of the user.")

    def empty_search_message(self, page_request: PageRequest) -> str:
        if not can_read_users(self, self.search_organization_id):
            return _("There is no such user.") if page_request.query else ""
        if page_request.query:
            return super().empty_search_message(page_request)
        return _("There are no users to choose from yet. Create a user or a service user first.")

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        """People and service users that match the search."""
        users, organization_id = self.services.storage.users, self.search_organization_id
        listed: ResultPage[User] = (
            users.page(organization_id, None, page_request) if can_read_users(self, organization_id) else ResultPage(())
        )
        subjects = {subject.user.id: subject for subject in self._find_by_identifier(page_request.query)}
        subjects |= users.find_subjects({item.id for item in listed})
        visible = {
            subject.user.id: subject
            for subject in self.services.access_control.filter_visible(self.principal, subjects.values())
        }
        ids = dict.fromkeys((*visible.keys() - {item.id for item in listed}, *(item.id for item in listed)))
        return ResultPage(tuple(self._candidate(visible[item]) for item in ids if item in visible), listed.next_cursor)

    def _find_by_identifier(self, query: str) -> Iterator[Subject]:
        """Users with exactly this login name or id that the caller may see."""
        users = self.services.storage.users
        subject = (users.find_by_login_name(query) or users.find_subject(query)) if query else None
        if (
            subject is None
            or not self._can_see_organization(subject.organization.id)
            or not self.is_selectable(subject)
        ):
            return
        if self.includes_other_organizations or self.search_organization_id in (None, subject.organization.id):
            yield subject

    def _candidate(self, subject: Subject) -> SelectionCandidate:
        user, href = subject.user, self.selection_path(subject.user.id)
        if isinstance(user, ServiceUser):
            return SelectionCandidate(user.display_name, subject.login_name, "service", href)
        note = " · ".join(item for item in (subject.login_name, user.profile.email) if item)
        return SelectionCandidate(user.display_name, note, "users", href)


def can_read_users(page: ConsolePage, organization_id: str | None) -> bool:
    """True if the caller may read people and service users of the organization, or of all (None)."""
    resource = Resource.INSTANCE if organization_id is None else Resource.of_organization(organization_id)
    permissions: frozenset[str] = page.services.access_control.list_permissions(page.principal, resource)
    return {"user.read", "service_user.read"} <= permissions


def role_options(page: ConsolePage, project_id: str, only: frozenset[str] | None = None) -> RoleOptions:
    """Key, label and display name of the project's roles, or of those in ``only``."""
    roles = page.services.projects.list_roles(project_id)
    return [
        (role.key, role.key, role.display_name if role.display_name != role.key else "")
        for role in roles
        if only is None or role.key in only
    ]

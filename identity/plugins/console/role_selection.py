"""RolesFormPage: a choice of roles. SelectThenRolesPage: two steps, of which the first selects who gets them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_RESOURCE, organization_resource
from identity.domain.users import ServiceUser, Subject, User
from identity.http.list_parameters import read_page_request
from identity.pages.forms import VERSION_FIELD, FieldValue, Form
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import Descriptions
from identity.storage.paging import PageRequest, ResultPage

#: The field that holds the roles.
ROLE_FIELD = "role"

#: How many a search shows; whoever is not among them is found by more letters.
_MAX_CANDIDATES = 20


RoleOptions = Sequence[tuple[str, str, str]]


class RolesFormPage(ConsoleFormPage):
    """Roles as checkboxes; ``roles`` is what commands call them."""

    template = "console/role_selection.html"
    fields = (ROLE_FIELD,)
    field_aliases = {"roles": ROLE_FIELD}  # noqa: RUF012
    repeated_fields = frozenset({ROLE_FIELD})
    #: False where none at all is a choice too.
    requires_role: ClassVar[bool] = True
    #: What one has to know to choose, and what is said where there are no roles.
    hint: ClassVar[str] = ""
    no_options_message: ClassVar[str] = gettext_lazy(
        "The project has no roles yet. Add one on the page of the project."
    )

    @property
    def lead(self) -> str:
        """Where the roles are held: a name, said below the heading."""
        raise NotImplementedError

    @property
    def facts(self) -> Descriptions:
        """Who or what gets them: words and value of each fact."""
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """What has to be known before they are given, as sentences."""
        return ()

    def role_options(self) -> RoleOptions:
        """The roles that may be chosen: value, label and a sentence."""
        raise NotImplementedError

    def selected_roles(self, form: Form) -> frozenset[str]:
        """The roles that are ticked. Raises Invalid if there has to be one."""
        roles = frozenset(form.texts(ROLE_FIELD))
        if self.requires_role and not roles:
            raise Invalid({"roles": gettext_lazy("Choose at least one role.")})
        return roles

    def entity_values(self, thing: Any) -> dict[str, FieldValue]:
        return {ROLE_FIELD: tuple(sorted(thing.roles)), VERSION_FIELD: str(thing.version)}

    def parse_form(self, form: Form) -> dict[str, object]:
        return {"roles": self.selected_roles(form)}

    def template_variables(self) -> Mapping[str, object]:
        options = self.role_options()
        return {
            "about": self.translate(self.lead),
            "step": 0,
            "facts": [(self.translate(words), value) for words, value in self.facts],
            "notes": [self.translate(note) for note in self.notes],
            "options": options,
            "hint": self.translate(self.hint),
            "nothing_to_choose": self.translate(self.no_options_message),
            "label": self.translate(self.submit_label) if options or not self.requires_role else "",
            "back": self.cancel_path,
        }


@dataclass(frozen=True)
class SelectionCandidate:
    """Who or what can be selected; ``icon`` is one of the macro's, ``href`` leads to the second step."""

    name: str
    note: str
    icon: str
    href: str


class SelectThenRolesPage(RolesFormPage):
    """Step 1 searches and selects, step 2 chooses roles. What was selected stands in the address."""

    is_creation = True
    submit_label = gettext_lazy("Add")
    #: The parameter that names what was selected.
    selection_param: ClassVar[str]
    #: The heading of step 1, and the link that leads back to it; the heading of step 2.
    selection_title: ClassVar[str]
    reselect_label: ClassVar[str]
    roles_title: ClassVar[str] = gettext_lazy("Choose roles for {name}")

    @property
    def title(self) -> str:
        return (
            gettext_lazy(self.roles_title, name=self.selected_name, project=self.selected_name)
            if self.selected_id
            else self.selection_title
        )

    @property
    def selected_name(self) -> str:
        """What was selected is called so. Raises NotFound for what cannot be."""
        raise NotImplementedError

    @property
    def selected_id(self) -> str:
        """The id of what was selected; empty in step 1."""
        identifier: str = self.request.GET.get(self.selection_param, "")
        return identifier

    @property
    def search_hint(self) -> str:
        """What one searches by."""
        raise NotImplementedError

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        """Who or what fits the search."""
        raise NotImplementedError

    def empty_search_message(self, page_request: PageRequest) -> str:
        """What is said if nothing does."""
        return gettext_lazy("Nothing here has “{q}” in it.", q=page_request.query)

    def selection_path(self, identifier: str) -> str:
        """The address of step 2 with this one selected."""
        return f"{self.form_action()}?{self.selection_param}={identifier}"

    def template_variables(self) -> Mapping[str, object]:
        if self.selected_id:
            another = self.translate(self.reselect_label)
            return {
                **super().template_variables(),
                "step": 2,
                "first_step": self.form_action(),
                "select_another": another,
            }
        page_request = read_page_request(self.request, usual=_MAX_CANDIDATES)
        page = self.candidates(page_request)
        return {
            "about": self.translate(self.lead),
            "step": 1,
            "q": page_request.query,
            "search_hint": self.translate(self.search_hint),
            "candidates": page.items,
            "more": page.next_cursor is not None,
            "nothing_found": self.translate(self.empty_search_message(page_request)),
        }


class SelectUserThenRolesPage(SelectThenRolesPage):
    """The same where a user is selected, by any part of a name where whoever looks may read users.

    Elsewhere one is found by the whole login name or id alone, so that nobody learns who there is.
    """

    selection_param = "user_id"
    selection_title = gettext_lazy("Select a user")
    reselect_label = gettext_lazy("Select another user")
    #: True if users of other organizations that whoever looks may know of are found as well.
    includes_other_organizations: ClassVar[bool] = False

    @property
    def search_organization_id(self) -> str | None:
        """Among the users of which organization one may select; None for all."""
        raise NotImplementedError

    def is_selectable(self, subject: Subject) -> bool:
        """True if this user may be selected."""
        raise NotImplementedError

    @property
    def selected_subject(self) -> Subject:
        """The user of step 2. Raises NotFound for one that may not be selected."""
        subject: Subject | None = self.services.storage.users.find_subject(self.selected_id)
        if subject is None or not self.is_selectable(subject):
            raise NotFound("user", self.selected_id)
        return subject

    @property
    def selected_name(self) -> str:
        return self.selected_subject.user.display_name

    @property
    def facts(self) -> Descriptions:
        return [
            (gettext_lazy("User"), self.selected_name),
            (gettext_lazy("Login name"), self.selected_subject.login_name),
        ]

    @property
    def search_hint(self) -> str:
        if can_read_users(self, self.search_organization_id):
            return gettext_lazy("Any part of a user name, name or email address.")
        return gettext_lazy("The whole login name or id of the user.")

    def empty_search_message(self, page_request: PageRequest) -> str:
        if not can_read_users(self, self.search_organization_id):
            return gettext_lazy("There is no such user.") if page_request.query else ""
        if page_request.query:
            return super().empty_search_message(page_request)
        return gettext_lazy("There is nobody to choose yet. Create a user or a service user first.")

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        """Users of both kinds that fit the search."""
        users, of = self.services.storage.users, self.search_organization_id
        listed: ResultPage[User] = users.page(of, None, page_request) if can_read_users(self, of) else ResultPage(())
        subjects = {subject.user.id: subject for subject in self._find_by_identifier(page_request.query)}
        subjects |= users.find_subjects({item.id for item in listed})
        visible = {
            subject.user.id: subject
            for subject in self.services.access_control.filter_visible(self.principal, subjects.values())
        }
        ids = dict.fromkeys((*visible.keys() - {item.id for item in listed}, *(item.id for item in listed)))
        return ResultPage(tuple(self._candidate(visible[item]) for item in ids if item in visible), listed.next_cursor)

    def _find_by_identifier(self, query: str) -> Iterator[Subject]:
        """Who is meant by a whole login name or id, of those whom whoever looks may know of."""
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
    """True if whoever looks may read users of both kinds: of the organization, or (None) of all."""
    resource = INSTANCE_RESOURCE if organization_id is None else organization_resource(organization_id)
    held: frozenset[str] = page.services.access_control.list_permissions(page.principal, resource)
    return {"user.read", "service_user.read"} <= held


def role_options(page: ConsolePage, project_id: str, only: frozenset[str] | None = None) -> RoleOptions:
    """The roles of a project, or those of them that are in ``only``: key, key again, display name."""
    roles = page.services.projects.list_roles(project_id)
    return [
        (role.key, role.key, role.display_name if role.display_name != role.key else "")
        for role in roles
        if only is None or role.key in only
    ]

"""RolesForm: a choice of roles. SelectFirst: the same as the second of two steps; the first selects who gets them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from identity.domain.errors import Invalid, NotFound
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.users import ServiceUser, Subject, User
from identity.domain.words import say
from identity.http.lists import asked_page
from identity.pages.forms import VERSION, Form, Value
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.sections import Facts
from identity.storage.paging import Page, PageRequest

#: The field that holds the roles.
ROLE = "role"

#: How many a search shows; whoever is not among them is found by more letters.
_FOUND = 20


Choices = Sequence[tuple[str, str, str]]


class RolesForm(ConsoleForm):
    """Roles as checkboxes; ``roles`` is what commands call them."""

    template = "console/roles_form.html"
    fields = (ROLE,)
    renamed = {"roles": ROLE}  # noqa: RUF012
    repeated_fields = frozenset({ROLE})
    #: False where none at all is a choice too.
    needs_roles: ClassVar[bool] = True
    #: What one has to know to choose, and what is said where there are no roles.
    hint: ClassVar[str] = ""
    nothing_to_choose: ClassVar[str] = say("The project has no roles yet. Add one on the page of the project.")

    @property
    def about(self) -> str:
        """Where the roles are held: a name, said below the heading."""
        raise NotImplementedError

    @property
    def facts(self) -> Facts:
        """Who or what gets them: words and value of each fact."""
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """What has to be known before they are given, as sentences."""
        return ()

    def options(self) -> Choices:
        """The roles that may be chosen: value, label and a sentence."""
        raise NotImplementedError

    def chosen_roles(self, form: Form) -> frozenset[str]:
        """The roles that are ticked. Raises Invalid if there has to be one."""
        roles = frozenset(form.several(ROLE))
        if self.needs_roles and not roles:
            raise Invalid({"roles": say("Choose at least one role.")})
        return roles

    def stored(self, thing: Any) -> dict[str, Value]:
        return {ROLE: tuple(sorted(thing.roles)), VERSION: str(thing.version)}

    def typed(self, form: Form) -> dict[str, object]:
        return {"roles": self.chosen_roles(form)}

    def show(self) -> Mapping[str, object]:
        options = self.options()
        return {
            "about": self.said(self.about),
            "step": 0,
            "facts": [(self.said(words), value) for words, value in self.facts],
            "notes": [self.said(one) for one in self.notes],
            "options": options,
            "hint": self.said(self.hint),
            "nothing_to_choose": self.said(self.nothing_to_choose),
            "label": self.said(self.label) if options or not self.needs_roles else "",
            "back": self.back,
        }


@dataclass(frozen=True)
class Candidate:
    """Who or what can be selected; ``icon`` is one of the macro's, ``href`` leads to the second step."""

    name: str
    note: str
    icon: str
    href: str


class SelectFirst(RolesForm):
    """Step 1 searches and selects, step 2 chooses roles. What was selected stands in the address."""

    creates = True
    label = say("Add")
    #: The parameter that names what was selected.
    parameter: ClassVar[str]
    #: The heading of step 1, and the link that leads back to it; the heading of step 2.
    select: ClassVar[str]
    select_another: ClassVar[str]
    choose: ClassVar[str] = say("Choose roles for {name}")

    @property
    def title(self) -> str:
        return say(self.choose, name=self.chosen_name, project=self.chosen_name) if self.selected else self.select

    @property
    def chosen_name(self) -> str:
        """What was selected is called so. Raises NotFound for what cannot be."""
        raise NotImplementedError

    @property
    def selected(self) -> str:
        """The id of what was selected; empty in step 1."""
        identifier: str = self.request.GET.get(self.parameter, "")
        return identifier

    @property
    def search_hint(self) -> str:
        """What one searches by."""
        raise NotImplementedError

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Who or what fits the search."""
        raise NotImplementedError

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said if nothing does."""
        return say("Nothing here has “{q}” in it.", q=asked.query)

    def href_of(self, identifier: str) -> str:
        """The address of step 2 with this one selected."""
        return f"{self.form_path()}?{self.parameter}={identifier}"

    def show(self) -> Mapping[str, object]:
        if self.selected:
            another = self.said(self.select_another)
            return {**super().show(), "step": 2, "first_step": self.form_path(), "select_another": another}
        asked = asked_page(self.request, usual=_FOUND)
        found = self.candidates(asked)
        return {
            "about": self.said(self.about),
            "step": 1,
            "q": asked.query,
            "search_hint": self.said(self.search_hint),
            "candidates": found.items,
            "more": found.next is not None,
            "nothing_found": self.said(self.nothing_found(asked)),
        }


class SelectUser(SelectFirst):
    """The same where a user is selected, by any part of a name where whoever looks may read users.

    Elsewhere one is found by the whole login name or id alone, so that nobody learns who there is.
    """

    parameter = "user_id"
    select = say("Select a user")
    select_another = say("Select another user")
    #: True if users of other organizations that whoever looks may know of are found as well.
    abroad: ClassVar[bool] = False

    @property
    def users_of(self) -> str | None:
        """Among the users of which organization one may select; None for all."""
        raise NotImplementedError

    def may_choose(self, subject: Subject) -> bool:
        """True if this user may be selected."""
        raise NotImplementedError

    @property
    def chosen(self) -> Subject:
        """The user of step 2. Raises NotFound for one that may not be selected."""
        subject: Subject | None = self.services.storage.users.find_subject(self.selected)
        if subject is None or not self.may_choose(subject):
            raise NotFound("user", self.selected)
        return subject

    @property
    def chosen_name(self) -> str:
        return self.chosen.user.display_name

    @property
    def facts(self) -> Facts:
        return [(say("User"), self.chosen_name), (say("Login name"), self.chosen.login_name)]

    @property
    def search_hint(self) -> str:
        if reads_users(self, self.users_of):
            return say("Any part of a user name, name or email address.")
        return say("The whole login name or id of the user.")

    def nothing_found(self, asked: PageRequest) -> str:
        if not reads_users(self, self.users_of):
            return say("There is no such user.") if asked.query else ""
        if asked.query:
            return super().nothing_found(asked)
        return say("There is nobody to choose yet. Create a user or a service user first.")

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        """Users of both kinds that fit the search."""
        users, of = self.services.storage.users, self.users_of
        listed: Page[User] = users.page(of, None, asked) if reads_users(self, of) else Page(())
        subjects = {one.user.id: one for one in self._named(asked.query)}
        subjects |= users.find_subjects({one.id for one in listed})
        visible = {one.user.id: one for one in self.services.access.visible(self.principal, subjects.values())}
        ids = dict.fromkeys((*visible.keys() - {one.id for one in listed}, *(one.id for one in listed)))
        return Page(tuple(self._candidate(visible[one]) for one in ids if one in visible), listed.next)

    def _named(self, query: str) -> Iterator[Subject]:
        """Who is meant by a whole login name or id, of those whom whoever looks may know of."""
        users = self.services.storage.users
        subject = (users.find_by_login_name(query) or users.find_subject(query)) if query else None
        if subject is None or not self._sees(subject.organization.id) or not self.may_choose(subject):
            return
        if self.abroad or self.users_of in (None, subject.organization.id):
            yield subject

    def _candidate(self, subject: Subject) -> Candidate:
        user, href = subject.user, self.href_of(subject.user.id)
        if isinstance(user, ServiceUser):
            return Candidate(user.display_name, subject.login_name, "service", href)
        note = " · ".join(one for one in (subject.login_name, user.profile.email) if one)
        return Candidate(user.display_name, note, "users", href)


def reads_users(page: ConsolePage, organization_id: str | None) -> bool:
    """True if whoever looks may read users of both kinds: of the organization, or (None) of all."""
    resource = INSTANCE if organization_id is None else organization_resource(organization_id)
    held: frozenset[str] = page.services.access.permissions(page.principal, resource)
    return {"user.read", "service_user.read"} <= held


def role_options(page: ConsolePage, project_id: str, only: frozenset[str] | None = None) -> Choices:
    """The roles of a project, or those of them that are in ``only``: key, key again, display name."""
    roles = page.services.projects.roles(project_id)
    return [
        (one.key, one.key, one.display_name if one.display_name != one.key else "")
        for one in roles
        if only is None or one.key in only
    ]

"""Actions on selected users of a list: a page that names them asks for confirmation, then shows a result for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import DomainError
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.user_imports import format_csv_row
from identity.domain.users import HumanUser, Subject
from identity.pages.forms import Form
from identity.pages.transactional_mails import TransactionalMails
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import Breadcrumbs
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import MAX_SELECTED_ROWS, SELECTED_PARAM
from identity.plugins.console.resource_types import ORGANIZATION, USER
from identity.services.users import InitialCredential, UserState

_ACTION_PARAM = "action"
_EXPORT = "export"
_EXPORTED = ("user_name", "given_name", "family_name", "email", "phone", "preferred_language", "state")


@dataclass(frozen=True, kw_only=True)
class _BulkAction:
    """``run`` changes one user, or raises DomainError with the reason why not."""

    title: Callable[[int], str]
    lead: str
    submit_label: str
    done: str
    run: Callable[["SelectedUsersPage", HumanUser], object]
    is_destructive: bool = False


def _invite(page: "SelectedUsersPage", user: HumanUser) -> None:
    if not page.services.mails.is_enabled or not user.profile.email:
        raise DomainError(
            _("A link can only be mailed to people with an email address, by a service that sends mails.")
        )
    is_new = page.services.users.user_states([user])[user.id] is UserState.INVITED
    link = page.services.users.issue_password_link(user.id, principal=page.principal, mailed_to=user.profile.email)
    subject = Subject(user, page.entity_of(Organization))
    mails = TransactionalMails(page.request, page.language)
    credential = InitialCredential("link", link)
    if not mails.queue_initial_credential(subject, credential, new=is_new, inviter=page.principal.subject):
        raise DomainError(_("This address got too many mails in the last hour."))


_ACTIONS: Mapping[str, _BulkAction] = {
    "invite": _BulkAction(
        title=lambda n: ngettext_lazy("Send {n} person a link?", "Send {n} people a link?", n),
        lead=_("Each gets a mail with a new link to choose a password. Earlier links stop working."),
        submit_label=_("Send links"),
        done=_("Link sent"),
        run=_invite,
    ),
    "deactivate": _BulkAction(
        title=lambda n: ngettext_lazy("Deactivate {n} user?", "Deactivate {n} users?", n),
        lead=_("They are signed out and cannot sign in. You can reactivate the accounts later."),
        submit_label=_("Deactivate users"),
        done=_("Deactivated"),
        run=lambda page, user: page.services.users.deactivate(user.id, principal=page.principal),
        is_destructive=True,
    ),
    "reactivate": _BulkAction(
        title=lambda n: ngettext_lazy("Reactivate {n} user?", "Reactivate {n} users?", n),
        lead=_("They can sign in again, with the password from before."),
        submit_label=_("Reactivate users"),
        done=_("Reactivated"),
        run=lambda page, user: page.services.users.reactivate(user.id, principal=page.principal),
    ),
}
#: The buttons below the list.
USER_BULK_ACTIONS = (
    ("invite", _("Send links")),
    ("deactivate", _("Deactivate")),
    ("reactivate", _("Reactivate")),
    (_EXPORT, _("Export as CSV")),
)


class SelectedUsersPage(ConsoleFormPage):
    """The query names the users and the action."""

    template = "console/selected_rows.html"
    section = "users"

    @cached_property
    def _action(self) -> _BulkAction | None:
        return _ACTIONS.get(self.request.GET.get(_ACTION_PARAM, ""))

    @cached_property
    def users(self) -> Sequence[HumanUser]:
        """Those of the organization, in the order of the list."""
        ids = dict.fromkeys(self.request.GET.getall(SELECTED_PARAM)[:MAX_SELECTED_ROWS])
        found = (self.services.storage.users.find(identifier) for identifier in ids)
        organization_id = self.entity_of(Organization).id
        return [user for user in found if isinstance(user, HumanUser) and user.organization_id == organization_id]

    @property
    def title(self) -> str:
        return _("Selected users") if self._action is None else self._action.title(len(self.users))

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return ((_("Users"), f"{ORGANIZATION.path_of(self.entity_of(Organization))}/users"),)

    def get(self) -> Response:
        if self.users and self.request.GET.get(_ACTION_PARAM) == _EXPORT:
            return self._export()
        return super().get() if self.users and self._action else self.redirect(self.cancel_path)

    def template_variables(self) -> Mapping[str, object]:
        action = self._action
        return {
            **super().template_variables(),
            "bulk_lead": self.translate(action.lead) if action else "",
            "label": self.translate(action.submit_label) if action else "",
            "danger": action is not None and action.is_destructive,
            "rows": [(self._name(user), "") for user in self.users],
            "is_done": False,
        }

    def submit(self, form: Form) -> Response:
        action = self._action
        if action is None:
            return self.redirect(self.cancel_path)
        rows, done_count = [], 0
        for user in self.users:
            try:
                action.run(self, user)
            except DomainError as refusal:
                reason = self.translate(refusal.args[0] if refusal.args else str(refusal))
                rows.append((self._name(user), reason))
            else:
                done_count += 1
                rows.append((self._name(user), self.render_badge(Badge(self.translate(action.done), "success"))))
        variables = {
            **self.template_variables(),
            "title": self.translate(
                ngettext_lazy("{n} of {total} is done", "{n} of {total} are done", done_count, total=len(rows))
            ),
            "rows": rows,
            "is_done": True,
        }
        return self.render(variables)

    def _name(self, user: HumanUser) -> object:
        return self.components.named(user.display_name, USER.path_of(user), sub=user.user_name)

    def _export(self) -> Response:
        states = self.services.users.user_states(self.users)
        lines = [format_csv_row(list(_EXPORTED))]
        for user in self.users:
            known = user.profile
            cells = [user.user_name, known.given_name, known.family_name, known.email, known.phone, known.locale]
            lines.append(format_csv_row([*cells, states[user.id].value]))
        response = Response("".join(lines), content_type="text/csv", charset="utf-8")
        response.content_disposition = 'attachment; filename="users.csv"'
        response.cache_control = "no-store"
        return response


ROUTES = (ORGANIZATION.route("/users/selected", SelectedUsersPage, "user.write"),)

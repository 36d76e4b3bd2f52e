"""Users (people): list, detail page, edit, deactivate and delete."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.users import HumanUser, Profile, Subject
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.action_page import (
    REACTIVATION_HINT,
    DeactivatePage,
    DeletePage,
    ReactivatePage,
    ResourceActionPage,
)
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.fields.users import HUMAN_USER_FIELDS, PROFILE_FIELDS
from identity.plugins.console.form_fields import FormField, form_fields
from identity.plugins.console.form_page import EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.memberships import manager_roles_section
from identity.plugins.console.page_sections import ActionSection, Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import UserResourcePage, resource_routes
from identity.plugins.console.resources.audit_events import user_events_section
from identity.plugins.console.resources.connected_applications import connected_applications_section
from identity.plugins.console.resources.held_grants import HELD_GRANTS
from identity.plugins.console.resources.legal_holds import legal_hold_badges, legal_hold_section
from identity.plugins.console.resources.sessions import SessionListPage
from identity.plugins.console.resources.user_credentials import (
    CreateHandOverLinkPage,
    CreatePasswordLinkPage,
    SetOneTimePasswordPage,
)
from identity.plugins.console.resources.user_factors import factors_section
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.users import ChangeHumanUser
from identity.services.users import UserState
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.users import UserKind

_STATE_LABELS = {
    UserState.ACTIVE: gettext_lazy("Active"),
    UserState.MUST_CHANGE_PASSWORD: gettext_lazy("Must change password"),
    UserState.INVITED: gettext_lazy("Invited"),
    UserState.DEACTIVATED: gettext_lazy("Deactivated"),
    UserState.LEAVING: gettext_lazy("Is being deleted"),
}


class UserListPage(ListPage):
    section = "users"
    title = gettext_lazy("Users")
    lead = gettext_lazy("People who sign in.")
    columns = (
        gettext_lazy("Name"),
        gettext_lazy("Login name"),
        gettext_lazy("Email"),
        gettext_lazy("State"),
        gettext_lazy("Last sign-in"),
        gettext_lazy("Created"),
    )
    sort_orders = (
        ("user_name", gettext_lazy("Login name")),
        ("display_name", gettext_lazy("Name")),
        ("email", gettext_lazy("Email")),
        ("last_sign_in_at", gettext_lazy("Last sign-in")),
        ("created_at", gettext_lazy("Created")),
    )
    empty_title = gettext_lazy("No users yet")
    empty_text = gettext_lazy("People who sign in. Create one and hand over the link.")
    create_permission, entity_label = "user.write", gettext_lazy("user")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        return self.services.storage.users.page(self.context.entity.id, UserKind.HUMAN, page_request)

    def build_rows(self, found: Sequence[HumanUser]) -> Sequence[Cells]:
        states, locked = (
            self.services.users.user_states(found),
            self.services.users.list_locked_ids(found, self.context.entity),
        )
        return [
            (
                self.template_macros.named(user.display_name, f"{CONSOLE_PATH}/users/{user.id}"),
                with_line_breaks(Subject(user, self.context.entity).login_name),
                with_line_breaks(user.profile.email)
                if user.profile.email
                else self.render_placeholder(gettext_lazy("None")),
                Markup(" ").join(map(self.render_badge, _user_badges(states[user.id], user.id in locked, self))),
                self.relative_time(user.last_sign_in_at),
                self.template_macros.when(user.created_at),
            )
            for user in found
        ]


def _user_badges(state: UserState, locked: bool, page: ConsolePage) -> Sequence[Badge]:
    badge = Badge(page.translator.gettext(_STATE_LABELS[state]), "success" if state is UserState.ACTIVE else "")
    return [badge, Badge(page.translator.gettext("Locked"), "danger")] if locked else [badge]


class UserEditPage(UserResourcePage, EditPage):
    """Name and contact data; people change the rest on their account pages."""

    command = ChangeHumanUser
    form_fields = (*form_fields(HumanUser, HUMAN_USER_FIELDS), *form_fields(Profile, PROFILE_FIELDS))

    def visible_fields(self) -> Sequence[FormField]:
        profile = self.entity.profile
        if not profile.email_verified:
            return self.form_fields
        verified = self.translator.gettext("{email} is confirmed.", email=profile.email) + " "
        return [
            replace(form_field, hint=verified + self.translate(form_field.hint))
            if form_field.name == "email"
            else form_field
            for form_field in self.form_fields
        ]

    def entity_values(self, user: HumanUser) -> dict[str, Any]:
        user_name, *fields = self.form_fields
        profile = {
            form_field.name: form_field.format_value(getattr(user.profile, form_field.command_member))
            for form_field in fields
        }
        return {user_name.name: user.user_name, **profile, Form.VERSION_FIELD: str(user.version)}


def _deactivation_impact(page: UserResourcePage) -> Sequence[str]:
    falls = page.services.deletion_impact(DeletionTarget.USER, page.entity.id)
    ended = (
        ngettext_lazy("{n} session ends at once.", "{n} sessions end at once.", falls.sessions),
        ngettext_lazy("{n} live token stops working.", "{n} live tokens stop working.", falls.live_tokens),
    )
    signs_in = gettext_lazy("{name} cannot sign in any more.", name=page.person.login_name)
    return [signs_in, *(message for message in ended if message.values["n"]), REACTIVATION_HINT]


def _reactivation_impact(page: UserResourcePage) -> Sequence[str]:
    return [gettext_lazy("{name} can sign in again, with the password from before.", name=page.person.login_name)]


def _delete_refusal_message(page: UserResourcePage) -> str:
    holds = page.services.legal_holds.list_holds_on_user(page.entity)
    return gettext_lazy("This account is under a legal hold and cannot be deleted.") if holds else ""


_ACTIONS = (
    DeactivatePage.for_resource(
        UserResourcePage,
        title=gettext_lazy("Deactivate the user “{name}”?"),
        description=gettext_lazy("The person is signed out and cannot sign in. You can reactivate it later."),
        impact=_deactivation_impact,
        submit_label=gettext_lazy("Deactivate user"),
    ),
    ReactivatePage.for_resource(
        UserResourcePage,
        title=gettext_lazy("Reactivate the user “{name}”?"),
        description=gettext_lazy("The person can sign in again."),
        impact=_reactivation_impact,
        submit_label=gettext_lazy("Reactivate user"),
    ),
    DeletePage.for_resource(
        UserResourcePage,
        title=gettext_lazy("Delete the user “{name}”?"),
        description=gettext_lazy("Removes the account with its roles and sessions for ever."),
        undone=gettext_lazy("This cannot be undone. Applications will not know {name} any more."),
        also=_delete_refusal_message,
        submit_label=gettext_lazy("Delete user"),
    ),
)


class UnlockUserPage(UserResourcePage, ResourceActionPage):
    """Lets the password be tried again everywhere."""

    path_suffix, permission_verb = "/unlock", "write"
    is_destructive = False
    action_labels = (gettext_lazy("Unlock"), gettext_lazy("Unlock …"))
    description = gettext_lazy(
        "Forgets the wrong passwords that were tried. After a hundred in a row the password counts only in browsers"
        " that signed in before."
    )
    title = gettext_lazy("Unlock the user “{name}”?")
    impact = (
        gettext_lazy("The wrong passwords that were tried are forgotten: the password counts in every browser again."),
        gettext_lazy("Password, sessions and tokens stay as they are."),
    )
    submit_label = gettext_lazy("Unlock user")
    cancel_label = gettext_lazy("Keep it locked")

    @property
    def is_available(self) -> bool:
        return bool(self.services.users.count_failed_attempts(self.entity.id))

    def perform(self) -> None:
        self.services.users.unlock(self.entity.id, principal=self.principal)


class CancelUserDeletionPage(UserResourcePage, ResourceActionPage):
    """Keeps an account whose deletion the person requested."""

    path_suffix, permission_verb = "/keep", "write"
    is_destructive = False
    action_labels = (gettext_lazy("Keep"), gettext_lazy("Keep …"))
    description = gettext_lazy(
        "The person has asked for the account to be deleted. Signing in, they can keep it themselves."
    )
    title = gettext_lazy("Keep the user “{name}”?")
    impact = (
        gettext_lazy("The account is not deleted, although its person asked for it."),
        gettext_lazy("The person can sign in again as before."),
    )
    submit_label = gettext_lazy("Keep user")
    cancel_label = gettext_lazy("Let it be deleted")

    @property
    def is_available(self) -> bool:
        return self.entity.deletion_at is not None

    def perform(self) -> None:
        self.services.account_deletions.cancel(self.entity.id, principal=self.principal)


class UserDetailPage(UserResourcePage, ResourceDetailPage):
    actions = _ACTIONS

    @property
    def lead(self) -> Sequence[str]:
        return [gettext_lazy("User"), self.person.login_name]

    @property
    def badges(self) -> Sequence[Badge]:
        user = self.entity
        locked = user.id in self.services.users.list_locked_ids([user], self.person.organization)
        state = _user_badges(self.services.users.user_states([user])[user.id], locked, self)
        return [*state, *legal_hold_badges(self, user.organization_id)]

    @property
    def descriptions(self) -> Descriptions:
        ui, user = self.template_macros, self.entity
        last = user.last_sign_in_at
        return [
            (gettext_lazy("User id"), ui.identifier(user.id)),
            (gettext_lazy("Login name"), with_line_breaks(self.person.login_name)),
            *self.field_descriptions(user.profile, PROFILE_FIELDS),
            (
                gettext_lazy("Last sign-in"),
                self.relative_time(None) if last is None else ui.when(last, relative=True, clock=True),
            ),
            (gettext_lazy("Created"), ui.when(user.created_at, relative=True)),
            (gettext_lazy("Will be deleted"), ui.when(user.deletion_at, relative=True) if user.deletion_at else ""),
            (
                gettext_lazy("Wrong passwords or codes in a row"),
                str(self.services.users.count_failed_attempts(user.id) or ""),
            ),
        ]

    def format_value(self, setting: EntityField, value: Any) -> object:
        return self._format_email() if setting.name == "email" else super().format_value(setting, value)

    def _format_email(self) -> Markup:
        profile, t = self.entity.profile, self.translator.gettext
        if not profile.email:
            return self.render_placeholder(gettext_lazy("None"))
        badge = Badge(t("Confirmed"), "success") if profile.email_verified else Badge(t("Not confirmed"))
        return Markup("{} {}").format(with_line_breaks(profile.email), self.render_badge(badge))

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        user, actions = (
            self.entity,
            list(
                self.action_rows(CreatePasswordLinkPage, CreateHandOverLinkPage, SetOneTimePasswordPage, UnlockUserPage)
            ),
        )
        leaving = list(self.action_rows(CancelUserDeletionPage))
        return [
            ActionSection("deletion", gettext_lazy("Deletion"), rows=leaving) if leaving else None,
            ActionSection("password", gettext_lazy("Password"), rows=actions) if actions and user.active else None,
            factors_section(self),
            *self._plugin_sections(),
            SessionListPage.bind_to_page(self).build_section(),
            connected_applications_section(self),
            manager_roles_section(self, user.id),
            HELD_GRANTS[UserResourcePage].bind_to_page(self).build_section(),
            user_events_section(self, user.id),
            legal_hold_section(self, user.organization_id),
        ]

    def _plugin_sections(self) -> Iterator[ActionSection]:
        arguments = {"principal": self.principal, "user": self.entity}
        return self.call_console_hook("console_user_sections", lambda item: item.to_page_section(self), **arguments)


_LIST = "/organizations/{organization}/users"

ROUTES = (
    ConsoleRoute(_LIST, UserListPage, "user.read", route_contexts.organization_context),
    *resource_routes(UserDetailPage, UserEditPage, UnlockUserPage, CancelUserDeletionPage, *_ACTIONS),
)

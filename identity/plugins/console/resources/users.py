"""Users (people): list, detail page, edit, deactivate and delete."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser, Profile, Subject
from identity.pages.forms import FieldValue, Form
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.actions import REACTIVATION_HINT, Action, Deactivation, Deletion, Reactivation
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.fields.users import HUMAN_USER_FIELDS, PROFILE_FIELDS
from identity.plugins.console.form_fields import FormField, form_fields
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.memberships import manager_roles_section
from identity.plugins.console.page_sections import ActionSection, Descriptions
from identity.plugins.console.resource_pages import DetailPage, ResourcePages, Sections, format_value
from identity.plugins.console.resource_types import ORGANIZATION, USER
from identity.plugins.console.resources.audit_events import user_events_section
from identity.plugins.console.resources.connected_applications import connected_applications_section
from identity.plugins.console.resources.held_grants import HELD_GRANTS
from identity.plugins.console.resources.legal_holds import legal_hold_badges, legal_hold_section
from identity.plugins.console.resources.sessions import SESSIONS
from identity.plugins.console.resources.user_credentials import CREDENTIAL_ACTIONS, user_subject
from identity.plugins.console.resources.user_factors import RESET_FACTORS, factors_section
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


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[Any]:
    return page.services.storage.users.page(page.entity_of(Organization).id, UserKind.HUMAN, request)


def _rows(page: ConsolePage, users: Sequence[HumanUser]) -> Sequence[Cells]:
    ui, organization = page.template_macros, page.entity_of(Organization)
    states = page.services.users.user_states(users)
    locked = page.services.users.list_locked_ids(users, organization)
    return [
        (
            ui.named(user.display_name, USER.path_of(user)),
            with_line_breaks(Subject(user, organization).login_name),
            with_line_breaks(user.profile.email)
            if user.profile.email
            else page.render_placeholder(gettext_lazy("None")),
            Markup(" ").join(map(page.render_badge, _user_badges(states[user.id], user.id in locked, page))),
            page.relative_time(user.last_sign_in_at),
            ui.when(user.created_at),
        )
        for user in users
    ]


USERS = ResourceList(
    path="/users",
    permission="user.read",
    section="users",
    title=gettext_lazy("Users"),
    lead=gettext_lazy("People who sign in."),
    columns=(
        gettext_lazy("Name"),
        gettext_lazy("Login name"),
        gettext_lazy("Email"),
        gettext_lazy("State"),
        gettext_lazy("Last sign-in"),
        gettext_lazy("Created"),
    ),
    sort_orders=(
        ("user_name", gettext_lazy("Login name")),
        ("display_name", gettext_lazy("Name")),
        ("email", gettext_lazy("Email")),
        ("last_sign_in_at", gettext_lazy("Last sign-in")),
        ("created_at", gettext_lazy("Created")),
    ),
    fetch=_fetch,
    rows=_rows,
    empty_title=gettext_lazy("No users yet"),
    empty_text=gettext_lazy("People who sign in. Create one and hand over the link."),
    create="user.write",
    entity_label=gettext_lazy("user"),
)


def _user_badges(state: UserState, locked: bool, page: ConsolePage) -> Sequence[Badge]:
    badge = Badge(page.translator.gettext(_STATE_LABELS[state]), "success" if state is UserState.ACTIVE else "")
    return [badge, Badge(page.translator.gettext("Locked"), "danger")] if locked else [badge]


class UserEditPage(EditPage[HumanUser]):
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

    def entity_values(self, user: HumanUser) -> dict[str, FieldValue]:
        user_name, *fields = self.form_fields
        profile = {
            form_field.name: form_field.format_value(getattr(user.profile, form_field.command_member))
            for form_field in fields
        }
        return {user_name.name: user.user_name, **profile, Form.VERSION_FIELD: str(user.version)}


#: Name and contact data; people change the rest on their account pages.
_EDIT = EditForm[HumanUser, ChangeHumanUser](
    fields=(*form_fields(HumanUser, HUMAN_USER_FIELDS), *form_fields(Profile, PROFILE_FIELDS)),
    command=ChangeHumanUser,
    change=lambda page, user, command, version: page.services.users.change(
        user.id, command, expected_version=version, principal=page.principal
    ),
)


def _deactivation_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    falls = page.services.deletion_impact(DeletionTarget.USER, user.id)
    ended = (
        ngettext_lazy("{n} session ends at once.", "{n} sessions end at once.", falls.sessions),
        ngettext_lazy("{n} live token stops working.", "{n} live tokens stop working.", falls.live_tokens),
    )
    signs_in = gettext_lazy("{name} cannot sign in any more.", name=user_subject(page, user).login_name)
    return [signs_in, *(message for message in ended if message.values["n"]), REACTIVATION_HINT]


def _reactivation_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    name = user_subject(page, user).login_name
    return [gettext_lazy("{name} can sign in again, with the password from before.", name=name)]


def _deletion_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    refused = gettext_lazy("This account is under a legal hold and cannot be deleted.")
    return [
        gettext_lazy("This cannot be undone. Applications will not know {name} any more."),
        refused if page.services.legal_holds.list_holds_on_user(user) else "",
    ]


_ACTIONS = (
    Deactivation[HumanUser](
        run=lambda page, user: page.services.users.deactivate(user.id, principal=page.principal),
        title=gettext_lazy("Deactivate the user “{name}”?"),
        description=gettext_lazy("The person is signed out and cannot sign in. You can reactivate it later."),
        impact=_deactivation_impact,
        submit_label=gettext_lazy("Deactivate user"),
    ),
    Reactivation[HumanUser](
        run=lambda page, user: page.services.users.reactivate(user.id, principal=page.principal),
        title=gettext_lazy("Reactivate the user “{name}”?"),
        description=gettext_lazy("The person can sign in again."),
        impact=_reactivation_impact,
        submit_label=gettext_lazy("Reactivate user"),
    ),
    Deletion[HumanUser](
        run=lambda page, user: page.services.users.remove(user.id, principal=page.principal),
        target=DeletionTarget.USER,
        confirm=lambda page, user: user.user_name,
        title=gettext_lazy("Delete the user “{name}”?"),
        description=gettext_lazy("Removes the account with its roles and sessions for ever."),
        impact=_deletion_impact,
        submit_label=gettext_lazy("Delete user"),
    ),
)

#: Lets the password be tried again everywhere.
_UNLOCK = Action[HumanUser](
    path="/unlock",
    run=lambda page, user: page.services.users.unlock(user.id, principal=page.principal),
    is_available=lambda page, user: bool(page.services.users.count_failed_attempts(user.id)),
    label=gettext_lazy("Unlock"),
    button=gettext_lazy("Unlock …"),
    description=gettext_lazy(
        "Forgets the wrong passwords that were tried. After a hundred in a row the password counts only in browsers"
        " that signed in before."
    ),
    title=gettext_lazy("Unlock the user “{name}”?"),
    impact=(
        gettext_lazy("The wrong passwords that were tried are forgotten: the password counts in every browser again."),
        gettext_lazy("Password, sessions and tokens stay as they are."),
    ),
    submit_label=gettext_lazy("Unlock user"),
    cancel_label=gettext_lazy("Keep it locked"),
    is_destructive=False,
)

#: Keeps an account whose deletion the person requested.
_CANCEL_DELETION = Action[HumanUser](
    path="/keep",
    run=lambda page, user: page.services.account_deletions.cancel(user.id, principal=page.principal),
    is_available=lambda page, user: user.deletion_at is not None,
    label=gettext_lazy("Keep"),
    button=gettext_lazy("Keep …"),
    description=gettext_lazy(
        "The person has asked for the account to be deleted. Signing in, they can keep it themselves."
    ),
    title=gettext_lazy("Keep the user “{name}”?"),
    impact=(
        gettext_lazy("The account is not deleted, although its person asked for it."),
        gettext_lazy("The person can sign in again as before."),
    ),
    submit_label=gettext_lazy("Keep user"),
    cancel_label=gettext_lazy("Let it be deleted"),
    is_destructive=False,
)

_PASSWORD_ACTIONS = (*CREDENTIAL_ACTIONS, _UNLOCK)


def _badges(page: DetailPage[HumanUser], user: HumanUser) -> Sequence[Badge]:
    locked = user.id in page.services.users.list_locked_ids([user], user_subject(page, user).organization)
    state = _user_badges(page.services.users.user_states([user])[user.id], locked, page)
    return [*state, *legal_hold_badges(page, user.organization_id)]


def _descriptions(page: DetailPage[HumanUser], user: HumanUser) -> Descriptions:
    ui, last = page.template_macros, user.last_sign_in_at
    return [
        (gettext_lazy("User id"), ui.identifier(user.id)),
        (gettext_lazy("Login name"), with_line_breaks(user_subject(page, user).login_name)),
        *page.field_descriptions(user.profile, PROFILE_FIELDS),
        (
            gettext_lazy("Last sign-in"),
            page.relative_time(None) if last is None else ui.when(last, relative=True, clock=True),
        ),
        (gettext_lazy("Created"), ui.when(user.created_at, relative=True)),
        (gettext_lazy("Will be deleted"), ui.when(user.deletion_at, relative=True) if user.deletion_at else ""),
        (
            gettext_lazy("Wrong passwords or codes in a row"),
            str(page.services.users.count_failed_attempts(user.id) or ""),
        ),
    ]


def _format_value(page: DetailPage[HumanUser], user: HumanUser, setting: EntityField, value: Any) -> object:
    if setting.name != "email":
        return format_value(page, user, setting, value)
    if not value:
        return page.render_placeholder(gettext_lazy("None"))
    t = page.translator.gettext
    badge = Badge(t("Confirmed"), "success") if user.profile.email_verified else Badge(t("Not confirmed"))
    return Markup("{} {}").format(with_line_breaks(value), page.render_badge(badge))


def _sections(page: DetailPage[HumanUser], user: HumanUser) -> Sections:
    return [
        page.action_section("deletion", gettext_lazy("Deletion"), [_CANCEL_DELETION]),
        page.action_section("password", gettext_lazy("Password"), _PASSWORD_ACTIONS if user.active else ()),
        factors_section(page, user),
        *_plugin_sections(page, user),
        page.list_section(SESSIONS),
        connected_applications_section(page, user),
        manager_roles_section(page, user.id),
        page.list_section(HELD_GRANTS),
        user_events_section(page, user.id),
        legal_hold_section(page, user.organization_id),
    ]


def _plugin_sections(page: ConsolePage, user: HumanUser) -> Iterator[ActionSection]:
    return page.call_console_hook(
        "console_user_sections", lambda item: item.to_page_section(page), principal=page.principal, user=user
    )


_PAGES = ResourcePages(
    type=USER,
    lead=lambda page, user: [gettext_lazy("User"), user_subject(page, user).login_name],
    badges=_badges,
    descriptions=_descriptions,
    sections=_sections,
    actions=_ACTIONS,
    more_actions=(*_PASSWORD_ACTIONS, _CANCEL_DELETION, RESET_FACTORS),
    format_value=_format_value,
)

ROUTES = (list_route(USERS, ORGANIZATION), edit_route(USER, _EDIT, UserEditPage), *_PAGES.routes())

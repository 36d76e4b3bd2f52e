"""Users (people): list, detail page, edit, deactivate and delete, second factors."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from identity.domain.attributes import AttributeDefinition, AttributeValue
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.enrolments import Enrolment
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser, Profile, Subject
from identity.http.endpoint_routes import request_context
from identity.pages.attribute_fields import AttributeFields
from identity.pages.forms import FieldValue, Form
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.actions import (
    REACTIVATION_HINT,
    AccessRevocation,
    Action,
    Deactivation,
    Deletion,
    Reactivation,
)
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.fields.users import HUMAN_USER_FIELDS, PROFILE_FIELDS
from identity.plugins.console.form_fields import FormField, change_field, form_fields
from identity.plugins.console.lists import Cells, OptionalColumn, ResourceList, list_route
from identity.plugins.console.page_sections import ActionSection, DescriptionListSection, Descriptions, TableSection
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
    format_value,
    list_tab,
)
from identity.plugins.console.resource_types import ORGANIZATION, SERVICE_USER, USER
from identity.plugins.console.resources.access import ACCESS_PATH, AccessPage
from identity.plugins.console.resources.activity import activity_tab
from identity.plugins.console.resources.audit_events import user_events_section
from identity.plugins.console.resources.impersonation import IMPERSONATE
from identity.plugins.console.resources.legal_holds import legal_hold_badges, legal_hold_section
from identity.plugins.console.resources.selected_users import USER_BULK_ACTIONS
from identity.plugins.console.resources.sent_mails import USER_MAILS
from identity.plugins.console.resources.sessions import SESSIONS, connected_applications_section
from identity.plugins.console.resources.user_credentials import CREDENTIAL_ACTIONS, user_subject
from identity.plugins.console.selected_rows import selected_rows_routes
from identity.plugins.console.user_form import UserFormPage
from identity.services.commands.users import ChangeHumanUser
from identity.services.users import UserState
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.users import UserKind

_STATE_LABELS = {
    UserState.ACTIVE: _("Active"),
    UserState.MUST_CHANGE_PASSWORD: _("Must change password"),
    UserState.INVITED: _("Invited"),
    UserState.DEACTIVATED: _("Deactivated"),
    UserState.LEAVING: _("Deletion pending"),
}


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[Any]:
    return page.services.storage.users.page(page.entity_of(Organization).id, UserKind.HUMAN, request)


def _rows(page: ConsolePage, users: Sequence[HumanUser]) -> Sequence[Cells]:
    ui, organization = page.template_macros, page.entity_of(Organization)
    states = page.services.users.user_states(users)
    locked = page.services.users.list_locked_ids(users, organization)
    return [
        (
            page.components.named(
                user.display_name,
                USER.path_of(user),
                sub=with_line_breaks(user.profile.email) if user.profile.email else "",
            ),
            Markup(" ").join(map(page.render_badge, _user_badges(states[user.id], user.id in locked, page))),
            with_line_breaks(Subject(user, organization).login_name),
            page.relative_time(user.last_sign_in_at),
            ui.when(user.created_at),
        )
        for user in users
    ]


def _optional_columns(page: ConsolePage) -> Sequence[OptionalColumn[HumanUser]]:
    """Contact data, and the attributes of the organization, which the pages of its users show as well."""
    definitions = page.services.attributes.list_definitions(page.entity_of(Organization).id)
    read_once: dict[str, Mapping[str, AttributeValue]] = {}

    def attribute_cells(
        page: ConsolePage, users: Sequence[HumanUser], *, definition: AttributeDefinition
    ) -> Sequence[object]:
        if not read_once:
            read_once.update(page.services.attributes.user_values(users))
        facts = [AttributeFields.describe([definition], read_once[user.id], page.translator) for user in users]
        return [described[0][1] if described else "" for described in facts]

    return [
        OptionalColumn("email", _("Email"), lambda page, users: [with_line_breaks(u.profile.email) for u in users]),
        OptionalColumn("phone", _("Phone"), lambda page, users: [user.profile.phone for user in users]),
        OptionalColumn("id", _("User id"), lambda page, users: [page.template_macros.code(user.id) for user in users]),
        *(
            OptionalColumn(f"attribute.{item.key}", item.label, partial(attribute_cells, definition=item))
            for item in definitions
        ),
    ]


USERS = ResourceList(
    path="/users",
    permission="user.read",
    section="users",
    title=_("Users"),
    lead=_("People who sign in."),
    columns=(_("Name"), _("State"), _("Login name"), _("Last sign-in"), _("Created")),
    optional_columns=_optional_columns,
    sort_orders=(
        ("user_name", _("Login name")),
        ("display_name", _("Name")),
        ("email", _("Email")),
        ("last_sign_in_at", _("Last sign-in")),
        ("created_at", _("Created")),
    ),
    fetch=_fetch,
    rows=_rows,
    empty_title=_("No users yet"),
    empty_text=_("People who sign in. Create one and hand over the link."),
    create="user.write",
    bulk=USER_BULK_ACTIONS,
    entity_label=_("user"),
    action=lambda page: page.button_link(
        _("Import"), f"{page.request.path}/import", hidden_label=_("Users"), permission="user.write"
    ),
)


def _user_badges(state: UserState, locked: bool, page: ConsolePage) -> Sequence[Badge]:
    badge = Badge(page.translator.gettext(_STATE_LABELS[state]), "success" if state is UserState.ACTIVE else "")
    return [badge, Badge(page.translator.gettext("Locked"), "danger")] if locked else [badge]


class UserEditPage(EditPage[HumanUser], UserFormPage):
    def visible_fields(self) -> Sequence[FormField]:
        profile = self.entity.profile
        if not profile.email_verified:
            return self.form_fields
        verified = self.translator.gettext("{email} is confirmed.", email=profile.email) + " "
        hint = verified + self.translate(PROFILE_FIELDS["email"].hint)
        return change_field(self.form_fields, "email", hint=hint)

    def entity_values(self, user: HumanUser) -> dict[str, FieldValue]:
        user_name, *fields = self.form_fields
        profile = {field.name: field.format_value(getattr(user.profile, field.command_member)) for field in fields}
        attributes = self.attribute_values(user)
        return {user_name.name: user.user_name, **profile, **attributes, Form.VERSION_FIELD: str(user.version)}


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
    signs_in = _("{name} can no longer sign in.", name=user_subject(page, user).login_name)
    return [signs_in, *(message for message in ended if message.values["n"]), REACTIVATION_HINT]


def _reactivation_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    name = user_subject(page, user).login_name
    return [_("{name} can sign in again, with the password from before.", name=name)]


def _deletion_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    refused = _("This account is under a legal hold and cannot be deleted.")
    return [
        _("This cannot be undone. Applications will no longer recognise {name}."),
        refused if page.services.legal_holds.list_holds_on_user(user) else "",
    ]


_ACTIONS = (
    Deactivation[HumanUser](
        run=lambda page, user: page.services.users.deactivate(user.id, principal=page.principal),
        title=_("Deactivate the user “{name}”?"),
        description=_("The person is signed out and cannot sign in. You can reactivate the account later."),
        impact=_deactivation_impact,
        submit_label=_("Deactivate user"),
    ),
    AccessRevocation[HumanUser](
        run=lambda page, entity: page.services.access_revocations.revoke_user(entity.id, principal=page.principal),
        target=DeletionTarget.USER,
        confirm=lambda page, user: user.user_name,
    ),
    Reactivation[HumanUser](
        run=lambda page, user: page.services.users.reactivate(user.id, principal=page.principal),
        title=_("Reactivate the user “{name}”?"),
        description=_("The person can sign in again."),
        impact=_reactivation_impact,
        submit_label=_("Reactivate user"),
    ),
    Deletion[HumanUser](
        run=lambda page, user: page.services.users.remove(user.id, principal=page.principal),
        target=DeletionTarget.USER,
        confirm=lambda page, user: user.user_name,
        title=_("Delete the user “{name}”?"),
        description=_("Permanently removes the account with its roles and sessions."),
        impact=_deletion_impact,
        submit_label=_("Delete user"),
    ),
)

#: Lets the password be tried again everywhere.
_UNLOCK = Action[HumanUser](
    path="/unlock",
    run=lambda page, user: page.services.users.unlock(user.id, principal=page.principal),
    is_available=lambda page, user: bool(page.services.users.count_failed_attempts(user.id)),
    label=_("Unlock"),
    button=_("Unlock …"),
    description=_(
        "Resets the count of wrong passwords. After a hundred in a row, the password works "
        "only in browsers that have signed in before."
    ),
    title=_("Unlock the user “{name}”?"),
    impact=(
        _("The count of wrong passwords is reset: the password works in every browser again."),
        _("Password, sessions and tokens stay as they are."),
    ),
    back="/security",
    submit_label=_("Unlock user"),
    cancel_label=_("Keep it locked"),
    is_destructive=False,
)

#: Keeps an account whose deletion the person requested.
_CANCEL_DELETION = Action[HumanUser](
    path="/keep",
    run=lambda page, user: page.services.account_deletions.cancel(user.id, principal=page.principal),
    is_available=lambda page, user: user.deletion_at is not None,
    label=_("Keep"),
    button=_("Keep …"),
    description=_("The person asked for the account to be deleted. They can sign in and keep it."),
    title=_("Keep the user “{name}”?"),
    impact=(
        _("The account is not deleted, although its owner asked for it."),
        _("The person can sign in again as before."),
    ),
    submit_label=_("Keep user"),
    cancel_label=_("Delete it as planned"),
    is_destructive=False,
)

_FACTORS_SECTION_ID = "second-factors"


def _factors_section(page: ConsolePage, user: HumanUser) -> TableSection:
    """The enrolments, with a button to reset them if permitted."""
    ui, enrolments = page.template_macros, page.services.factors.list_enrolments(user.id)
    rows = [
        (*_enrolment_labels(page, enrolment), ui.when(enrolment.added_at), page.relative_time(enrolment.last_used_at))
        for enrolment in enrolments
    ]
    reset = page.button_link(
        _("Reset …"),
        f"{USER.path_of(user)}{_RESET_FACTORS.path}",
        hidden_label=page.translator.gettext("Second factors"),
    )
    return TableSection(
        _FACTORS_SECTION_ID,
        _("Second factors"),
        _("How the person proves who they are, in addition to the password. Only they can see the details."),
        reset if enrolments and page.has_permission("user.write") else Markup(),
        columns=(_("Name"), _("Added"), _("Last used")),
        rows=[(ui.named(ui.bold(name), sub=sub), added, used) for name, sub, added, used in rows],
        empty=_("The person has not set up any."),
    )


def _enrolment_labels(page: ConsolePage, enrolment: Enrolment) -> tuple[str, str]:
    """The label and its details."""
    factor = request_context(page.request).protocol.factors.get(enrolment.factor)
    label = enrolment.factor if factor is None else page.translator.gettext(factor.label)
    if enrolment.name and enrolment.name != label:
        return enrolment.name, label
    return label, "" if factor is None else page.translator.gettext(factor.status_text(enrolment))


def _factors_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    enrolments = page.services.factors.list_enrolments(user.id)
    if not enrolments:
        return [_("The person has not set up any.")]
    named = page.translator.format_list([_enrolment_labels(page, enrolment)[0] for enrolment in enrolments])
    return [
        _("These are removed: {factors}.", factors=named),
        _("Browsers are no longer remembered."),
        _("Where one is required, the person sets up another at the next sign-in, with only the password."),
        _("Password and sessions stay as they are. The person is informed by mail."),
    ]


#: Removes all factors of a person who lost them.
_RESET_FACTORS = Action[HumanUser](
    path="/factors/reset",
    run=lambda page, user: page.services.users.reset_factors(user.id, principal=page.principal),
    title=_("Reset the second factors of {name}?"),
    impact=_factors_impact,
    submit_label=_("Reset second factors"),
    cancel_label=_("Keep them"),
    back=f"/security#{_FACTORS_SECTION_ID}",
)

#: Stops the programs that act for the person.
_STOP_AGENTS = Action[HumanUser](
    path="/stop-agents",
    run=lambda page, user: page.services.agents.stop_all_of(user.id, principal=page.principal),
    is_available=lambda page, user: any(
        agent.stopped_at is None for agent in page.services.agents.list_by_owner(user.id)
    ),
    label=_("Stop agents"),
    button=_("Stop agents …"),
    description=_("Stops all programs that act for the person."),
    title=_("Stop all agents of {name}?"),
    impact=(
        _("Their tokens end at once, and they get no new ones."),
        _("The person can confirm each of them again."),
    ),
    back="/security",
    submit_label=_("Stop agents"),
    cancel_label=_("Let them act"),
    is_destructive=False,
)


def _agents_section(page: DetailPage[HumanUser], user: HumanUser) -> TableSection | None:
    """The programs that act for the person; None without any, or if the caller may not read service users."""
    found = page.services.agents.list_by_owner(user.id) if page.has_permission("service_user.read") else ()
    if not found:
        return None
    is_stoppable = page.has_permission("user.write") and _STOP_AGENTS.is_available(page, user)
    stop = page.button_link(_STOP_AGENTS.button, f"{USER.path_of(user)}{_STOP_AGENTS.path}")
    return TableSection(
        "agents",
        _("Agents"),
        _("Programs that act for the person. Only the person creates them and their keys."),
        stop if is_stoppable else Markup(),
        columns=(_("Name"), _("State"), _("Created")),
        rows=[
            (
                page.components.named(agent.display_name, SERVICE_USER.path_of(agent), square=True),
                page.render_badge(
                    Badge(page.translator.gettext("Stopped"), "warning")
                    if agent.stopped_at is not None
                    else state_badge(agent.active, page.translator)
                ),
                page.template_macros.when(agent.created_at),
            )
            for agent in found
        ],
    )


_PASSWORD_ACTIONS = (*CREDENTIAL_ACTIONS, _UNLOCK)


def _badges(page: DetailPage[HumanUser], user: HumanUser) -> Sequence[Badge]:
    locked = user.id in page.services.users.list_locked_ids([user], user_subject(page, user).organization)
    state = _user_badges(page.services.users.user_states([user])[user.id], locked, page)
    return [*state, *legal_hold_badges(page, user.organization_id)]


def _descriptions(page: DetailPage[HumanUser], user: HumanUser) -> Descriptions:
    ui, last = page.template_macros, user.last_sign_in_at
    return [
        (_("Last sign-in"), page.relative_time(None) if last is None else ui.when(last, relative=True, clock=True)),
        (_("Created"), ui.when(user.created_at)),
        (_("Will be deleted"), ui.when(user.deletion_at, relative=True) if user.deletion_at else ""),
        (_("Wrong passwords or codes in a row"), str(page.services.users.count_failed_attempts(user.id) or "")),
        (_("User id"), ui.identifier(user.id)),
    ]


def _format_value(page: DetailPage[HumanUser], user: HumanUser, setting: EntityField, value: object) -> object:
    if setting.name != "email":
        return format_value(page, user, setting, value)
    email, t = user.profile.email, page.translator.gettext
    if not email:
        return page.render_placeholder(_("None"))
    badge = Badge(t("Confirmed"), "success") if user.profile.email_verified else Badge(t("Not confirmed"))
    return Markup("{} {}").format(with_line_breaks(email), page.render_badge(badge))


def _profile_sections(page: DetailPage[HumanUser], user: HumanUser) -> Sections:
    facts = [
        (_("Login name"), with_line_breaks(user_subject(page, user).login_name)),
        *page.field_descriptions(user.profile, PROFILE_FIELDS),
    ]
    return [
        page.action_section("deletion", _("Deletion"), [_CANCEL_DELETION]),
        DescriptionListSection("profile", _("Profile"), facts=facts),
        _attributes_section(page, user),
        legal_hold_section(page, user.organization_id),
    ]


def _attributes_section(page: DetailPage[HumanUser], user: HumanUser) -> DescriptionListSection | None:
    """The attributes of the organization that have a value; None if it defines none."""
    definitions = page.services.attributes.list_definitions(user.organization_id)
    if not definitions:
        return None
    values = page.services.attributes.user_values([user])[user.id]
    facts = AttributeFields.describe(definitions, values, page.translator)
    lead = "" if facts else _("The person has no values yet.")
    return DescriptionListSection("attributes", _("Attributes"), lead, facts=facts)


def _security_sections(page: DetailPage[HumanUser], user: HumanUser) -> Sections:
    return [
        page.action_section("password", _("Password"), _PASSWORD_ACTIONS if user.active else ()),
        _factors_section(page, user),
        _agents_section(page, user),
        *_plugin_sections(page, user),
    ]


def _plugin_sections(page: ConsolePage, user: HumanUser) -> Iterator[ActionSection]:
    return page.call_console_hook(
        "console_user_sections", lambda item: item.to_page_section(page), principal=page.principal, user=user
    )


_PAGES = ResourcePages(
    type=USER,
    lead=lambda page, user: [user_subject(page, user).login_name],
    badges=_badges,
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Profile"), sections=_profile_sections),
        ResourceTab(label=_("Access"), path=ACCESS_PATH, page=AccessPage),
        ResourceTab(label=_("Security"), path="/security", sections=_security_sections),
        list_tab(SESSIONS, sections=lambda page, user: [connected_applications_section(page, user)]),
        activity_tab(lambda page, user: [user_events_section(page, user.id), page.list_section(USER_MAILS)]),
    ),
    avatar=lambda page, user: user.display_name,
    is_person=True,
    actions=(IMPERSONATE, *_ACTIONS),
    more_actions=(*_PASSWORD_ACTIONS, _CANCEL_DELETION, _RESET_FACTORS, _STOP_AGENTS),
    format_value=_format_value,
)

ROUTES = (
    list_route(USERS, ORGANIZATION),
    *selected_rows_routes(USERS, ORGANIZATION),
    edit_route(USER, _EDIT, UserEditPage),
    *_PAGES.routes(),
)

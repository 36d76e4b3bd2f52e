"""Sessions of a user, and applications that are connected to the account: lists, ending and disconnecting them."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from markupsafe import Markup

from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.sessions import Session
from identity.domain.tokens import ConnectedApplication
from identity.domain.users import HumanUser
from identity.pages.user_agents import describe_user_agent
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import ConsolePage, find_child
from identity.plugins.console.lists import Cells, ResourceList
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import USER
from identity.storage.paging import ResultPage


def _sessions(page: ConsolePage) -> tuple[Session, ...]:
    return page.services.users.list_sessions(page.entity_of(HumanUser).id)


def _rows(page: ConsolePage, sessions: Sequence[Session]) -> Sequence[Cells]:
    ui, path = page.template_macros, f"{USER.path_of(page.entity_of(HumanUser))}/sessions"
    may_end, rows = page.has_permission("session.delete"), []
    managers = page.services.impersonations.list_impersonators(sessions)
    for session in sessions:
        device = describe_user_agent(session.user_agent, page.translator)
        label = Markup("{} {}").format(device, session.client_address)
        end = page.row_buttons(f"{path}/{session.id}", label, remove=_("End …"), change=False)
        rows.append(
            (
                Markup("{} {}").format(ui.bold(device), _impersonator_badge(page, session, managers)),
                session.client_address or page.render_placeholder(_("Unknown")),
                ui.when(session.started_at, clock=True),
                ui.ago(session.last_seen_at),
                end if may_end else "",
            )
        )
    return rows


def _impersonator_badge(page: ConsolePage, session: Session, managers: Mapping[str, str]) -> Markup:
    """Names the manager who is signed in as the person; empty if the person is."""
    if session.impersonator_id is None:
        return Markup()
    name = managers[session.impersonator_id]
    return page.render_badge(Badge(page.translator.gettext("By {manager}", manager=name), "warning"))


def _end_all_button(page: ConsolePage) -> Markup:
    path = f"{USER.path_of(page.entity_of(HumanUser))}/sessions/delete"
    button = page.button_link(_("End all sessions …"), path, permission="session.delete")
    return button if _sessions(page) else Markup()


#: Live sessions, last seen first; not paged, because there are few.
SESSIONS = ResourceList(
    path="/sessions",
    permission="session.read",
    title=_("Sessions"),
    lead=_("Where the person is signed in."),
    columns=(_("Device"), _("Place"), _("Signed in"), _("Last seen")),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: ResultPage(_sessions(page)),
    rows=_rows,
    empty_title=_("No sessions"),
    empty_text=_("The person is not signed in anywhere."),
    action=_end_all_button,
    section_empty=_("The person is not signed in anywhere."),
)

_SESSION = USER.child(
    "/sessions/{session}",
    Session,
    permission_prefix="session",
    message_values=lambda page, session: {
        "name": page.entity_of(HumanUser).display_name,
        "device": describe_user_agent(session.user_agent, page.translator),
    },
    find=lambda page: find_child(page, _sessions(page), "session", lambda session: session.id),
)

_END = Action[Session](
    path="/delete",
    permission="delete",
    run=lambda page, session: page.services.users.end_session(
        page.entity_of(HumanUser).id, session.id, principal=page.principal
    ),
    title=_("Sign {name} out of {device}?"),
    impact=(_("Applications that were opened in this session lose access at once, unless they stay connected."),),
    submit_label=_("End session"),
    cancel_label=_("Stay signed in"),
    back=SESSIONS.path,
    is_destructive=False,
)


def _end_all_impact(page: ConsolePage, user: HumanUser) -> Sequence[str]:
    return [
        ngettext_lazy("{n} session ends at once.", "{n} sessions end at once.", len(_sessions(page))),
        _("The password stays as it is."),
    ]


_END_ALL = Action[HumanUser](
    path="/sessions/delete",
    permission="session.delete",
    run=lambda page, user: page.services.users.end_sessions(user.id, principal=page.principal),
    title=_("Sign {name} out everywhere?"),
    impact=_end_all_impact,
    submit_label=_("End all sessions"),
    cancel_label=_("Stay signed in"),
    back=SESSIONS.path,
    is_destructive=False,
)


def connected_applications_section(page: ConsolePage, user: HumanUser) -> TableSection | None:
    """None if the caller may not see them."""
    if not page.has_permission("session.read"):
        return None
    ui, may_end = page.template_macros, page.has_permission("session.delete")
    rows = []
    for connection in page.services.users.list_connected_applications(user.id):
        application = connection.client.application
        name, path = application.name, f"{USER.path_of(user)}/connections/{quote(application.path_id)}"
        rows.append(
            (
                page.components.named(name, sub=connection.client.organization_name, square=True),
                ui.when(connection.since),
                ui.ago(connection.last_used_at),
                page.row_buttons(path, name, remove=_("Disconnect …"), change=False) if may_end else "",
            )
        )
        rows.extend(
            (
                page.translator.gettext(
                    "Device at {address}", address=device.address or page.translator.gettext("Unknown")
                ),
                ui.when(device.since, clock=True),
                ui.ago(device.last_used_at),
                "",
            )
            for device in connection.devices
        )
    return TableSection(
        "connections",
        _("Applications"),
        _("Applications that have access to the account, or can get it without asking the person again."),
        columns=(_("Application"), _("Since"), _("Last used")),
        rows=rows,
        has_row_buttons=True,
        empty=_("No application has access to the account."),
    )


def _find_connection(page: ConsolePage) -> ConnectedApplication:
    """Raises NotFound."""
    connections = page.services.users.list_connected_applications(page.entity_of(HumanUser).id)
    return find_child(page, connections, "application", lambda connection: connection.client.application.path_id)


_CONNECTION = USER.child(
    "/connections/{application}",
    ConnectedApplication,
    permission_prefix="session",
    message_values=lambda page, connection: {
        "application": connection.client.application.name,
        "name": page.entity_of(HumanUser).display_name,
    },
    find=_find_connection,
)

#: Revokes the application's access and forgets the person's consent.
_DISCONNECT = Action[ConnectedApplication](
    path="/delete",
    permission="delete",
    run=lambda page, connection: page.services.users.disconnect_application_as_manager(
        page.entity_of(HumanUser).id, connection.client.id, principal=page.principal
    ),
    title=_("Disconnect {application} from {name}?"),
    impact=(_("It loses access to the account at once and must ask the person again."),),
    submit_label=_("Disconnect application"),
    back=f"{SESSIONS.path}#connections",
    is_destructive=False,
)

ROUTES = (
    *action_routes(USER, _END_ALL),
    *action_routes(_SESSION, _END),
    *action_routes(_CONNECTION, _DISCONNECT),
)

"""Sessions of a user: the list, ending one or all."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.sessions import Session
from identity.http import route_contexts
from identity.pages.user_agents import describe_user_agent
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.console_page import find_child
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.resource_page import UserResourcePage
from identity.plugins.console.routes import ConsoleRoute
from identity.storage.paging import PageRequest, ResultPage


class SessionListPage(UserResourcePage, ListPage):
    """Live sessions, last seen first."""

    back_path_suffix = "/sessions"

    columns = (gettext_lazy("Device"), gettext_lazy("Place"), gettext_lazy("Signed in"), gettext_lazy("Last seen"))
    has_row_buttons = True
    is_searchable = False
    title = gettext_lazy("Sessions")
    lead = gettext_lazy("Where the person is signed in.")
    empty_title = gettext_lazy("No sessions")
    empty_text = section_empty = gettext_lazy("The person is not signed in anywhere.")
    read_permission, is_created_from_section = "session.read", True
    section_id, all_link_label = "sessions", gettext_lazy("All sessions …")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Session]:
        """Not paged: there are few."""
        return ResultPage(self.services.users.list_sessions(self.entity.id))

    def build_cells(self, session: Session) -> Cells:
        where, may_end = describe_user_agent(session.user_agent, self.translator), self.has_permission("session.delete")
        label = Markup("{} {}").format(where, session.client_address)
        return (
            self.template_macros.bold(where),
            session.client_address or self.render_placeholder(gettext_lazy("Unknown")),
            self.template_macros.when(session.started_at, clock=True),
            self.template_macros.ago(session.last_seen_at),
            self.row_buttons(f"{self.list_path}/{session.id}", label, remove=gettext_lazy("End …"), change=False)
            if may_end
            else "",
        )

    def filter_variables(self) -> Mapping[str, object]:
        return {"beside": self.create_button()}

    def create_button(self, kind: str = "") -> Markup:
        live = self.services.users.list_sessions(self.entity.id)
        if not live or not self.has_permission("session.delete"):
            return Markup()
        return self.button_link(gettext_lazy("End all sessions …"), f"{self.list_path}/delete")


class _EndSessionsPage(UserResourcePage, ActionPage):
    back_path_suffix = "#sessions"
    is_destructive = False
    cancel_label = gettext_lazy("Stay signed in")


class EndSessionPage(_EndSessionsPage):
    title = gettext_lazy("Sign {name} out of {device}?")
    impact = (
        gettext_lazy("Applications that were opened in this session lose access at once, unless they stay connected."),
    )
    submit_label = gettext_lazy("End session")

    @property
    def session(self) -> Session:
        """Raises NotFound."""
        session: Session = find_child(self, self.services.users.list_sessions(self.entity.id), "session")
        return session

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"name": self.entity_name, "device": describe_user_agent(self.session.user_agent, self.translator)}

    def perform(self) -> None:
        self.services.users.end_session(self.entity.id, self.session.id, principal=self.principal)


class EndAllSessionsPage(_EndSessionsPage):
    title = gettext_lazy("Sign {name} out everywhere?")
    submit_label = gettext_lazy("End all sessions")

    @property
    def impact(self) -> Sequence[str]:
        count = len(self.services.users.list_sessions(self.entity.id))
        return [
            ngettext_lazy("{n} session ends at once.", "{n} sessions end at once.", count),
            gettext_lazy("The password stays as it is."),
        ]

    def perform(self) -> None:
        self.services.users.end_sessions(self.entity.id, principal=self.principal)


_ALL = "/users/{user}/sessions"

ROUTES = (
    ConsoleRoute(_ALL, SessionListPage, "session.read", route_contexts.user_context),
    ConsoleRoute(f"{_ALL}/delete", EndAllSessionsPage, "session.delete", route_contexts.user_context),
    ConsoleRoute(f"{_ALL}/{{session}}/delete", EndSessionPage, "session.delete", route_contexts.user_context),
)

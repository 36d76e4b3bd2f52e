"""/account/sessions: the user's sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from pyramid.response import Response

from identity.api.pages import Form, FormPage, describe_user_agent
from identity.plugins.account.pages.account_page import SESSIONS_PATH, AccountPage

#: The field with a session's id, and the button for all other sessions.
SESSION_FIELD, OTHERS_FIELD = "session", "others"


@dataclass(frozen=True)
class SessionRow:
    id: str
    device: Markup
    client_address: str
    started_at: datetime
    last_seen_at: datetime
    is_current: bool


class SessionsPage(AccountPage, FormPage):
    """One row per session, with a button to end it."""

    template = "account/sessions.html"
    section = SESSIONS_PATH

    def template_variables(self) -> Mapping[str, object]:
        current_session_id, translator = self.signed_in_account.session.id, self.translator
        rows = [
            SessionRow(
                id=item.id,
                device=describe_user_agent(item.user_agent, translator),
                client_address=item.client_address,
                started_at=item.started_at,
                last_seen_at=item.last_seen_at,
                is_current=item.id == current_session_id,
            )
            for item in self.request.services.sessions.list_by_user(self.subject.user.id)
        ]
        return {"rows": sorted(rows, key=lambda row: not row.is_current)}

    def submit(self, form: Form) -> Response:
        """End one session, or all but this one. Raises NotFound for a session of another user."""
        sessions, current_session_id = self.request.services.sessions, self.signed_in_account.session.id
        if OTHERS_FIELD in form:
            sessions.end_all(self.subject, except_session=current_session_id)
            return self.redirect(self.path_with_flash(SESSIONS_PATH))
        ended = form.text(SESSION_FIELD)
        sessions.end_by_id(self.subject, ended)
        if ended != current_session_id:
            return self.redirect(self.path_with_flash(SESSIONS_PATH))
        return self.without_session_cookie(self.redirect(self.SIGNED_OUT_PATH))

"""/account/sessions: the user's sessions."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.pages import Form, FormPage, describe_user_agent
from identity.plugins.account.pages.account_page import SESSIONS_PATH, AccountPage

#: The field with a session's id, and the button for all other sessions.
SESSION_FIELD, OTHERS_FIELD = "session", "others"


class SessionsPage(AccountPage, FormPage):
    """One row per session, with a button to end it."""

    template = "account/sessions.html"
    section = SESSIONS_PATH

    def template_variables(self) -> Mapping[str, object]:
        """The sessions, this one first, with their browsers."""
        current_id, sessions = self.signed_in_account.session.id, self.request.services.sessions
        found = sorted(sessions.list_by_user(self.subject.user.id), key=lambda session: session.id != current_id)
        rows = [(session, describe_user_agent(session.user_agent, self.translator)) for session in found]
        managers = self.request.services.impersonations.list_impersonators(found)
        return {"rows": rows, "current_id": current_id, "managers": managers}

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

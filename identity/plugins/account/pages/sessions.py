"""/account/sessions: where the person is signed in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from pyramid.response import Response

from identity.http.cookies import headers_for
from identity.pages.devices import device
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import SESSIONS, AccountPage
from identity.provider.endpoints.end_session import SIGNED_OUT
from identity.provider.request import Cookie, CookieKind

#: The field that names a session, and the one that means all but this one.
SESSION, OTHERS = "session", "others"


@dataclass(frozen=True)
class Row:
    """A session as the list shows it."""

    id: str
    device: Markup
    place: str
    started_at: datetime
    last_seen_at: datetime
    here: bool


class Sessions(AccountPage, FormPage):
    """One row a session, and a button in each that ends it."""

    template = "account/sessions.html"
    section = SESSIONS

    def show(self) -> Mapping[str, object]:
        here, words = self.account.session.id, self.words
        rows = [
            Row(
                id=one.id,
                device=device(one.user_agent, words),
                place=one.client_address,
                started_at=one.started_at,
                last_seen_at=one.last_seen_at,
                here=one.id == here,
            )
            for one in self.request.services.sessions.of_user(self.subject.user.id)
        ]
        return {"rows": sorted(rows, key=lambda row: not row.here)}

    def submit(self, form: Form) -> Response:
        """End one session, or all but this one. Raises NotFound for what is not a session of this person."""
        sessions, here = self.request.services.sessions, self.account.session.id
        if OTHERS in form:
            sessions.end_all_of(self.subject, but=here)
            return self.redirect(self.done(SESSIONS))
        ended = form.one(SESSION)
        sessions.end_one_of(self.subject, ended)
        if ended != here:
            return self.redirect(self.done(SESSIONS))
        response = self.redirect(SIGNED_OUT)
        for name, value in headers_for(self.request, (Cookie(CookieKind.SESSION, here),)):
            response.headers.add(name, value)
        return response

"""/account/activity: what was done as the person and to their account; and what to do if it was somebody else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.audit import SIGN_IN_REFUSED, ActorKind, AuditEvent, AuditFilter, Result
from identity.domain.words import say
from identity.http.cookies import headers_for
from identity.http.endpoints import context_of
from identity.http.lists import CURSOR, asked_page, next_cursor, total_of
from identity.http.sign_ins import sign_in_anew
from identity.pages.devices import device
from identity.pages.event_words import EVENT_WORDS, REASON_WORDS, factor_words
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import ACTIVITY, NOT_ME, SECURITY, AccountPage
from identity.provider.request import Cookie, CookieKind

#: Names the entry that was somebody else's doing.
EVENT = "event"

_ON_A_PAGE = 25
#: Who else may have acted; where they were is none of the person's business.
_OTHERS = {
    ActorKind.USER: say("By a manager"),
    ActorKind.CLIENT: say("By an application"),
    ActorKind.OPERATOR: say("By the people who run this service"),
    ActorKind.SYSTEM: say("By the service itself"),
}


@dataclass(frozen=True)
class Row:
    """An entry as the list shows it. ``not_me`` is where to say that it was somebody else; empty where it was."""

    what: Markup
    note: Markup
    at: datetime
    device: Markup
    place: str
    not_me: str


class Activity(AccountPage):
    """One row an entry, newest first."""

    template = "account/activity.html"
    section = ACTIVITY

    def show(self) -> Mapping[str, object]:
        """One page of the list. Raises Invalid for a cursor that is none."""
        asked = asked_page(self.request, usual=_ON_A_PAGE)
        wanted = AuditFilter(party_id=self.subject.user.id)
        found = self.request.services.audit_trail.page(wanted, asked)
        cursor = next_cursor(self.request, found.next)
        return {
            "rows": self._rows(found.items),
            "total": total_of(self.request, found),
            "first": ACTIVITY if asked.cursor is not None else "",
            "next": "" if cursor is None else f"{ACTIVITY}?{urlencode({CURSOR: cursor})}",
        }

    def _rows(self, events: Sequence[AuditEvent]) -> list[Row]:
        storage = self.request.services.storage
        clients = {one.actor.client_id for one in events} | {
            one.object_id for one in events if one.object_kind == "application"
        }
        applications = storage.applications.find_many({one for one in clients if one is not None})
        names = {key: one.name for key, one in applications.items()}
        agents = {one: self._user_agent(one) for one in {event.actor.session_id for event in events} if one}
        return [self._row(one, names, agents) for one in events]

    def _user_agent(self, session_id: str) -> str:
        """What the browser of a session said of itself; empty once it is forgotten, or for somebody else's."""
        session = self.request.services.storage.sessions.find(session_id)
        return session.user_agent if session is not None and session.user_id == self.subject.user.id else ""

    def _row(self, event: AuditEvent, names: Mapping[str, str], agents: Mapping[str, str]) -> Row:
        actor, words = event.actor, self.words
        own = actor.id == self.subject.user.id
        theirs = own or actor.kind is ActorKind.ANONYMOUS
        agent = (str(event.detail.get("browser", "")) or agents.get(actor.session_id or "", "")) if theirs else ""
        refused = theirs and event.event == SIGN_IN_REFUSED and event.object_id == self.subject.user.id
        disowned = refused or (own and event.result is Result.SUCCESS)
        return Row(
            what=words.t(EVENT_WORDS.get(event.event, event.event)),
            note=self._note(event, names, own=own),
            at=event.at,
            device=device(agent, words) if agent else Markup(),
            place=(actor.client_address or "") if theirs else "",
            not_me=f"{NOT_ME}?{urlencode({EVENT: event.id})}" if disowned else "",
        )

    def _note(self, event: AuditEvent, names: Mapping[str, str], *, own: bool) -> Markup:
        """Who it was if somebody else, which factor it was about, why it was refused, and by which application."""
        t = self.words.t
        about = event.object_id if event.object_kind == "application" else event.actor.client_id
        said = (
            "" if own else t(_OTHERS.get(event.actor.kind, "")),
            factor_words(event, context_of(self.request).protocol.factors, self.words),
            t(REASON_WORDS.get(event.reason or "", "")),
            names.get(about or "", ""),
        )
        return Markup(" · ").join(one for one in said if one)


class NotMe(AccountPage, FormPage):
    """Asks first, and then puts everybody out, whoever asks included: a session proves nothing now."""

    template = "account/not_me.html"
    section = ACTIVITY

    def show(self) -> Mapping[str, object]:
        """What was done, if an entry is named. Raises NotFound for one of others."""
        event_id = self.request.GET.get(EVENT, "")
        if not event_id:
            return {"what": None, "has_password": self._has_password}
        event: AuditEvent = self.request.services.own_account.event(self.subject, event_id)
        what = self.words.t(EVENT_WORDS.get(event.event, event.event))
        return {"what": what, "at": event.at, "has_password": self._has_password}

    @property
    def _has_password(self) -> bool:
        return self.request.services.storage.users.find_password(self.subject.user.id) is not None

    def submit(self, form: Form) -> Response:
        """End everything, and ask for the password that is then to be changed."""
        self.request.services.own_account.report(self.subject, event_id=self.request.GET.get(EVENT, ""))
        login_name = self.subject.login_name if self._has_password else ""
        response = sign_in_anew(self.request, target=SECURITY, login_name=login_name)
        for name, value in headers_for(self.request, (Cookie(CookieKind.SESSION, self.account.session.id),)):
            response.headers.add(name, value)
        return response

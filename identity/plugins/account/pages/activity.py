"""/account/activity: the account's audit events, and a way to report access by others."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.pages import EventLabels, Form, FormPage, ListParameters, describe_user_agent, gettext_lazy
from identity.api.services import ActorKind, AuditEvent, AuditFilter, Result
from identity.plugins.account.pages.account_page import ACCOUNT_RECOVERY_PATH, ACTIVITY_PATH, SECURITY_PATH, AccountPage

#: Names the event to report.
EVENT_PARAM = "event"

_PAGE_SIZE = 25
#: Labels of other actors; their IP addresses and browsers are not shown.
_ACTOR_LABELS = {
    ActorKind.USER: gettext_lazy("By a manager"),
    ActorKind.CLIENT: gettext_lazy("By an application"),
    ActorKind.OPERATOR: gettext_lazy("By the people who run this service"),
    ActorKind.SYSTEM: gettext_lazy("By the service itself"),
}


class ActivityPage(AccountPage):
    """One row per event, newest first."""

    template = "account/activity.html"
    section = ACTIVITY_PATH

    def template_variables(self) -> Mapping[str, object]:
        """One page of the list. Raises Invalid for a malformed cursor."""
        page_request = ListParameters.read(self.request, usual=_PAGE_SIZE)
        audit_filter = AuditFilter(involved_id=self.subject.user.id)
        found = self.request.services.audit_trail.page(audit_filter, page_request)
        cursor = ListParameters.next_cursor(self.request, found.next_cursor)
        return {
            "rows": self._rows(found.items),
            "total": ListParameters.total(self.request, found),
            "first": ACTIVITY_PATH if page_request.cursor is not None else "",
            "next": "" if cursor is None else f"{ACTIVITY_PATH}?{urlencode({ListParameters.CURSOR: cursor})}",
        }

    def _rows(self, events: Sequence[AuditEvent]) -> list[dict[str, object]]:
        storage = self.request.services.storage
        clients = {event.actor.client_id for event in events} | {
            event.object_id for event in events if event.object_kind == "application"
        }
        applications = storage.applications.find_many({client for client in clients if client is not None})
        names = {key: item.name for key, item in applications.items()}
        agents = {item: self._user_agent(item) for item in {event.actor.session_id for event in events} if item}
        return [self._build_row(event, names, agents) for event in events]

    def _user_agent(self, session_id: str) -> str:
        """The browser of one of the user's sessions; empty if it is deleted or another user's."""
        session = self.request.services.storage.sessions.find(session_id)
        return session.user_agent if session is not None and session.user_id == self.subject.user.id else ""

    def _build_row(self, event: AuditEvent, names: Mapping[str, str], agents: Mapping[str, str]) -> dict[str, object]:
        actor, translator = event.actor, self.translator
        is_own = actor.id == self.subject.user.id
        is_own_browser = is_own or actor.kind is ActorKind.ANONYMOUS
        agent = (
            (str(event.detail.get("browser", "")) or agents.get(actor.session_id or "", "")) if is_own_browser else ""
        )
        refused = (
            is_own_browser and event.event == AuditEvent.SIGN_IN_REFUSED and event.object_id == self.subject.user.id
        )
        disowned = refused or (is_own and event.result is Result.SUCCESS)
        recovery_path = f"{ACCOUNT_RECOVERY_PATH}?{urlencode({EVENT_PARAM: event.id})}"
        return {
            "label": translator.gettext(EventLabels.EVENTS.get(event.event, event.event)),
            "note": self._describe_event(event, names, is_own=is_own),
            "occurred_at": event.at,
            "device": describe_user_agent(agent, translator) if agent else "",
            "client_address": (actor.client_address or "") if is_own_browser else "",
            # Reports the event as access by others.
            "recovery_path": recovery_path if disowned else "",
        }

    def _describe_event(self, event: AuditEvent, names: Mapping[str, str], *, is_own: bool) -> Markup:
        """The actor if it was another user, the factor, the reason of a refusal, and the application."""
        t = self.translator.gettext
        about = event.object_id if event.object_kind == "application" else event.actor.client_id
        details = (
            "" if is_own else t(_ACTOR_LABELS.get(event.actor.kind, "")),
            EventLabels.factor(event, request_context(self.request).protocol.factors, self.translator),
            t(EventLabels.REASONS.get(event.reason or "", "")),
            *self._impersonation(event),
            names.get(about or "", ""),
        )
        return Markup(" · ").join(item for item in details if item)

    def _impersonation(self, event: AuditEvent) -> tuple[str, ...]:
        """Who signed in as the user, and why; empty for other events."""
        if event.event != AuditEvent.IMPERSONATION_STARTED:
            return ()
        return str(event.detail.get("impersonator", "")), str(event.detail.get("reason", ""))


class RecoverAccountPage(AccountPage, FormPage):
    """Asks for confirmation, then ends all sessions, including this one, since a session proves nothing now."""

    template = "account/recover_account.html"
    section = ACTIVITY_PATH

    def template_variables(self) -> Mapping[str, object]:
        event_id = self.request.GET.get(EVENT_PARAM, "")
        if not event_id:
            return {"what": None, "has_password": self._has_password}
        event: AuditEvent = self.request.services.account_recovery.get_event(self.subject, event_id)
        label = self.translator.gettext(EventLabels.EVENTS.get(event.event, event.event))
        return {"what": label, "at": event.at, "has_password": self._has_password}

    @property
    def _has_password(self) -> bool:
        return self.request.services.storage.users.find_password(self.subject.user.id) is not None

    def submit(self, form: Form) -> Response:
        """End all sessions and require the password, which must then be changed."""
        self.request.services.account_recovery.report_compromise(
            self.subject, event_id=self.request.GET.get(EVENT_PARAM, "")
        )
        login_name = self.subject.login_name if self._has_password else ""
        return self.without_session_cookie(self.redirect_to_sign_in(SECURITY_PATH, login_name=login_name))

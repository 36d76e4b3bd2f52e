"""Audit events of one organization or of all."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import TypeGuard
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.request import Request

from identity.crypto.secrets import is_id
from identity.domain.audit import ERASED, OTHER_ORGANIZATION, AuditEvent, AuditFilter, Result
from identity.domain.messages import gettext_lazy as _
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.search import PrefixQuery
from identity.domain.users import User
from identity.http import route_contexts
from identity.http.endpoint_routes import request_context
from identity.http.list_parameters import MAX_QUERY_LENGTH
from identity.http.route_contexts import RouteContext
from identity.pages.event_labels import SUBJECT_LABELS, EventLabels
from identity.plugins.console.audit_event_names import AuditEventNames
from identity.plugins.console.badges import Badge, EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.lists import Cells, ListPage, ResourceList
from identity.plugins.console.page_sections import ActionSection, Descriptions, NoteSection, TableSection
from identity.plugins.console.query_page import QueryPage
from identity.plugins.console.resource_pages import ResourcePages, Sections
from identity.plugins.console.resource_types import INSTANCE, ORGANIZATION, AnyResourceType, ResourceType
from identity.storage.paging import PageRequest, ResultPage
from identity.storage.stores.search import SearchedKind, SearchScope

SECTION = "audit-events"
FROM_FIELD, TO_FIELD, EVENT_FIELD, RESULT_FIELD = "from", "to", "event", "result"
ACTOR_FIELD, OBJECT_FIELD, REQUEST_FIELD = "actor", "object", "request"

_RESULT_LABELS = {Result.SUCCESS: _("Done"), Result.REFUSED: _("Refused")}
_DAY = timedelta(days=1)
#: Search results among which a user is looked for by their exact name.
_MAX_NAME_MATCHES = 50
#: Detail members with a refused URI, and the application fields with the registered ones.
_URI_FIELDS = {"redirect_uri": "redirect_uris", "post_logout_redirect_uri": "post_logout_redirect_uris"}
_ERASED_NOTE = NoteSection(_("This person is deleted. Their data in the event is erased."), is_secondary=True)


_TITLE, _INSTANCE_TITLE = _("Audit events"), _("All audit events")


class AuditEventListPage(QueryPage, ListPage):
    template = "console/audit_events.html"
    fields = (FROM_FIELD, TO_FIELD, EVENT_FIELD, RESULT_FIELD, ACTOR_FIELD, OBJECT_FIELD, REQUEST_FIELD)

    def __init__(self, context: RouteContext, request: Request, *, parent: AnyResourceType) -> None:
        super().__init__(context, request, resource_list=self._events(parent is INSTANCE), parent=parent)

    def _events(self, of_instance: bool) -> ResourceList[AuditEvent]:
        return ResourceList(
            path=f"/{SECTION}",
            permission="audit_event.read",
            section=SECTION,
            title=_INSTANCE_TITLE if of_instance else _TITLE,
            lead=_("What was done and what was refused, as it was written then. Times are in UTC."),
            columns=(_("What"), _("When"), _("Who, where from"), _("Object"), _("Result")),
            has_state_filter=False,
            fetch=self._fetch,
            rows=_rows,
            empty_title=_("No audit events yet"),
            empty_text=_("Changes and refusals will be listed here."),
        )

    @property
    def organization_id(self) -> str | None:
        """None for all organizations."""
        return None if self.is_instance_page else self.entity_of(Organization).id

    def _fetch(self, page: ConsolePage, page_request: PageRequest) -> ResultPage[AuditEvent]:
        """The events that match the filters; none if a filter is invalid."""
        audit_filter = self._parse_filters()
        if self.problems:
            return ResultPage(())
        return self.filter_page(self.services.audit_trail.page(audit_filter, page_request))

    def is_filtered(self) -> bool:
        return bool(self.query())

    def empty_search_message(self, page_request: PageRequest) -> str:
        if self.problems:
            return _("Correct the filters to see events.")
        return _("No event fits these filters. Remove one.")

    def filter_variables(self) -> Mapping[str, object]:
        t = self.translator.gettext
        events = [
            (t(message), [(subject, t("All")), *((name, t(label)) for name, label in _event_options(subject))])
            for subject, message in SUBJECT_LABELS.items()
        ]
        return {"events": events, "results": [(result.value, t(message)) for result, message in _RESULT_LABELS.items()]}

    def _parse_filters(self) -> AuditFilter:
        parameters = self.query()
        since, last = self._parse_day(FROM_FIELD, parameters), self._parse_day(TO_FIELD, parameters)
        if since is not None and last is not None and last < since:
            self.problems[TO_FIELD] = _("Choose a day that is not before the first one.")
        event = parameters.get(EVENT_FIELD, "")
        if event and event not in EventLabels.EVENTS and event not in SUBJECT_LABELS:
            self.problems[EVENT_FIELD] = _("Choose one of the values offered.")
        result = parameters.get(RESULT_FIELD, "")
        if result and result not in set(Result):
            self.problems[RESULT_FIELD] = _("Choose one of the values offered.")
        return AuditFilter(
            organization_id=self.organization_id,
            event=event,
            actor_id=self._resolve_identifier(ACTOR_FIELD, parameters),
            object_id=self._resolve_identifier(OBJECT_FIELD, parameters),
            request_id=parameters.get(REQUEST_FIELD, ""),
            result=None if RESULT_FIELD in self.problems or not result else Result(result),
            since=since,
            until=None if last is None else last + _DAY,
        )

    def _parse_day(self, field: str, parameters: Mapping[str, str]) -> datetime | None:
        text = parameters.get(field)
        if text is None:
            return None
        try:
            # date.max has no next day.
            day = min(date.fromisoformat(text), date.max - _DAY)
        except ValueError:
            self.problems[field] = _("Enter a date such as 2027-12-31.")
            return None
        return datetime.combine(day, time(), UTC)

    def _resolve_identifier(self, field: str, parameters: Mapping[str, str]) -> str:
        """The id for an id, login name or user name."""
        text = parameters.get(field, "")
        if not text or is_id(text):
            return text
        users = self.services.storage.users
        subject = users.find_by_login_name(text) if "@" in text else None
        if subject is not None and self._can_see_organization(subject.organization.id):
            return str(subject.user.id)
        if not self.has_permission("user.read") or len(text) > MAX_QUERY_LENGTH or not text.isprintable():
            return text
        found_by_name = self._users_by_name(text)
        exact = [item for item in found_by_name if name_key(text) in map(name_key, (item.display_name, item.user_name))]
        meant = exact or found_by_name
        if len(meant) > 1:
            self.problems[field] = _("Several users have this name. Enter the login name.")
        # Other kinds of objects, and deleted ones, are found by id only.
        return meant[0].id if len(meant) == 1 else text

    def _users_by_name(self, text: str) -> Sequence[User]:
        """By the index of words, since a search by parts of words would read all users."""
        storage, organization_id = self.services.storage, self.organization_id
        scope = SearchScope(None if organization_id is None else frozenset({organization_id}))
        ids = [
            id_
            for kind in (SearchedKind.USER, SearchedKind.SERVICE_USER)
            for id_ in storage.search.find_ids(kind, PrefixQuery.parse(text), scope, _MAX_NAME_MATCHES)
        ]
        return [subject.user for subject in storage.users.find_subjects(ids).values()]


def _rows(page: ConsolePage, events: Sequence[AuditEvent]) -> Sequence[Cells]:
    names, ui, rows = AuditEventNames(page, events), page.template_macros, []
    for event in events:
        kind, named = names.object_kind_label(event.object_kind), names.object_name(event.object_kind, event.object_id)
        label = page.translator.gettext(EventLabels.EVENTS.get(event.event, event.event))
        factor = EventLabels.factor(event, request_context(page.request).protocol.factors, page.translator)
        detail = " · ".join(filter(None, (event.event, factor)))
        rows.append(
            (
                ui.named(label, f"{CONSOLE_PATH}/{SECTION}/{event.id}", detail),
                ui.moment(event.at),
                _stacked_cell(page, page.entity_link(names.actor_link(event)), event.actor.client_address or ""),
                _stacked_cell(page, page.entity_link(named), kind if named.name != kind else ""),
                _stacked_cell(page, page.render_badge(result_badge(event, page)), reason_label(event, page)),
            )
        )
    return rows


def _stacked_cell(page: ConsolePage, content: Markup, below: str) -> Markup:
    return content + page.template_macros.below(below) if below else content


#: An organization's events lead back to its list, others to that of all events.
_AUDIT_EVENT = ResourceType(
    model=AuditEvent,
    path=f"/{SECTION}/{{audit_event}}",
    context=route_contexts.audit_event_context,
    permission_prefix="audit_event",
    section=SECTION,
    is_instance_page=lambda page: page.entity_of(AuditEvent).organization_id is None,
    name=lambda page, event: EventLabels.EVENTS.get(event.event, event.event),
    parents=lambda page, event: [
        (_INSTANCE_TITLE, f"{CONSOLE_PATH}/{SECTION}")
        if event.organization_id is None
        else (_TITLE, f"{page.base_path}/{SECTION}")
    ],
)


def _sections(page: ConsolePage, event: AuditEvent) -> Sections:
    if event.detail == ERASED:
        return [_ERASED_NOTE]
    changes, facts = split_detail(event)
    columns = (_("Field"), _("Before"), _("After"))
    sections = [
        TableSection("changes", _("What changed"), columns=columns, rows=_format_cells(page, changes)),
        TableSection("detail", _("Detail"), columns=(_("Field"), _("Value")), rows=_format_cells(page, facts)),
        _registered_uris(page, event),
    ]
    return [section for section in sections if section.rows]


def _registered_uris(page: ConsolePage, event: AuditEvent) -> TableSection:
    """The registered URIs, if an unregistered one was refused."""
    sent = next((name for name in _URI_FIELDS if name in event.detail), "")
    application = page.services.storage.applications.find(event.object_id or "") if sent else None
    uris = () if application is None else getattr(application, _URI_FIELDS[sent])
    rows = [(page.template_macros.code(uri),) for uri in uris]
    return TableSection("registered", _("Registered addresses"), columns=(_("Address"),), rows=rows)


def _descriptions(page: ConsolePage, event: AuditEvent) -> Descriptions:
    actor, parties, ui = event.actor, AuditEventNames(page, [event]), page.template_macros
    entity_link, link = parties.actor_link(event), parties.object_name(event.object_kind, event.object_id)
    # Service users, and applications that act on their own behalf, are their own clients.
    client = None if actor.client_id in (None, actor.id) else parties.actor_name(str(actor.client_id))
    organization = page.organization if event.organization_id else None

    def identifier(value: str | None, named: EntityLink | None = None) -> Markup:
        """Empty if the name is the id."""
        return ui.identifier(value) if value and (named is None or named.name != value) else Markup()

    return [
        (_("When"), ui.moment(event.at)),
        (_("Reason"), reason_label(event, page)),
        (_("Who"), page.entity_link(entity_link)),
        (_("Id of the actor"), identifier(actor.id, entity_link)),
        (_("Application"), "" if client is None else page.entity_link(client)),
        (_("Client id"), identifier(actor.client_id, client) if client else ""),
        (_("Session"), identifier(actor.session_id)),
        (_("Where from"), actor.client_address or _("Not known")),
        (_("Kind of object"), parties.object_kind_label(event.object_kind)),
        (_("Object"), page.entity_link(link) if event.object_id else ""),
        (_("Id of the object"), identifier(event.object_id, link)),
        (_("Organization"), ui.link(organization.name, page.base_path) if organization else ""),
        (_("Other organization"), parties.other_organization_name(event)),
        (_("Request id"), identifier(actor.request_id)),
        (_("Event id"), identifier(event.id)),
    ]


def _format_cells(page: ConsolePage, rows: Sequence[Sequence[str]]) -> Sequence[Cells]:
    empty = page.render_placeholder(_("Empty"))
    return [(page.template_macros.code(name), *(value or empty for value in values)) for name, *values in rows]


def user_events_section(page: ConsolePage, user_id: str) -> ActionSection | None:
    """Links to the events of which the user is the actor, and to those of which they are the object."""
    if not page.has_permission("audit_event.read"):
        return None
    href = f"{page.base_path}/{SECTION}"
    links = [
        (_("Changes to this user"), _("Sign-ins, changes, and roles that were granted or removed."), OBJECT_FIELD),
        (_("Actions by this user"), _("Changes made by this user in this organization."), ACTOR_FIELD),
    ]
    rows = [
        (title, text, page.button_link(_("Show"), f"{href}?{urlencode({field: user_id})}", hidden_label=title))
        for title, text, field in links
    ]
    return ActionSection(SECTION, _TITLE, rows=rows)


def result_badge(event: AuditEvent, page: ConsolePage) -> Badge:
    kind = "danger" if event.result is Result.REFUSED else "success"
    return Badge(page.translator.gettext(_RESULT_LABELS[event.result]), kind)


def reason_label(event: AuditEvent, page: ConsolePage) -> str:
    """Empty without a reason."""
    reason = event.reason or ""
    return page.translator.gettext(EventLabels.REASONS.get(reason, reason))


def _event_options(subject: str) -> list[tuple[str, str]]:
    return [(name, message) for name, message in EventLabels.EVENTS.items() if name.partition(".")[0] == subject]


def split_detail(event: AuditEvent) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """The changes (field, before, after) and the other members (field, value) of an event's detail."""
    changes: list[Sequence[str]] = []
    facts: list[Sequence[str]] = []
    for name, value in event.detail.items():
        if name == OTHER_ORGANIZATION:
            continue
        if isinstance(value, Mapping) and value.keys() == {"before", "after"}:
            changes += _build_differences(name, value["before"], value["after"])
        else:
            facts.append((name, _format_value(value)))
    return changes, facts


def _build_differences(name: str, before: object, after: object) -> list[Sequence[str]]:
    """One row; for a value with members, a row for each changed member."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = dict.fromkeys((*before, *after))
        return [
            build_difference
            for part in names
            if before.get(part) != after.get(part)
            for build_difference in _build_differences(f"{name}.{part}", before.get(part), after.get(part))
        ]
    return [(name, _format_value(before), _format_value(after))]


def is_text_list(value: object) -> TypeGuard[Sequence[str]]:
    """A list or tuple of strings."""
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _format_value(value: object) -> str:
    if isinstance(value, str):
        return value
    if is_text_list(value):
        return ", ".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


_PAGES = ResourcePages(
    type=_AUDIT_EVENT,
    lead=lambda page, event: [page.template_macros.code(event.event)],
    badges=lambda page, event: [result_badge(event, page)],
    descriptions=_descriptions,
    sections=_sections,
    is_editable=False,
)

ROUTES = (
    *(
        parent.route(f"/{SECTION}", partial(AuditEventListPage, parent=parent), "audit_event.read")
        for parent in (ORGANIZATION, INSTANCE)
    ),
    *_PAGES.routes(),
)

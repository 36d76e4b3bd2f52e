"""Activity of a user or a group: what a user did, and what was done to the user or group, by day, newest first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.audit import ActorKind, AuditEvent, AuditFilter, Result
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.http.endpoint_routes import request_context
from identity.http.list_parameters import ListParameters
from identity.pages.event_labels import EventLabels
from identity.pages.layout import NavigationItem
from identity.plugins.console.audit_event_names import AuditEventNames
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.resource_pages import DetailPage, ResourceTab, Sections
from identity.plugins.console.resources.audit_events import is_text_list, reason_label, split_detail

ACTIVITY_PATH = "/activity"
_KIND_PARAM = "kind"
_PAGE_SIZE = 30
#: Languages inflect these differently from names.
_BY_UNNAMED_ACTOR = {
    ActorKind.OPERATOR: _("{event} by the operator"),
    ActorKind.SYSTEM: _("{event} by the service itself"),
    ActorKind.ANONYMOUS: _("{event} by an unknown user"),
}
#: Members of details that name the user or group of the page, or repeat ids of the event.
_HIDDEN_FIELDS = frozenset({"user_id", "group_id", "id", "version", "changed_at"})


@dataclass(frozen=True)
class ActivityItem:
    """One event: ``kind`` is that of a timeline item, ``changes`` are label, old and new value."""

    kind: str
    time: Markup
    text: Markup
    note: str
    changes: Sequence[tuple[str, str, str]]
    is_refused: bool


@dataclass(frozen=True)
class ActivityDay:
    title: Markup
    items: Sequence[ActivityItem]


_FILTERS: Mapping[str, tuple[str, AuditFilter]] = {
    "": (_("Everything"), AuditFilter()),
    "sign-ins": (_("Sign-ins"), AuditFilter(event="session")),
    "roles": (_("Roles"), AuditFilter(event="user_grant")),
    "refused": (_("Refused"), AuditFilter(result=Result.REFUSED)),
}


class UserActivityPage(DetailPage[Any]):
    """The entity is a user of either kind."""

    template = "console/activity.html"
    lead: ClassVar[str] = _("What this account did, and what was done to it. Times are in UTC.")
    _kinds: ClassVar[Mapping[str, tuple[str, AuditFilter]]] = _FILTERS

    def template_variables(self) -> Mapping[str, object] | Response:
        variables = super().template_variables()
        if not isinstance(variables, Mapping):
            return variables
        kind = self.request.GET.get(_KIND_PARAM, "")
        _label, chosen = self._kinds.get(kind, self._kinds[""])
        audit_filter = AuditFilter(
            organization_id=self._organization_filter,
            involved_id=self.entity.id,
            event=chosen.event,
            result=chosen.result,
        )
        page_request = ListParameters.read(self.request, usual=_PAGE_SIZE)
        page = self.filter_page(self.services.audit_trail.page(audit_filter, page_request))
        cursor = ListParameters.next_cursor(self.request, page.next_cursor)
        path = f"{self.resource_path}{ACTIVITY_PATH}"
        return {
            **variables,
            "activity_lead": self.translate(self.lead),
            "days": list(self._days(page.items)),
            "chips": [
                NavigationItem(
                    label=self.translator.gettext(label),
                    href=f"{path}?{_KIND_PARAM}={name}" if name else path,
                    is_current=name == kind,
                )
                for name, (label, _filter) in self._kinds.items()
            ],
            "older": "" if cursor is None else f"{path}?{self._query(kind)}{ListParameters.CURSOR}={cursor}",
        }

    @property
    def _organization_filter(self) -> str | None:
        """Events of other organizations are for those who may read all."""
        reads_all = self.services.access_control.is_permitted(self.principal, "audit_event.read", Resource.INSTANCE)
        return None if reads_all else self.entity.organization_id

    def _query(self, kind: str) -> str:
        return f"{_KIND_PARAM}={kind}&" if kind in self._kinds and kind else ""

    def _days(self, events: Sequence[AuditEvent]) -> Iterator[ActivityDay]:
        names = AuditEventNames(self, events)

        def day_of(event: AuditEvent) -> date:
            return event.at.date()

        for _day, of_day in groupby(events, key=day_of):
            listed = list(of_day)
            title = Markup('<time datetime="{:%Y-%m-%d}">{}</time>').format(
                listed[0].at, self.template_macros.when(listed[0].at).striptags()
            )
            yield ActivityDay(title, [self._item(event, names) for event in listed])

    def _item(self, event: AuditEvent, names: AuditEventNames) -> ActivityItem:
        t, is_refused = self.translator.gettext, event.result is Result.REFUSED
        label = t(EventLabels.EVENTS.get(event.event, event.event))
        text = Markup('<a href="{}/audit-events/{}">{}</a>').format(CONSOLE_PATH, event.id, label)
        if event.group_id == self.entity.id and event.user_id is not None:
            named = self.entity_link(names.object_name(event.object_kind, event.object_id))
            text = t("{event}: {object}", event=text, object=named)
        if event.actor.id != self.entity.id:
            sentence = _BY_UNNAMED_ACTOR.get(event.actor.kind, _("{event} by {actor}"))
            text = t(sentence, event=text, actor=self.entity_link(names.actor_link(event)))
        elif event.object_id not in (None, self.entity.id) and event.user_id != self.entity.id:
            text = t(
                "{event}: {object}",
                event=text,
                object=self.entity_link(names.object_name(event.object_kind, event.object_id)),
            )
        factor = EventLabels.factor(event, request_context(self.request).protocol.factors, self.translator)
        note = " · ".join(filter(None, (reason_label(event, self), factor, event.actor.client_address or "")))
        is_sign_in = event.event.startswith("session.")
        return ActivityItem(
            kind="bad" if is_refused else "ok" if is_sign_in else "edit",
            time=Markup('<time datetime="{:%Y-%m-%dT%H:%M:%SZ}">{:%H:%M}</time>').format(event.at, event.at),
            text=text,
            note=note,
            changes=self._changes(event),
            is_refused=is_refused,
        )

    def _changes(self, event: AuditEvent) -> Sequence[tuple[str, str, str]]:
        """What was there before and after; what an event gave or took as a whole has one side."""
        changes, facts = split_detail(event)
        rows = [
            (name, *(_changed_items(event.detail.get(name)) or (before, after)))
            for name, before, after in changes
            if name not in _HIDDEN_FIELDS
        ]
        project = self._project_name(event)
        if project:
            rows.insert(0, (self.translator.gettext("Project"), "", project))
        if event.group_id not in (None, self.entity.id):
            group = self.services.storage.groups.find(event.group_id)
            rows.insert(0, (self.translator.gettext("Group"), "", event.group_id if group is None else group.name))
        is_removal = event.event.endswith((".removed", ".deleted"))
        for name, value in facts:
            if name == "roles" and value:
                rows.append((name, value, "") if is_removal else (name, "", value))
        return rows

    def _project_name(self, event: AuditEvent) -> str:
        project_id = event.detail.get("project_id")
        project = self.services.storage.projects.find(project_id) if isinstance(project_id, str) else None
        return "" if project is None else project.name


class GroupActivityPage(UserActivityPage):
    """The entity is a group."""

    lead = _("What was done to the group, its members and its roles. Times are in UTC.")
    _kinds: ClassVar[Mapping[str, tuple[str, AuditFilter]]] = {
        "": (_("Everything"), AuditFilter()),
        "members": (_("Members"), AuditFilter(event="group_member")),
        "roles": (_("Project roles"), AuditFilter(event="group_grant")),
        "managers": (_("Manager roles"), AuditFilter(event="group_manager")),
    }


def _changed_items(change: object) -> tuple[str, str] | None:
    """The items that left a list and those that came to it; None for other values, and for another order."""
    if not isinstance(change, Mapping) or not all(is_text_list(change.get(side)) for side in ("before", "after")):
        return None
    before, after = change["before"], change["after"]
    left = ", ".join(item for item in before if item not in after)
    came = ", ".join(item for item in after if item not in before)
    return (left, came) if left or came else None


def activity_tab(
    sections: Callable[[DetailPage[Any], Any], Sections] = lambda page, entity: (),
    page: type[UserActivityPage] = UserActivityPage,
) -> ResourceTab[Any]:
    return ResourceTab(
        label=_("Activity"), path=ACTIVITY_PATH, permission="audit_event.read", sections=sections, page=page
    )

"""Legal holds: the list, sections of user and organization pages, placing and lifting."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.legal_holds import ALL_TARGETS, LegalHold, LegalHoldKind
from identity.domain.messages import gettext_lazy as _
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import Badge, EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage, path_value
from identity.plugins.console.form_fields import TextArea
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import ActionSection
from identity.plugins.console.resource_types import (
    INSTANCE,
    ORGANIZATION,
    USER,
    AnyResourceType,
    ResourcePage,
    ResourceType,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.legal_holds import CreateLegalHold
from identity.storage.paging import ResultPage

SECTION = "instance/legal-holds"
_LIST_PATH = f"{CONSOLE_PATH}/{SECTION}"
_READ_PERMISSION, _WRITE_PERMISSION = "legal_hold.read", "legal_hold.write"

_KIND_LABELS = {
    LegalHoldKind.USER: _("User"),
    LegalHoldKind.ORGANIZATION: _("Organization"),
    LegalHoldKind.INSTANCE: _("Instance"),
}
_RETENTION_MESSAGE = _(
    "Until it is lifted, the users on hold cannot be deleted, and their audit events, sessions and tokens are kept."
)


def _rows(page: ConsolePage, holds: Sequence[LegalHold]) -> Sequence[Cells]:
    named, may_write = _target_links(page, holds), page.has_permission(_WRITE_PERMISSION)
    return [
        (
            page.entity_cell(named[hold.id], is_person=False),
            Markup('<span class="nowrap">{}</span>').format(page.translator.gettext(_KIND_LABELS[hold.kind])),
            page.template_macros.when(hold.since),
            hold.reason,
            page.button_link(_("Lift"), f"{_LIST_PATH}/{hold.id}/lift", hidden_label=named[hold.id].name, small=True)
            if may_write
            else "",
        )
        for hold in holds
    ]


def _hold_everything_button(page: ConsolePage) -> Markup:
    if not page.has_permission(_WRITE_PERMISSION) or ALL_TARGETS in page.services.legal_holds.list_holds():
        return Markup()
    return page.button_link(_("Place everything on hold …"), f"{_LIST_PATH}/everything")


#: Oldest first; not paged, because there are few.
LEGAL_HOLDS = ResourceList(
    path=f"/{SECTION}",
    permission=_READ_PERMISSION,
    section=SECTION,
    title=_("Legal holds"),
    lead=_(
        "Whose data must be kept, with audit events, sessions and tokens, as long as a court or an inquiry needs it."
    ),
    columns=(_("On hold"), _("Kind"), _("Since"), _("Reason")),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: ResultPage(tuple(page.services.legal_holds.list_holds().values())),
    rows=_rows,
    empty_title=_("No legal holds"),
    empty_text=_("They are placed on the pages of users and organizations."),
    action=_hold_everything_button,
)


def _target_links(page: ConsolePage, holds: Sequence[LegalHold]) -> Mapping[str, EntityLink]:
    """The held user or organization, by the hold's id."""
    storage, everything = page.services.storage, EntityLink(page.translator.gettext("Everything"))
    subjects = storage.users.find_subjects([hold.target_id for hold in holds if hold.kind is LegalHoldKind.USER])
    organizations = storage.organizations.find_many(
        [hold.target_id for hold in holds if hold.kind is LegalHoldKind.ORGANIZATION]
    )
    found = {
        key: EntityLink(subject.user.display_name, USER.path_of(subject.user), with_line_breaks(subject.login_name))
        for key, subject in subjects.items()
    } | {
        key: EntityLink(organization.name, ORGANIZATION.path_of(organization))
        for key, organization in organizations.items()
    }
    return {
        hold.id: everything
        if hold.kind is LegalHoldKind.INSTANCE
        else found.get(hold.target_id, EntityLink(hold.target_id))
        for hold in holds
    }


def _target_link(page: ConsolePage, hold: LegalHold) -> EntityLink:
    return _target_links(page, [hold])[hold.id]


_LEGAL_HOLD = ResourceType(
    model=LegalHold,
    path=f"/{SECTION}/{{legal_hold}}",
    context=INSTANCE.context,
    permission_prefix="legal_hold",
    section=SECTION,
    is_instance_page=INSTANCE.is_instance_page,
    message_values=lambda page, hold: {"name": _target_link(page, hold).name},
    parents=lambda page, hold: [(LEGAL_HOLDS.title, _LIST_PATH)],
    has_page=False,
    find=lambda page: page.services.legal_holds.get(path_value(page, "legal_hold")),
)


def _lifting_impact(page: ConsolePage, hold: LegalHold) -> Sequence[str]:
    return (
        _("It was placed on {day}: {reason}", day=page.template_macros.when(hold.since), reason=hold.reason),
        _("Data past its retention period is deleted, unless another hold keeps it."),
        _("Deletes accounts whose owners asked for it, once the waiting period is over."),
    )


_LIFT = Action[LegalHold](
    path="/lift",
    run=lambda page, hold: page.services.legal_holds.release(hold.id),
    title=_("Lift the legal hold on “{name}”?"),
    impact=_lifting_impact,
    submit_label=_("Lift legal hold"),
    cancel_label=_("Keep the legal hold"),
    back=lambda page, hold: _target_link(page, hold).href or _LIST_PATH,
)


class CreateLegalHoldPage(ResourcePage[Any], ConsoleFormPage):
    """``entity`` is the user or the organization; the instance for a hold on everything."""

    form_fields = (
        TextArea(
            "reason",
            _("Reason"),
            _("Managers with access to the audit trail can see it."),
            required_message=_("Give a reason."),
        ),
    )
    title = _("Place a legal hold on “{name}”?")
    lead = _RETENTION_MESSAGE
    submit_label = _("Place legal hold")

    def __init__(
        self, context: RouteContext, request: Request, *, resource_type: AnyResourceType, kind: LegalHoldKind
    ) -> None:
        super().__init__(context, request, resource_type=resource_type)
        self.kind = kind

    @property
    def target_id(self) -> str | None:
        return str(self.entity.id)

    def submit(self, form: Form) -> Response:
        command = self.build_command(CreateLegalHold, form, kind=self.kind, held_id=self.target_id)
        self.services.legal_holds.create(command)
        return self.redirect(self.path_with_flash(self.cancel_path))


class HoldEverythingPage(CreateLegalHoldPage):
    """A hold on all organizations and on data of the instance."""

    title = _("Place a legal hold on everything?")
    section = SECTION
    breadcrumbs: Breadcrumbs = ((LEGAL_HOLDS.title, _LIST_PATH),)
    target_id = None


def legal_hold_badges(page: ResourcePage[Any], *above: str) -> Sequence[Badge]:
    """A badge if the entity, or one of these ids above it, is held."""
    is_held = not {page.context.entity.id, *above, ALL_TARGETS}.isdisjoint(page.services.legal_holds.list_holds())
    return [Badge(page.translator.gettext("Legal hold"), "warning")] if is_held else []


def legal_hold_section(page: ResourcePage[Any], *above: str) -> ActionSection | None:
    """The holds that apply to the entity, and buttons to place or lift its own; None if the caller may not read
    them.
    """
    if not page.has_permission(_READ_PERMISSION):
        return None
    holds, writes = page.services.legal_holds.list_holds(), page.has_permission(_WRITE_PERMISSION)
    rows: list[tuple[str, str, Markup]] = []
    legal_hold = holds.get(page.context.entity.id)
    if legal_hold is not None:
        lift = page.button_link(_("Lift …"), f"{_LIST_PATH}/{legal_hold.id}/lift") if writes else Markup()
        rows.append((_hold_description(page, _("On hold since {day}"), legal_hold), legal_hold.reason, lift))
    elif writes:
        place_button = page.button_link(_("Place …"), f"{page.resource_path}/legal-hold")
        rows.append((_("Place a legal hold"), _RETENTION_MESSAGE, place_button))
    for hold in (holds[key] for key in (*above, ALL_TARGETS) if key in holds):
        message = _("Everything has been on hold since {day}")
        if hold.kind is LegalHoldKind.ORGANIZATION:
            message = _("The whole organization has been on hold since {day}")
        rows.append((_hold_description(page, message, hold), hold.reason, Markup()))
    return ActionSection("legal-hold", _("Legal hold"), rows=rows) if rows else None


def _hold_description(page: ConsolePage, message: str, hold: LegalHold) -> Markup:
    return page.translator.gettext(message, day=page.template_macros.when(hold.since))


def _hold_route(kind: AnyResourceType, path: str, page: type[CreateLegalHoldPage], hold: LegalHoldKind) -> ConsoleRoute:
    return kind.route(path, partial(page, resource_type=kind, kind=hold), _WRITE_PERMISSION)


ROUTES = (
    list_route(LEGAL_HOLDS, INSTANCE),
    _hold_route(INSTANCE, f"/{SECTION}/everything", HoldEverythingPage, LegalHoldKind.INSTANCE),
    *action_routes(_LEGAL_HOLD, _LIFT),
    _hold_route(USER, "/legal-hold", CreateLegalHoldPage, LegalHoldKind.USER),
    _hold_route(ORGANIZATION, "/legal-hold", CreateLegalHoldPage, LegalHoldKind.ORGANIZATION),
)

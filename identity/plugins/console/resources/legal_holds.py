"""Legal holds: the list, sections of user and organization pages, placing and lifting."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.legal_holds import ALL_TARGETS, LegalHold, LegalHoldKind
from identity.domain.messages import gettext_lazy
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.pages.line_breaks import with_line_breaks
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.badges import Badge, EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.form_fields import TextArea
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import ActionSection
from identity.plugins.console.resource_page import (
    ORGANIZATIONS_PATH,
    OrganizationResourcePage,
    ResourcePage,
    UserResourcePage,
    resource_routes,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.legal_holds import CreateLegalHold
from identity.storage.paging import PageRequest, ResultPage

SECTION = "instance/legal-holds"
_LIST_PATH = f"{CONSOLE_PATH}/{SECTION}"
_READ_PERMISSION, _WRITE_PERMISSION = "legal_hold.read", "legal_hold.write"

_KIND_LABELS = {
    LegalHoldKind.USER: gettext_lazy("User"),
    LegalHoldKind.ORGANIZATION: gettext_lazy("Organization"),
    LegalHoldKind.INSTANCE: gettext_lazy("Instance"),
}
_RETENTION_MESSAGE = gettext_lazy(
    "Until it is lifted nobody is deleted who is held, and audit events, sessions and tokens of theirs stay."
)


class LegalHoldListPage(ListPage):
    """Oldest first."""

    section = SECTION
    is_instance_page = True
    title = gettext_lazy("Legal holds")
    lead = gettext_lazy(
        "Who has to stay, with audit events, sessions and tokens, as long as a court or an inquiry needs them."
    )
    columns = (gettext_lazy("Held"), gettext_lazy("Kind"), gettext_lazy("Since"), gettext_lazy("Reason"))
    has_row_buttons = True
    is_searchable = False
    empty_title = gettext_lazy("No legal holds")
    empty_text = gettext_lazy("They are placed on the pages of users and organizations.")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[LegalHold]:
        """Not paged: there are few."""
        return ResultPage(tuple(self.services.legal_holds.list_holds().values()))

    def build_rows(self, found: Sequence[LegalHold]) -> Sequence[Cells]:
        named = _target_links(self, found)
        return [
            (
                self.entity_cell(named[legal_hold.id]),
                Markup('<span class="nowrap">{}</span>').format(self.translator.gettext(_KIND_LABELS[legal_hold.kind])),
                self.template_macros.when(legal_hold.since),
                legal_hold.reason,
                self.button_link(
                    gettext_lazy("Lift"),
                    f"{_LIST_PATH}/{legal_hold.id}/lift",
                    hidden_label=named[legal_hold.id].name,
                    small=True,
                )
                if self.has_permission(_WRITE_PERMISSION)
                else "",
            )
            for legal_hold in found
        ]

    def filter_variables(self) -> Mapping[str, object]:
        may = self.has_permission(_WRITE_PERMISSION) and ALL_TARGETS not in self.services.legal_holds.list_holds()
        return {
            "beside": self.button_link(gettext_lazy("Hold everything …"), f"{_LIST_PATH}/everything") if may else ""
        }


def _target_links(page: ConsolePage, holds: Sequence[LegalHold]) -> Mapping[str, EntityLink]:
    """The held user or organization, by the hold's id."""
    storage = page.services.storage
    people = storage.users.find_subjects(
        [legal_hold.target_id for legal_hold in holds if legal_hold.kind is LegalHoldKind.USER]
    )
    organizations = storage.organizations.find_many(
        [legal_hold.target_id for legal_hold in holds if legal_hold.kind is LegalHoldKind.ORGANIZATION]
    )
    named = {}
    for legal_hold in holds:
        named[legal_hold.id] = EntityLink(
            page.translator.gettext("Everything") if legal_hold.kind is LegalHoldKind.INSTANCE else legal_hold.target_id
        )
        if legal_hold.target_id in people:
            subject = people[legal_hold.target_id]
            named[legal_hold.id] = EntityLink(
                subject.user.display_name,
                f"{CONSOLE_PATH}/users/{legal_hold.target_id}",
                with_line_breaks(subject.login_name),
            )
        elif legal_hold.target_id in organizations:
            named[legal_hold.id] = EntityLink(
                organizations[legal_hold.target_id].name, f"{ORGANIZATIONS_PATH}/{legal_hold.target_id}"
            )
    return named


class LiftLegalHoldPage(ActionPage):
    section = SECTION
    is_instance_page = True
    breadcrumbs = ((LegalHoldListPage.title, _LIST_PATH),)
    title = gettext_lazy("Lift the legal hold on “{name}”?")
    submit_label = gettext_lazy("Lift legal hold")
    cancel_label = gettext_lazy("Keep the legal hold")

    @cached_property
    def legal_hold(self) -> LegalHold:
        """Raises NotFound."""
        return self.services.legal_holds.get(self.request.matchdict["legal_hold"])

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"name": self._target_link.name}

    @cached_property
    def _target_link(self) -> EntityLink:
        return _target_links(self, [self.legal_hold])[self.legal_hold.id]

    @property
    def cancel_path(self) -> str:
        return self._target_link.href or _LIST_PATH

    @property
    def impact(self) -> Sequence[str]:
        return (
            gettext_lazy(
                "It was placed on {day}: {reason}",
                day=self.template_macros.when(self.legal_hold.since),
                reason=self.legal_hold.reason,
            ),
            gettext_lazy("What is old enough is deleted, as the settings say, unless another hold keeps it."),
            gettext_lazy("Accounts that people asked to have deleted go when their time is over."),
        )

    def perform(self) -> None:
        self.services.legal_holds.release(self.legal_hold.id)


class _LegalHoldFormPage(ConsoleFormPage):
    form_fields = (
        TextArea(
            "reason",
            gettext_lazy("Reason"),
            gettext_lazy("Managers who read the audit trail see it."),
            required_message=gettext_lazy("Say why."),
        ),
    )
    lead = _RETENTION_MESSAGE
    submit_label = gettext_lazy("Place legal hold")
    legal_hold_kind: ClassVar[LegalHoldKind]

    @property
    def target_id(self) -> str | None:
        return None

    def submit(self, form: Form) -> Response:
        values = {**self.parse_form(form), "kind": self.legal_hold_kind, "held_id": self.target_id}
        self.services.legal_holds.create(self.decode_command(CreateLegalHold, values))
        return self.redirect(self.path_with_flash(self.cancel_path))


class CreateInstanceLegalHoldPage(_LegalHoldFormPage):
    """A hold on all organizations and on data of the instance."""

    section = SECTION
    is_instance_page = True
    legal_hold_kind = LegalHoldKind.INSTANCE
    breadcrumbs = LiftLegalHoldPage.breadcrumbs
    title = gettext_lazy("Place a legal hold on everything?")


class CreateLegalHoldPage(ResourcePage[Any], _LegalHoldFormPage):
    path_suffix = "/legal-hold"
    title = gettext_lazy("Place a legal hold on “{name}”?")

    @classmethod
    def permission(cls) -> str:
        return _WRITE_PERMISSION

    @property
    def target_id(self) -> str:
        return str(self.context.entity.id)


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
        lift = page.button_link(gettext_lazy("Lift …"), f"{_LIST_PATH}/{legal_hold.id}/lift") if writes else Markup()
        rows.append((_hold_description(page, gettext_lazy("Held since {day}"), legal_hold), legal_hold.reason, lift))
    elif writes:
        place_button = page.button_link(
            gettext_lazy("Place …"), f"{page.resource_path}{CreateLegalHoldPage.path_suffix}"
        )
        rows.append((gettext_lazy("Place a legal hold"), _RETENTION_MESSAGE, place_button))
    for hold in (holds[key] for key in (*above, ALL_TARGETS) if key in holds):
        message = gettext_lazy("Everything is held since {day}")
        if hold.kind is LegalHoldKind.ORGANIZATION:
            message = gettext_lazy("The whole organization is held since {day}")
        rows.append((_hold_description(page, message, hold), hold.reason, Markup()))
    return ActionSection("legal-hold", gettext_lazy("Legal hold"), rows=rows) if rows else None


def _hold_description(page: ConsolePage, message: str, hold: LegalHold) -> Markup:
    return page.translator.gettext(message, day=page.template_macros.when(hold.since))


ROUTES = (
    ConsoleRoute(f"/{SECTION}", LegalHoldListPage, _READ_PERMISSION, route_contexts.instance_context),
    ConsoleRoute(
        f"/{SECTION}/everything", CreateInstanceLegalHoldPage, _WRITE_PERMISSION, route_contexts.instance_context
    ),
    ConsoleRoute(
        f"/{SECTION}/{{legal_hold}}/lift", LiftLegalHoldPage, _WRITE_PERMISSION, route_contexts.instance_context
    ),
    *resource_routes(
        CreateLegalHoldPage.for_resource(UserResourcePage, legal_hold_kind=LegalHoldKind.USER),
        CreateLegalHoldPage.for_resource(OrganizationResourcePage, legal_hold_kind=LegalHoldKind.ORGANIZATION),
    ),
)

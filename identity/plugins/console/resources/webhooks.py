"""Webhooks of an organization and of the instance: lists, forms, secrets, and the log of deliveries."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyramid.response import Response

from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.webhooks import DeliveryProblem, DeliveryState, Webhook, WebhookDelivery
from identity.pages.event_labels import EventLabels
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.actions import REACTIVATION_HINT, Action, Deactivation, Reactivation
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage, path_value
from identity.plugins.console.entity_forms import CreateForm, CreatePage, EditForm, create_route, edit_route
from identity.plugins.console.fields.webhooks import WEBHOOK_FIELDS
from identity.plugins.console.form_fields import SelectField, form_fields
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ListPage, ResourceList, list_route
from identity.plugins.console.page_sections import ActionSection, Descriptions, TableSection, TextSection
from identity.plugins.console.resource_pages import DetailPage, ResourcePages, Sections, active_badge
from identity.plugins.console.resource_types import INSTANCE, ORGANIZATION, WEBHOOK, ResourcePage, ResourceType
from identity.services.audit import event_to_dict
from identity.services.commands.webhooks import ChangeWebhook, CreateWebhook, RotateWebhookSecret
from identity.storage.paging import PageRequest, ResultPage

_COPY_SECRET = _("Copy the signing secret now")


# --- list and forms ---------------------------------------------------------------------------------------------------


def _owner_id(page: ConsolePage) -> str | None:
    """None for the instance."""
    entity = page.context.entity
    return entity.id if isinstance(entity, Organization) else None


def _rows(page: ConsolePage, webhooks: Sequence[Webhook]) -> Sequence[Cells]:
    return [
        (
            page.template_macros.named(webhook.name, WEBHOOK.path_of(webhook), webhook.url),
            _events_label(webhook.events),
            page.render_badge(_webhook_badge(page, webhook)),
            page.template_macros.when(webhook.created_at),
        )
        for webhook in webhooks
    ]


def _events_label(patterns: Sequence[str]) -> str:
    return ", ".join(patterns)


def _webhook_badge(page: ConsolePage, webhook: Webhook) -> Badge:
    if webhook.active and not webhook.secret:
        return Badge(page.translator.gettext("Signing secret is missing"), "warning")
    return state_badge(webhook.active, page.translator)


def _list(path: str, title: str, lead: str, *, read: str, write: str) -> ResourceList[Webhook]:
    return ResourceList(
        path=f"/{path}",
        permission=read,
        section=path,
        title=title,
        lead=lead,
        columns=(_("Name"), _("Events"), _("State"), _("Since")),
        fetch=lambda page, request: page.filter_page(page.services.storage.webhooks.page(_owner_id(page), request)),
        rows=_rows,
        empty_title=_("No webhooks yet"),
        empty_text=_("Let another system know as soon as something changes, such as a new or deactivated user."),
        create=write,
        entity_label=_("webhook"),
    )


WEBHOOKS = _list(
    "webhooks",
    _("Webhooks"),
    _("Other systems that are sent the events of this organization, signed and with retries."),
    read="webhook.read",
    write="webhook.write",
)
INSTANCE_WEBHOOKS = _list(
    "instance/webhooks",
    _("Webhooks of the instance"),
    _("Other systems that are sent the events of all organizations, signed and with retries."),
    read="instance.read",
    write="instance.write",
)


class InstanceWebhookListPage(ListPage):
    """With the receivers that the ini file names."""

    template = "console/instance_webhooks.html"

    def filter_variables(self) -> Mapping[str, object]:
        deliveries = self.request.registry.application.process_state.deliveries.values()
        rows = [
            (delivery.receiver, _events_label(delivery.event_patterns), _waiting_label(self, delivery.kind))
            for delivery in deliveries
            if delivery.receiver
        ]
        section = TableSection(
            "ini",
            _("Set by the operator"),
            _("These are in the ini file, under {setting}, and can only be changed there.", setting="[webhooks]"),
            columns=(_("Receiver"), _("Events"), _("Messages")),
            rows=rows,
        )
        return {"ini_section": section if rows else None, "said": self.translate}


def _waiting_label(page: ConsolePage, kind: str) -> str:
    failing = page.services.outbox.backlog(kind).failing
    if not failing:
        return page.translate(_("All delivered"))
    return page.translate(ngettext_lazy("{n} could not be delivered yet", "{n} could not be delivered yet", failing))


_FIELDS = form_fields(Webhook, WEBHOOK_FIELDS)


class WebhookCreatePage(CreatePage):
    def initial_values(self) -> Mapping[str, FieldValue]:
        return {**super().initial_values(), "events": "*"}


def _create(page: CreatePage, command: CreateWebhook) -> Response:
    webhook, secret = page.services.webhooks.create_with_new_secret(_owner_id(page), command, principal=page.principal)
    return page.render_secret(_("Webhook added"), secret, back=WEBHOOK.path_of(webhook), copy_label=_COPY_SECRET)


_CREATE = CreateForm(
    title=_("New webhook"),
    lead=_("Its signing secret is shown once, on the next page. The receiver checks the signature with it."),
    fields=_FIELDS,
    command=CreateWebhook,
    create=_create,
    submit_label=_("Add"),
)

_EDIT = EditForm[Webhook, ChangeWebhook](
    fields=_FIELDS,
    command=ChangeWebhook,
    change=lambda page, webhook, command, version: page.services.webhooks.change(
        webhook.id, command, expected_version=version, principal=page.principal
    ),
)


# --- signing secret ---------------------------------------------------------------------------------------------------


class _HoursField(SelectField):
    def parse_value(self, form: Form) -> object:
        text = form.text(self.name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else text


class RotateWebhookSecretPage(ResourcePage[Webhook], ConsoleFormPage):
    """Replaces the signing secret and shows the new one once."""

    is_creation = True
    back_path_suffix = "#secret"
    title = _("Replace the signing secret of {name}?")
    lead = _("The new secret is shown once, on the next page.")
    submit_label = _("Replace secret")
    form_fields = (
        _HoursField(
            "overlap_hours",
            _("The current secret"),
            _("Meanwhile messages have two signatures, so that the receiver can change without a gap."),
            options=lambda page: [
                ("24", page.translate(_("is valid for 24 more hours"))),
                ("1", page.translate(_("is valid for 1 more hour"))),
                ("168", page.translate(_("is valid for 7 more days"))),
                ("0", page.translate(_("ends now"))),
            ],
        ),
    )

    def initial_values(self) -> Mapping[str, FieldValue]:
        return {"overlap_hours": "24"}

    def submit(self, form: Form) -> Response:
        command = self.build_command(RotateWebhookSecret, form)
        self.redeem_submission_id(
            form, _("The secret was already replaced; the new one was shown then. Replace it again if you lost it.")
        )
        secret = self.services.webhooks.rotate_secret(self.entity.id, command, principal=self.principal)[1]
        return self.render_secret(_("Signing secret replaced"), secret, copy_label=_COPY_SECRET)


_RETIRE = Action[Webhook](
    path="/retire-previous-secret",
    run=lambda page, webhook: page.services.webhooks.retire_previous_secret(webhook.id, principal=page.principal),
    title=_("End the previous signing secret of {name}?"),
    impact=(_("Messages are signed with the current secret only. A receiver that does not know it refuses them."),),
    submit_label=_("End previous secret"),
    label=_("End the previous secret"),
    button=_("End …"),
    description=_("As soon as the receiver knows the new one."),
    back="#secret",
    is_available=lambda page, webhook: (
        webhook.previous_secret_expires_at is not None and webhook.previous_secret_expires_at > page.services.now
    ),
)


def _secret_section(page: DetailPage[Webhook], webhook: Webhook) -> ActionSection | None:
    if not page.has_permission("webhook.write"):
        return None
    retire = page.action_section("secret", "", (_RETIRE,))
    replace = page.button_link(_("Replace …"), f"{page.resource_path}/rotate-secret", hidden_label=_("signing secret"))
    changed_at = webhook.secret_changed_at
    text = (
        _("It was set on {day}.", day=changed_at.strftime("%Y-%m-%d"))
        if changed_at
        else _("There is none yet: this webhook gets no messages before it has one.")
    )
    rows = [(_("Replace the signing secret"), text, replace), *(retire.rows if retire else ())]
    return ActionSection("secret", _("Signing secret"), rows=rows)


# --- log --------------------------------------------------------------------------------------------------------------

_STATE_LABELS = {
    DeliveryState.PENDING: _("Pending"),
    DeliveryState.DELIVERED: _("Delivered"),
    DeliveryState.FAILED: _("Given up"),
}
_STATE_KINDS = {DeliveryState.PENDING: "warning", DeliveryState.DELIVERED: "success", DeliveryState.FAILED: "danger"}
_PROBLEM_LABELS = {
    DeliveryProblem.UNREACHABLE: _("No connection"),
    DeliveryProblem.TIMEOUT: _("No answer in time"),
    DeliveryProblem.CERTIFICATE: _("Certificate not trusted"),
    DeliveryProblem.STATUS: _("Refused with {status}"),
    DeliveryProblem.DISCONTINUED: _("Gone (410): the webhook was deactivated"),
    DeliveryProblem.NOT_SENDABLE: _("The event or the signing secret is gone"),
}


def _state_badge(page: ConsolePage, delivery: WebhookDelivery) -> Badge:
    state = delivery.state_at(page.services.now)
    kind = "" if state is DeliveryState.PENDING and not delivery.attempts else _STATE_KINDS[state]
    return Badge(page.translator.gettext(_STATE_LABELS[state]), kind)


def _answer_label(page: ConsolePage, delivery: WebhookDelivery) -> str:
    if delivery.problem is not None:
        return page.translator.gettext(_PROBLEM_LABELS[delivery.problem], status=delivery.status or "")
    return "" if delivery.status is None else str(delivery.status)


def _event_label(page: ConsolePage, delivery: WebhookDelivery) -> str:
    label = EventLabels.EVENTS.get(delivery.event)
    return delivery.event if label is None else page.translator.gettext(label)


def _delivery_rows(page: ConsolePage, deliveries: Sequence[WebhookDelivery]) -> Sequence[Cells]:
    return [
        (
            page.template_macros.named(
                _event_label(page, delivery), _DELIVERY.own_path(page, delivery), delivery.event
            ),
            page.template_macros.when(delivery.created_at, clock=True),
            page.render_badge(_state_badge(page, delivery)),
            _answer_label(page, delivery),
            _duration_label(page, delivery),
        )
        for delivery in deliveries
    ]


def _duration_label(page: ConsolePage, delivery: WebhookDelivery) -> str:
    return "" if delivery.duration_ms is None else page.translate(_("{number} ms", number=delivery.duration_ms))


def _fetch_deliveries(page: ConsolePage, request: PageRequest) -> ResultPage[WebhookDelivery]:
    return page.services.webhooks.page_deliveries(page.entity_of(Webhook).id, request)


DELIVERIES = ResourceList(
    path="/deliveries",
    permission="webhook.read",
    title=_("Deliveries"),
    lead=_("Each message and what the receiver answered to the last attempt."),
    columns=(_("Event"), _("When"), _("State"), _("Answer"), _("Duration")),
    fetch=_fetch_deliveries,
    rows=_delivery_rows,
    empty_title=_("No messages yet"),
    empty_text=_("Messages are listed here as soon as an event fits."),
    is_searchable=False,
    has_state_filter=False,
    all_label=_("All deliveries …"),
)

_DELIVERY = ResourceType[WebhookDelivery](
    model=WebhookDelivery,
    path="/webhooks/{webhook}/deliveries/{delivery}",
    context=WEBHOOK.context,
    permission_prefix="webhook",
    section=lambda page, delivery: WEBHOOK.section_of(page, page.entity_of(Webhook)),
    is_instance_page=WEBHOOK.is_instance_page,
    name=lambda page, delivery: _event_label(page, delivery),
    parents=lambda page, delivery: [
        *WEBHOOK.breadcrumbs(page, page.entity_of(Webhook)),
        (DELIVERIES.title, f"{WEBHOOK.path_of(page.entity_of(Webhook))}/deliveries"),
    ],
    find=lambda page: page.services.webhooks.get_delivery(page.entity_of(Webhook).id, path_value(page, "delivery")),
    find_path=lambda page, delivery: f"{CONSOLE_PATH}/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}",
)

_RESEND = Action[WebhookDelivery](
    path="/resend",
    run=lambda page, delivery: page.services.webhooks.resend(
        delivery.webhook_id, delivery.id, principal=page.principal
    ),
    title=_("Send this message again?"),
    impact=(_("The receiver gets the same message id as before, by which it can tell that it has seen the message."),),
    submit_label=_("Send again"),
    label=_("Send the message again"),
    button=_("Send again …"),
    description=_("If the receiver lost it, or has been repaired."),
    cancel_label=_("Do not send"),
    is_destructive=False,
)


def _delivery_descriptions(page: DetailPage[WebhookDelivery], delivery: WebhookDelivery) -> Descriptions:
    ui, is_pending = page.template_macros, delivery.state_at(page.services.now) is DeliveryState.PENDING
    return [
        (_("Id"), ui.identifier(delivery.id)),
        (_("Event"), ui.code(delivery.event)),
        (_("Answer"), _answer_label(page, delivery)),
        (_("Duration"), _duration_label(page, delivery)),
        (_("Attempts"), str(delivery.attempts)),
        (_("Last attempt"), ui.when(delivery.attempted_at, clock=True) if delivery.attempted_at else ""),
        (_("Next attempt"), ui.when(delivery.next_at, clock=True) if is_pending else ""),
        (_("Queued"), ui.when(delivery.created_at, clock=True)),
    ]


def _delivery_sections(page: DetailPage[WebhookDelivery], delivery: WebhookDelivery) -> Sections:
    return [
        TextSection(
            "answer",
            _("Beginning of the answer"),
            _("Up to {length} bytes, as text.", length=WebhookDelivery.MAX_ANSWER_LENGTH),
            text=delivery.answer,
        )
        if delivery.answer
        else None,
        _message_section(page, delivery),
    ]


def _message_section(page: DetailPage[WebhookDelivery], delivery: WebhookDelivery) -> TextSection | None:
    """The body of the message, for those who may read the event."""
    event = page.services.storage.audit.find(delivery.event_id)
    if event is None:
        return None
    owner_id = event.organization_id
    resource = Resource.INSTANCE if owner_id is None else Resource.of_organization(owner_id)
    if not page.services.access_control.is_permitted(page.principal, "audit_event.read", resource):
        return None
    link = page.button_link(_("Audit event"), f"{CONSOLE_PATH}/audit-events/{event.id}")
    body = json.dumps(event_to_dict(event), indent=2, ensure_ascii=False)
    return TextSection("message", _("Message"), action=link, text=body)


_DELIVERY_PAGES = ResourcePages(
    type=_DELIVERY,
    lead=lambda page, delivery: [_("Message to {webhook}", webhook=page.entity_of(Webhook).name)],
    badges=lambda page, delivery: [_state_badge(page, delivery)],
    descriptions=_delivery_descriptions,
    sections=_delivery_sections,
    actions=(_RESEND,),
    actions_title=_("Send again"),
    is_editable=False,
)


# --- detail page ------------------------------------------------------------------------------------------------------

_TEST = Action[Webhook](
    path="/test",
    run=lambda page, webhook: page.services.webhooks.send_test(webhook.id, principal=page.principal),
    title=_("Send a test message to {name}?"),
    impact=(
        _("The receiver gets an event {event}, which no other webhook gets.", event=Webhook.TEST_EVENT),
        _("The log shows what it answered."),
    ),
    submit_label=_("Send test message"),
    cancel_label=_("Do not send"),
    is_destructive=False,
    back="#deliveries",
)

_ACTIONS = (
    Deactivation[Webhook](
        run=lambda page, webhook: page.services.webhooks.deactivate(webhook.id, principal=page.principal),
        title=_("Deactivate the webhook “{name}”?"),
        description=_("It gets no messages. You can reactivate it later."),
        impact=(
            _("Events that happen meanwhile are not sent later. Messages that are pending now wait for 3 days."),
            REACTIVATION_HINT,
        ),
        submit_label=_("Deactivate webhook"),
    ),
    Reactivation[Webhook](
        run=lambda page, webhook: page.services.webhooks.reactivate(webhook.id, principal=page.principal),
        title=_("Reactivate the webhook “{name}”?"),
        description=_("It gets messages about new events again."),
        impact=(_("It gets messages about new events again."),),
        submit_label=_("Reactivate webhook"),
    ),
    Action[Webhook](
        path="/delete",
        permission="delete",
        run=lambda page, webhook: page.services.webhooks.remove(webhook.id, principal=page.principal),
        done=lambda page, webhook: page.parent_breadcrumbs[-1][1],
        label=_("Delete"),
        button=_("Delete …"),
        title=_("Delete the webhook “{name}”?"),
        description=_("Permanently removes it with its log and its pending messages."),
        impact=(_("The receiver gets no more messages. The log and pending messages are permanently removed."),),
        submit_label=_("Delete webhook"),
    ),
)


def _header(page: DetailPage[Webhook], webhook: Webhook) -> Sequence[Any]:
    if not webhook.is_usable:
        return ()
    link = page.button_link(_("Send test message"), f"{page.resource_path}/test", permission="webhook.write")
    return (link,)


def _descriptions(page: DetailPage[Webhook], webhook: Webhook) -> Descriptions:
    ui, ends_at = page.template_macros, webhook.previous_secret_expires_at
    is_signed_twice = ends_at is not None and ends_at > page.services.now
    return [
        (_("Id"), ui.identifier(webhook.id)),
        (_("Address"), ui.identifier(webhook.url)),
        (_("Events"), page.render_role_names(webhook.events)),
        (_("Signing secret"), ui.when(webhook.secret_changed_at) if webhook.secret_changed_at else _("None")),
        (_("Previous secret valid until"), ui.when(ends_at, clock=True) if is_signed_twice else ""),
        (_("Since"), ui.when(webhook.created_at, relative=True)),
    ]


_PAGES = ResourcePages(
    type=WEBHOOK,
    lead=lambda page, webhook: [_("Webhook")],
    badges=lambda page, webhook: (
        [_webhook_badge(page, webhook)] if webhook.active and not webhook.secret else active_badge(page, webhook)
    ),
    descriptions=_descriptions,
    header=_header,
    sections=lambda page, webhook: [page.list_section(DELIVERIES), _secret_section(page, webhook)],
    actions=_ACTIONS,
    more_actions=(_TEST, _RETIRE),
)

ROUTES = (
    list_route(WEBHOOKS, ORGANIZATION),
    create_route(_CREATE, WEBHOOKS, ORGANIZATION, WebhookCreatePage),
    INSTANCE.route(
        INSTANCE_WEBHOOKS.path,
        partial(InstanceWebhookListPage, resource_list=INSTANCE_WEBHOOKS, parent=INSTANCE),
        INSTANCE_WEBHOOKS.permission,
    ),
    create_route(_CREATE, INSTANCE_WEBHOOKS, INSTANCE, WebhookCreatePage),
    edit_route(WEBHOOK, _EDIT),
    WEBHOOK.page_route("/rotate-secret", RotateWebhookSecretPage, "write"),
    list_route(DELIVERIES, WEBHOOK),
    *_DELIVERY_PAGES.routes(),
    *_PAGES.routes(),
)

"""The log of an application: its latest requests, and what was wrong with them."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from identity.domain.application_requests import ApplicationRequest
from identity.domain.applications import Application
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import Resource
from identity.domain.users import ServiceUser, Subject
from identity.http.activity_recording import SIGN_IN_STEP, WRONG_CREDENTIALS
from identity.pages.event_labels import EventLabels
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.lists import Cells
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import APPLICATION

LOG_PATH = "/log"

_REASONS = {WRONG_CREDENTIALS: _("The login name or the password was wrong.")}

_ENDPOINT_LABELS = {
    "authorize": _("Authorization request"),
    "authorize.resume": _("Sign-in completed"),
    SIGN_IN_STEP: _("Attempt to sign in"),
    "token": _("Token request"),
    "introspect": _("Introspection"),
    "userinfo": _("User info"),
    "revoke": _("Revocation"),
    "end_session": _("Sign-out"),
}


def log_section(page: ConsolePage, application: Application) -> TableSection:
    """The table of the log."""
    requests = page.services.figures.list_application_requests(application.id)
    subjects = _visible_subjects(page, requests)
    return TableSection(
        "log",
        _("Latest requests"),
        _(
            "At most 25 successful and 25 refused requests of the last 30 days, up to ten seconds old. Values of"
            " parameters are not kept."
        ),
        action=page.button_link(_("Refresh"), f"{APPLICATION.path_of(application)}{LOG_PATH}", small=True),
        columns=(_("What"), _("Outcome"), _("Who"), _("Where from"), _("When")),
        rows=[_cells(page, request, subjects) for request in requests],
        empty=_("No requests in the last 30 days. Reload this page after the application has sent one."),
    )


def _visible_subjects(page: ConsolePage, requests: Sequence[ApplicationRequest]) -> Mapping[str, Subject]:
    """The users that the requests name and the caller may see."""
    access = page.services.access_control
    found = page.services.storage.users.find_subjects({request.user_id for request in requests if request.user_id})
    return {
        subject.user.id: subject
        for subject in access.filter_visible(page.principal, found.values())
        if access.is_permitted(
            page.principal,
            "service_user.read" if isinstance(subject.user, ServiceUser) else "user.read",
            Resource.of_organization(subject.organization.id),
        )
    }


def _cells(page: ConsolePage, request: ApplicationRequest, subjects: Mapping[str, Subject]) -> Cells:
    t, ui = page.translator.gettext, page.template_macros
    label = _ENDPOINT_LABELS.get(request.endpoint)
    name = ui.named(ui.bold(request.endpoint if label is None else t(label)), "", request.grant_type)
    return name, _outcome(page, request), _user(page, request, subjects), request.client_network, ui.ago(request.at)


def _outcome(page: ConsolePage, request: ApplicationRequest) -> Markup:
    t = page.translator.gettext
    if not request.error:
        is_waiting = request.endpoint == "authorize" and request.user_id is None
        badge = Badge(t("Sign-in started"), "") if is_waiting else Badge(t("Succeeded"), "success")
        return page.render_badge(badge)
    is_page = request.endpoint == SIGN_IN_STEP
    drawn = page.render_badge(Badge(t("Refused") if is_page else escape(request.error), "danger"))
    reason = _REASONS.get(request.reason) or EventLabels.REASONS.get(request.reason, request.reason)
    below: Markup = page.template_macros.below(t(reason))
    return drawn + below


def _user(page: ConsolePage, request: ApplicationRequest, subjects: Mapping[str, Subject]) -> object:
    if request.user_id is None:
        return page.render_placeholder(_("Unknown"))
    subject = subjects.get(request.user_id)
    if subject is None:
        return page.template_macros.code(request.user_id)
    kind = "service-users" if isinstance(subject.user, ServiceUser) else "users"
    return page.template_macros.link(subject.user.display_name, f"{CONSOLE_PATH}/{kind}/{subject.user.id}")

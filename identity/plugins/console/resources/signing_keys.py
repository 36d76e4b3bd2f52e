"""Signing keys: states, rotation and withdrawal."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import Settings
from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.signing_keys import KeyState
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage, find_child
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import INSTANCE, ResourceType
from identity.services.signing_keys import EMERGENCY_DELAY, SigningKeyState
from identity.storage.paging import ResultPage

SECTION = "instance/signing-keys"
_LIST_PATH = f"{CONSOLE_PATH}/{SECTION}"
MODE_FIELD, ALGORITHM_FIELD = "mode", "algorithm"
_NORMAL, _EMERGENCY = "normal", "emergency"
_MINUTE = timedelta(minutes=1)

_STATE_LABELS = {
    KeyState.WAITING: _("Waiting"),
    KeyState.ACTIVE: _("Active"),
    KeyState.RETIRED: _("Retired"),
    KeyState.REMOVED: _("Removed"),
}


def _rows(page: ConsolePage, states: Sequence[SigningKeyState]) -> Sequence[Cells]:
    ui = page.template_macros
    return [
        (
            ui.key_identifier(state.key, state.external_signer),
            page.render_badge(
                Badge(
                    page.translator.gettext(_STATE_LABELS[state.state]),
                    "success" if state.state is KeyState.ACTIVE else "",
                )
            ),
            ui.when(state.key.active_at, clock=True),
            _format_moment(page, state.retires_at, _("Not before its successor is active")),
            _format_moment(page, state.published_until, _("No end date")),
            _withdraw_button(page, state),
        )
        for state in states
    ]


def _withdraw_button(page: ConsolePage, state: SigningKeyState) -> Markup:
    if state.state is KeyState.REMOVED or not page.has_permission("signing_key.write"):
        return Markup()
    key = state.key.id
    return page.row_buttons(f"{_LIST_PATH}/{key}", key, remove=_("Withdraw …"), change=False)


def _format_moment(page: ConsolePage, moment: datetime | None, absent: str) -> Markup:
    drawn: Markup = page.render_placeholder(absent) if moment is None else page.template_macros.when(moment, clock=True)
    return drawn


#: Not paged, because there are few.
SIGNING_KEYS = ResourceList(
    path=f"/{SECTION}",
    permission="signing_key.read",
    section=SECTION,
    title=_("Signing keys"),
    lead=_("The service signs tokens with the active key. Clients find the published ones in the key list (JWKS)."),
    columns=(_("Key id"), _("State"), _("Active from"), _("Retires"), _("Published until")),
    has_row_buttons=True,
    is_searchable=False,
    fetch=lambda page, request: ResultPage(page.services.signing_keys.list_key_states()),
    rows=_rows,
    empty_title=_("No signing keys yet"),
    empty_text=_("The operator creates the first one with identity bootstrap."),
    action=lambda page: page.button_link(_("Rotate now …"), f"{_LIST_PATH}/rotate", permission="signing_key.write"),
)


class RotateSigningKeyPage(ConsoleFormPage):
    template = "console/rotate_signing_keys.html"
    section = SECTION
    is_instance_page = True
    breadcrumbs: Breadcrumbs = ((SIGNING_KEYS.title, _LIST_PATH),)
    fields = (MODE_FIELD, ALGORITHM_FIELD)
    title = _("Rotate the signing key?")
    submit_label = _("Rotate signing key")

    def initial_values(self) -> Mapping[str, str]:
        return {MODE_FIELD: _NORMAL, ALGORITHM_FIELD: self._algorithms[0]}

    def template_variables(self) -> Mapping[str, object]:
        t, states = self.translator.gettext, self.services.signing_keys.list_key_states()
        waiting = next((state.key for state in states if state.state is KeyState.WAITING), None)
        return {
            **super().template_variables(),
            "danger": True,
            "keep": self.translate(_("Keep the active key")),
            "waiting": waiting,
            "algorithms": [(name, name) for name in self._algorithms],
            "modes": [
                (_NORMAL, t("Normal"), self._normal_hint()),
                (_EMERGENCY, t("Emergency"), self._emergency_hint()),
            ],
        }

    @property
    def _algorithms(self) -> Sequence[str]:
        settings: Settings = self.request.registry.application.settings
        return settings.signing_algorithms

    def _normal_hint(self) -> Markup:
        settings: Settings = self.request.registry.application.settings
        return self.translator.ngettext(
            "The new key is published now and starts signing in {n} minute, when every client can "
            "know it. Nothing breaks.",
            "The new key is published now and starts signing in {n} minutes, when every client "
            "can know it. Nothing breaks.",
            settings.key_announcement_period // _MINUTE,
        )

    def _emergency_hint(self) -> Markup:
        settings: Settings = self.request.registry.application.settings
        return self.translator.gettext(
            "The new key starts signing in {seconds} seconds. Clients that cache the key list "
            "refuse new tokens until they fetch it again, for at most {minutes} minutes. Tokens "
            "signed with the old key stay valid until they expire.",
            seconds=int(EMERGENCY_DELAY.total_seconds()),
            minutes=-(-settings.jwks_max_age // _MINUTE),
        )

    def submit(self, form: Form) -> Response:
        """Create the next key. Raises Conflict if a suitable one is already announced."""
        mode = form.text(MODE_FIELD) or _NORMAL
        if mode not in (_NORMAL, _EMERGENCY):
            raise Invalid({MODE_FIELD: _("Choose one of the values offered.")})
        algorithm = form.text(ALGORITHM_FIELD) or self._algorithms[0]
        if algorithm not in self._algorithms:
            raise Invalid({ALGORITHM_FIELD: _("Choose one of the values offered.")})
        keys = self.services.signing_keys
        present = {key_state.key.id for key_state in keys.list_key_states()}
        key = keys.rotate(SignatureAlgorithm(algorithm), emergency=mode == _EMERGENCY)
        if key.id in present:
            when = key.active_at.strftime("%Y-%m-%d %H:%M:%S")
            raise Conflict(
                _("The next key is already published and signs from {when} UTC. No other key was created.", when=when)
            )
        return self.redirect(self.path_with_flash(self.cancel_path))


def _withdrawal_impact(page: ConsolePage, state: SigningKeyState) -> Sequence[str]:
    impact = page.services.signing_keys.withdrawal_impact(state.key.id)
    live = ngettext_lazy(
        "At most {n} live JWT access token was signed with it.",
        "At most {n} live JWT access tokens were signed with it.",
        impact.live_tokens,
    )
    if not impact.is_exact:
        live = _("More than {n} live JWT access tokens were issued while it was active.", n=impact.live_tokens)
    return [
        _("Key id: {id}", id=f"{state.key.id} ({state.key.algorithm})"),
        _("Do this if the private key may be compromised. It cannot be undone."),
        _("Tokens it signed are refused here at once, and by applications as soon as they fetch the keys again."),
        live if impact.live_tokens else "",
        _("A new key signs from now on.") if state.state is KeyState.ACTIVE else "",
    ]


_SIGNING_KEY = ResourceType(
    model=SigningKeyState,
    path=f"/{SECTION}/{{signing_key}}",
    context=INSTANCE.context,
    permission_prefix="signing_key",
    section=SECTION,
    is_instance_page=INSTANCE.is_instance_page,
    name=lambda page, state: state.key.id,
    parents=lambda page, state: [(SIGNING_KEYS.title, _LIST_PATH)],
    has_page=False,
    find=lambda page: find_child(
        page, page.services.signing_keys.list_key_states(), "signing_key", lambda state: state.key.id
    ),
)

#: Withdrawal makes everything invalid that the key signed.
_WITHDRAW = Action[SigningKeyState](
    path="/delete",
    run=lambda page, state: page.services.signing_keys.withdraw([state.key.id]),
    title=_("Withdraw this signing key?"),
    impact=_withdrawal_impact,
    submit_label=_("Withdraw signing key"),
)

ROUTES = (
    list_route(SIGNING_KEYS, INSTANCE),
    *action_routes(_SIGNING_KEY, _WITHDRAW),
    INSTANCE.route(f"/{SECTION}/rotate", RotateSigningKeyPage, "signing_key.write"),
)

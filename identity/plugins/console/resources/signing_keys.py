"""Signing keys: states, rotation and withdrawal."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from markupsafe import Markup
from pyramid.response import Response

from identity.api.plugins import Settings
from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.signing_keys import KeyState
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE_PATH, find_child
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.routes import ConsoleRoute
from identity.services.signing_keys import EMERGENCY_DELAY, SigningKeyState
from identity.storage.paging import PageRequest, ResultPage

SECTION = "instance/signing-keys"
MODE_FIELD = "mode"
_NORMAL, _EMERGENCY = "normal", "emergency"
_MINUTE = timedelta(minutes=1)

_STATE_LABELS = {
    KeyState.WAITING: gettext_lazy("Waiting"),
    KeyState.ACTIVE: gettext_lazy("Active"),
    KeyState.RETIRED: gettext_lazy("Retired"),
    KeyState.REMOVED: gettext_lazy("Removed"),
}


class SigningKeyListPage(ListPage):
    section = SECTION
    is_instance_page = True
    title = gettext_lazy("Signing keys")
    lead = gettext_lazy(
        "The service signs tokens with the active key. Clients find the published ones in the key list (JWKS)."
    )
    columns = (
        gettext_lazy("Key id"),
        gettext_lazy("State"),
        gettext_lazy("Active from"),
        gettext_lazy("Retires"),
        gettext_lazy("Published until"),
    )
    has_row_buttons = True
    is_searchable = False
    empty_title = gettext_lazy("No signing keys yet")
    empty_text = gettext_lazy("The operator makes the first one with identity bootstrap.")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[SigningKeyState]:
        """Not paged: there are few."""
        return ResultPage(self.services.signing_keys.list_key_states())

    def build_cells(self, state: SigningKeyState) -> Cells:
        badge = Badge(
            self.translator.gettext(_STATE_LABELS[state.state]), "success" if state.state is KeyState.ACTIVE else ""
        )
        return (
            self.template_macros.identifier(state.key.id),
            self.render_badge(badge),
            self.template_macros.when(state.key.active_at, clock=True),
            self._format_moment(state.retires_at, gettext_lazy("Not before its successor")),
            self._format_moment(state.published_until, gettext_lazy("No end yet")),
            self._withdraw_button(state),
        )

    def _withdraw_button(self, key_state: SigningKeyState) -> Markup:
        if key_state.state is KeyState.REMOVED or not self.has_permission("signing_key.write"):
            return Markup()
        return self.row_buttons(
            f"{self.list_path}/{key_state.key.id}", key_state.key.id, remove=gettext_lazy("Withdraw …"), change=False
        )

    def _format_moment(self, moment: datetime | None, absent: str) -> Markup:
        drawn: Markup = (
            self.render_placeholder(absent) if moment is None else self.template_macros.when(moment, clock=True)
        )
        return drawn

    def filter_variables(self) -> Mapping[str, object]:
        may = self.has_permission("signing_key.write")
        return {
            "beside": self.button_link(gettext_lazy("Rotate now …"), f"{CONSOLE_PATH}/{SECTION}/rotate") if may else ""
        }


class RotateSigningKeyPage(ActionPage):
    template = "console/rotate_signing_keys.html"
    section = SECTION
    is_instance_page = True
    fields = (MODE_FIELD,)

    title = gettext_lazy("Rotate the signing key?")
    breadcrumbs = ((SigningKeyListPage.title, f"{CONSOLE_PATH}/{SECTION}"),)
    submit_label = gettext_lazy("Rotate signing key")
    cancel_label = gettext_lazy("Keep the active key")

    def initial_values(self) -> Mapping[str, str]:
        return {MODE_FIELD: _NORMAL}

    def template_variables(self) -> Mapping[str, object]:
        t, states = self.translator.gettext, self.services.signing_keys.list_key_states()
        waiting = next((state.key for state in states if state.state is KeyState.WAITING), None)
        return {
            **super().template_variables(),
            "waiting": waiting,
            "modes": [
                (_NORMAL, t("Normal"), self._normal_hint()),
                (_EMERGENCY, t("Emergency"), self._emergency_hint()),
            ],
        }

    def _normal_hint(self) -> Markup:
        minutes = self._settings.key_announcement_period // _MINUTE
        return self.translator.ngettext(
            "The new key is published now and signs after {n} minute, when every client can know it. Nothing breaks.",
            "The new key is published now and signs after {n} minutes, when every client can know it. Nothing breaks.",
            minutes,
        )

    def _emergency_hint(self) -> Markup:
        return self.translator.gettext(
            "The new key signs after {seconds} seconds. Clients that keep the list of keys refuse new tokens until they"
            " fetch it again, for {minutes} minutes at most. Tokens of the old key stay valid until they expire.",
            seconds=int(EMERGENCY_DELAY.total_seconds()),
            minutes=-(-self._settings.jwks_max_age // _MINUTE),
        )

    @property
    def _settings(self) -> Settings:
        settings: Settings = self.request.registry.application.settings
        return settings

    def submit(self, form: Form) -> Response:
        """Create the next key. Raises Conflict if a suitable one is already announced."""
        mode = form.text(MODE_FIELD) or _NORMAL
        if mode not in (_NORMAL, _EMERGENCY):
            raise Invalid({MODE_FIELD: gettext_lazy("Choose one of the values offered.")})
        keys = self.services.signing_keys
        present = {key_state.key.id for key_state in keys.list_key_states()}
        key = keys.rotate(emergency=mode == _EMERGENCY)
        if key.id in present:
            when = key.active_at.strftime("%Y-%m-%d %H:%M:%S")
            raise Conflict(
                gettext_lazy("A key waits already: it signs from {when} UTC. No other one was made.", when=when)
            )
        return self.redirect(self.path_with_flash(self.cancel_path))


class WithdrawSigningKeyPage(ActionPage):
    """Withdrawal makes everything invalid that the key signed."""

    section = SECTION
    is_instance_page = True
    title = gettext_lazy("Withdraw this signing key?")
    breadcrumbs = ((SigningKeyListPage.title, f"{CONSOLE_PATH}/{SECTION}"),)
    submit_label = gettext_lazy("Withdraw signing key")

    @property
    def signing_key_state(self) -> SigningKeyState:
        """Raises NotFound."""
        key_state: SigningKeyState = find_child(
            self, self.services.signing_keys.list_key_states(), "signing_key", attribute="key.id"
        )
        return key_state

    @property
    def impact(self) -> Sequence[str]:
        key_state = self.signing_key_state
        return [
            gettext_lazy("Key id: {id}", id=key_state.key.id),
            gettext_lazy("Do this if others may know the private key. It cannot be undone."),
            gettext_lazy(
                "Tokens that it signed are refused here at once, and by applications when they fetch the keys again."
            ),
            gettext_lazy("A new key signs from now on.") if key_state.state is KeyState.ACTIVE else "",
        ]

    def perform(self) -> None:
        self.services.signing_keys.withdraw([self.signing_key_state.key.id])


_LIST = f"/{SECTION}"

ROUTES = (
    ConsoleRoute(_LIST, SigningKeyListPage, "signing_key.read", route_contexts.instance_context),
    ConsoleRoute(
        f"{_LIST}/{{signing_key}}/delete", WithdrawSigningKeyPage, "signing_key.write", route_contexts.instance_context
    ),
    ConsoleRoute(f"{_LIST}/rotate", RotateSigningKeyPage, "signing_key.write", route_contexts.instance_context),
)

"""Signing keys: where each stands, and the next one."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.errors import Conflict, Invalid
from identity.domain.signing_keys import KeyState
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.badges import Badge
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import CONSOLE, pick
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.services.signing_keys import EMERGENCY_DELAY, SigningKeyState
from identity.settings import Settings
from identity.storage.paging import Page, PageRequest

SECTION = "instance/signing-keys"
MODE = "mode"
_NORMAL, _EMERGENCY = "normal", "emergency"
_MINUTE = timedelta(minutes=1)

_STATES = {
    KeyState.WAITING: say("Waiting"),
    KeyState.ACTIVE: say("Active"),
    KeyState.RETIRED: say("Retired"),
    KeyState.REMOVED: say("Removed"),
}


class SigningKeyList(ListPage):
    """All that are stored, newest first."""

    section = SECTION
    of_instance = True
    title = say("Signing keys")
    lead = say("The service signs tokens with the active key. Clients find the published ones in the key list (JWKS).")
    columns = (say("Key id"), say("State"), say("Active from"), say("Retires"), say("Published until"))
    actions = True
    searchable = False
    empty_title = say("No signing keys yet")
    empty_text = say("The operator makes the first one with identity bootstrap.")

    def fetch(self, asked: PageRequest) -> Page[SigningKeyState]:
        """All at once: they are few."""
        return Page(self.services.signing_keys.states())

    def cells(self, one: SigningKeyState) -> Cells:
        badge = Badge(self.words.t(_STATES[one.state]), "success" if one.state is KeyState.ACTIVE else "")
        return (
            self.ui.identifier(one.key.id),
            self.badge(badge),
            self.ui.when(one.key.active_at, clock=True),
            self._when(one.retires_at, say("Not before its successor")),
            self._when(one.published_until, say("No end yet")),
            self._withdrawal(one),
        )

    def _withdrawal(self, one: SigningKeyState) -> Markup:
        if one.state is KeyState.REMOVED or not self.may("signing_key.write"):
            return Markup()
        return self.buttons(f"{self.list_href}/{one.key.id}", one.key.id, remove=say("Withdraw …"), change=False)

    def _when(self, moment: datetime | None, absent: str) -> Markup:
        drawn: Markup = self.faint(absent) if moment is None else self.ui.when(moment, clock=True)
        return drawn

    def filters(self) -> Mapping[str, object]:
        may = self.may("signing_key.write")
        return {"beside": self.link(say("Rotate now …"), f"{CONSOLE}/{SECTION}/rotate") if may else ""}


class Rotate(ConfirmPage):
    """Asks how the next key is to take over."""

    template = "console/rotate_signing_keys.html"
    section = SECTION
    of_instance = True
    fields = (MODE,)

    title = say("Rotate the signing key?")
    trail = ((SigningKeyList.title, f"{CONSOLE}/{SECTION}"),)
    label = say("Rotate signing key")
    keep = say("Keep the active key")

    def values(self) -> Mapping[str, str]:
        return {MODE: _NORMAL}

    def show(self) -> Mapping[str, object]:
        t, states = self.words.t, self.services.signing_keys.states()
        waiting = next((one.key for one in states if one.state is KeyState.WAITING), None)
        return {
            **super().show(),
            "waiting": waiting,
            "modes": [
                (_NORMAL, t("Normal"), self._about_normal()),
                (_EMERGENCY, t("Emergency"), self._about_emergency()),
            ],
        }

    def _about_normal(self) -> Markup:
        minutes = self._settings.announcement_age // _MINUTE
        return self.words.tn(
            "The new key is published now and signs after {n} minute, when every client can know it. Nothing breaks.",
            "The new key is published now and signs after {n} minutes, when every client can know it. Nothing breaks.",
            minutes,
        )

    def _about_emergency(self) -> Markup:
        return self.words.t(
            "The new key signs after {seconds} seconds. Clients that keep the list of keys refuse new tokens until they"
            " fetch it again, for {minutes} minutes at most. Tokens of the old key stay valid until they expire.",
            seconds=int(EMERGENCY_DELAY.total_seconds()),
            minutes=-(-self._settings.jwks_max_age // _MINUTE),
        )

    @property
    def _settings(self) -> Settings:
        settings: Settings = self.request.registry.identity.settings
        return settings

    def submit(self, form: Form) -> Response:
        """Make the next key. Raises Conflict if one waits already that will do."""
        mode = form.one(MODE) or _NORMAL
        if mode not in (_NORMAL, _EMERGENCY):
            raise Invalid({MODE: say("Choose one of the values offered.")})
        keys = self.services.signing_keys
        present = {one.key.id for one in keys.states()}
        key = keys.rotate(emergency=mode == _EMERGENCY)
        if key.id in present:
            when = key.active_at.strftime("%Y-%m-%d %H:%M:%S")
            raise Conflict(say("A key waits already: it signs from {when} UTC. No other one was made.", when=when))
        return self.redirect(self.done(self.back))


class Withdraw(ConfirmPage):
    """Asks before what a key signed counts no more."""

    section = SECTION
    of_instance = True
    title = say("Withdraw this signing key?")
    trail = ((SigningKeyList.title, f"{CONSOLE}/{SECTION}"),)
    label = say("Withdraw signing key")

    @property
    def found(self) -> SigningKeyState:
        """Which one. Raises NotFound."""
        one: SigningKeyState = pick(self, self.services.signing_keys.states(), "signing_key", by="key.id")
        return one

    @property
    def effects(self) -> Sequence[str]:
        one = self.found
        return [
            say("Key id: {id}", id=one.key.id),
            say("Do this if others may know the private key. It cannot be undone."),
            say("Tokens that it signed are refused here at once, and by applications when they fetch the keys again."),
            say("A new key signs from now on.") if one.state is KeyState.ACTIVE else "",
        ]

    def act(self) -> None:
        self.services.signing_keys.withdraw([self.found.key.id])


_LIST = f"/{SECTION}"

PLACES = (
    Place(_LIST, SigningKeyList, "signing_key.read", targets.instance),
    Place(f"{_LIST}/{{signing_key}}/delete", Withdraw, "signing_key.write", targets.instance),
    Place(f"{_LIST}/rotate", Rotate, "signing_key.write", targets.instance),
)

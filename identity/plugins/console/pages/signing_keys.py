"""Signing keys: where each stands, and the next one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.list_page import ListPage
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


@dataclass(frozen=True)
class Row:
    """A key as the list shows it."""

    id: str
    state: Badge
    active_at: datetime
    retires_at: datetime | None
    published_until: datetime | None


class SigningKeyList(ListPage):
    """All that are stored, newest first."""

    template = "console/signing_keys.html"
    section = SECTION
    of_instance = True
    heading = say("Signing keys")
    lead = say("The service signs tokens with the active key. Clients find the published ones in the key list (JWKS).")
    columns = (say("Key id"), say("State"), say("Active from"), say("Retires"), say("Published until"))
    searchable = False
    empty_title = say("No signing keys yet")
    empty_text = say("The operator makes the first one with identity bootstrap.")

    def fetch(self, asked: PageRequest) -> Page[SigningKeyState]:
        """All at once: they are few."""
        return Page(self.services.signing_keys.states())

    def rows(self, found: Sequence[SigningKeyState]) -> Sequence[Row]:
        """With their states."""
        return [
            Row(
                id=one.key.id,
                state=Badge(self.words.t(_STATES[one.state]), "success" if one.state is KeyState.ACTIVE else ""),
                active_at=one.key.active_at,
                retires_at=one.retires_at,
                published_until=one.published_until,
            )
            for one in found
        ]


class Rotate(ConfirmPage):
    """Asks how the next key is to take over."""

    template = "console/rotate_signing_keys.html"
    section = SECTION
    of_instance = True
    fields = (MODE,)

    def question(self) -> str:
        """The heading."""
        return say("Rotate the signing key?")

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return [(say("Signing keys"), self.back())]

    def values(self) -> Mapping[str, str]:
        """Without haste, nobody notices."""
        return {MODE: _NORMAL}

    def show(self) -> Mapping[str, object]:
        """What each way means, and the key that waits already, if there is one."""
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

    def label(self) -> str:
        """The button."""
        return say("Rotate signing key")

    def keep(self) -> str:
        """The way back."""
        return say("Keep the active key")

    def back(self) -> str:
        """To the list."""
        return f"{CONSOLE}/{SECTION}"

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
        return self.redirect(self.done(self.back()))


_LIST = f"/{SECTION}"

PLACES = (
    Place(_LIST, SigningKeyList, "signing_key.read", targets.instance),
    Place(f"{_LIST}/rotate", Rotate, "signing_key.write", targets.instance),
)

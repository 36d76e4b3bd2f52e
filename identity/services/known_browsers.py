"""Browsers that have signed in to an account before, so that their attempts are counted separately."""

from collections.abc import Mapping
from datetime import timedelta

from identity.crypto import base64url
from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import new_id
from identity.services.base import Service

#: How long a browser is known after a sign-in.
KNOWN_BROWSER_LIFETIME = timedelta(days=90)


class KnownBrowserService(Service):
    """The browser's token is sealed for one account and one password: it cannot be forged, and a new password ends it.
    It grants no access. Only the browser's failures are stored, under its id."""

    def remember(self, user_id: str) -> tuple[str, str]:
        """The id of a browser at which the user has just signed in, and its token."""
        browser = new_id()
        ends_at = int((self._now + KNOWN_BROWSER_LIFETIME).timestamp())
        plain = f"{user_id} {self._password_of(user_id)} {ends_at}"
        sealed = self._sealer.seal(plain.encode(), associated_data=_sealing_context(browser))
        return browser, base64url.encode(sealed)

    def identify(self, user_id: str, presented: Mapping[str, str]) -> str | None:
        """The id under which the account knows the browser with these tokens by id; None if it does not."""
        known = self.list_ids(user_id, presented)
        expected = (user_id, self._password_of(user_id) if known else "")
        for browser in known:
            owner, password, ends_at = self._read(browser, presented[browser])
            if (owner, password) == expected and self._now.timestamp() < int(ends_at):
                return browser
        return None

    def list_ids(self, user_id: str, presented: Mapping[str, str]) -> list[str]:
        """The ids of tokens issued for this user, including expired ones; newest first."""
        return [
            browser
            for browser in sorted(presented, reverse=True)
            if self._read(browser, presented[browser])[0] == user_id
        ]

    def _read(self, browser: str, text: str) -> tuple[str, str, str]:
        try:
            plain = self._sealer.open(base64url.decode(text), associated_data=_sealing_context(browser))
            owner, password, ends_at = plain.decode().split(" ")
        except (UnsealingError, ValueError):
            return "", "", "0"
        return owner, password, ends_at

    def _password_of(self, user_id: str) -> str:
        """Identifies the password by when it was set; the same for all users without one."""
        stored = self._storage.users.find_password(user_id)
        return "0" if stored is None else str(int(stored.changed_at.timestamp()))


def _sealing_context(browser: str) -> str:
    return f"known browser {browser}"

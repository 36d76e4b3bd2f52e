"""Asking providers: a few at a time, none for long, and one that does not answer is left alone for a while."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from time import monotonic
from typing import Any, Protocol
from urllib.parse import urlencode

from identity import __version__, hashing
from identity.domain.upstream_providers import UpstreamProvider
from identity.fair_shares import FairShares, Full, on_behalf_of
from identity.outgoing import Outgoing, Refused

log = logging.getLogger(__name__)

#: How long a provider may take for all that one sign-in asks of it.
SECONDS = 5.0
#: How many requests wait for providers: a quarter of them for those of one organization, half of that for one of these.
_AT_ALL = 32
#: How long nobody asks one that did not answer.
_REST_SECONDS = 5.0
_MOST_REMEMBERED = 1000
#: Names the networks that are asked besides public addresses.
SETTING = "identity.outgoing_networks"


class Unreachable(Exception):
    """The provider did not answer, or not now; ``why`` says it in words of ours.

    ``private`` if it has no address that it may be asked at. That is told to operators and the instance's managers
    alone: others would learn which names lead into the network.
    """

    def __init__(self, why: str, *, private: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.private = private


class Refusal(Exception):
    """What the provider says cannot be relied on, or is a refusal of its own; ``why`` quotes nothing of it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Way(Protocol):
    """How answers are got; ``Outgoing``."""

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> Any:
        """The answer."""


class Asking:
    """What one sign-in asks of a provider, within ``SECONDS`` in all."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._ends_at = monotonic() + SECONDS

    def get(self, url: str, *, token: str = "") -> bytes:
        """The body of what is there. Raises Unreachable, Refusal."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        status, body = self._send("GET", url, headers, None)
        if status != 200:
            raise Refusal(f"the provider answered {status}")
        return body

    def get_object(self, url: str, *, token: str = "") -> dict[str, Any]:
        """The JSON object that is there. Raises Unreachable, Refusal."""
        return read_object(self.get(url, token=token))

    def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object with which a form is answered. Raises Unreachable, Refusal."""
        said = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        status, body = self._send("POST", url, said, urlencode(form).encode())
        if status != 200:
            raise Refusal(f"the provider answered {status}{_error_in(body)}")
        return read_object(body)

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> tuple[int, bytes]:
        left = self._ends_at - monotonic()
        said = {"Accept": "application/json", "User-Agent": f"identity/{__version__}", **headers}
        try:
            if left <= 0:
                raise TimeoutError
            answer = self._way.send(method, url, headers=said, body=body, seconds=left)
        except Refused:
            # The same words as for a name that nobody knows.
            raise Unreachable("the provider did not answer: OSError", private=True) from None
        except (OSError, HTTPException, ValueError) as problem:
            raise Unreachable(f"the provider did not answer: {type(problem).__name__}") from None
        return answer.status, answer.body


class Asked:
    """One per process. Whoever asks has committed before: nothing is locked, and another thread answers meanwhile."""

    def __init__(self, way: Outgoing | Way) -> None:
        self._way = way
        self._places = FairShares(_AT_ALL)
        self._rest_until: dict[str, float] = {}

    @contextmanager
    def at(self, provider: UpstreamProvider) -> Iterator[Asking]:
        """Ask this provider, within. Raises Unreachable if too many wait for it, or it has not answered just now."""
        if monotonic() < self._rest_until.get(provider.id, 0):
            raise Unreachable("the provider has not answered just now")
        with on_behalf_of(provider.organization_id):
            try:
                leave = self._places.take(provider.id)
            except Full:
                raise Unreachable("too many wait for providers") from None
            try:
                with hashing.stepping_aside():
                    yield Asking(self._way)
            except Unreachable as problem:
                why = f"it has no public address ({SETTING} can name its network)" if problem.private else problem.why
                log.warning("identity provider %s: %s", provider.id, why)
                self._rest(provider.id)
                raise
            finally:
                leave()

    def _rest(self, provider_id: str) -> None:
        if len(self._rest_until) > _MOST_REMEMBERED:
            self._rest_until.clear()
        self._rest_until[provider_id] = monotonic() + _REST_SECONDS


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a provider sent. Raises Refusal."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal("the provider's answer is no JSON") from None
    if not isinstance(value, dict):
        raise Refusal("the provider's answer is no JSON object")
    return value


#: Errors of the protocol (RFC 6749 §5.2): words of its own are not repeated.
_ERRORS = frozenset(
    {"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"}
)


def _error_in(body: bytes) -> str:
    try:
        error = read_object(body).get("error")
    except Refusal:
        return ""
    return f" ({error})" if isinstance(error, str) and error in _ERRORS else ""

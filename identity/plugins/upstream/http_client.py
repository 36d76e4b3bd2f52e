"""HTTP requests to providers, with limits on concurrency and time, and a pause after a failure."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from time import monotonic
from typing import Any, Protocol
from urllib.parse import urlencode

from identity.api.crypto import ForbiddenDestination, OutboundHttpClient, PasswordHasher
from identity.api.entities import UpstreamProvider
from identity.api.plugins import FairSemaphore, NoFreeSlot, __version__

log = logging.getLogger(__name__)

#: Time limit of all requests of one sign-in.
TIMEOUT_SECONDS = 5.0
#: Limit of concurrent requests: one organization may use a quarter of it, one provider half of that.
_MAX_CONCURRENT_REQUESTS = 32
#: How long a failed provider is not contacted.
_BACKOFF_SECONDS = 5.0
_MAX_BACKOFF_ENTRIES = 1000
#: The setting with networks that are allowed besides public addresses.
OUTBOUND_NETWORKS_SETTING = "identity.outgoing_networks"


class ProviderUnreachable(Exception):
    """The provider did not respond, or is not contacted now; ``user_message`` explains it. ``private`` if it has no
    allowed address. Only operators and instance administrators see this: others could probe names of the internal
    network."""

    def __init__(self, why: str, *, private: bool = False) -> None:
        super().__init__(why)
        self.user_message = why
        self.private = private


class ProviderResponseError(Exception):
    """The provider's response is invalid or an error; ``user_message`` quotes nothing of it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.user_message = why


class HttpTransport(Protocol):
    """Sends requests; implemented by ``OutboundHttpClient``."""

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> Any:
        pass


class ProviderHttpSession:
    """The requests of one sign-in to a provider, within ``TIMEOUT_SECONDS`` in all."""

    def __init__(self, http_transport: HttpTransport) -> None:
        self._transport = http_transport
        self._ends_at = monotonic() + TIMEOUT_SECONDS

    def get(self, url: str, *, token: str = "") -> bytes:
        """The response body. Raises ProviderUnreachable, ProviderResponseError."""
        body: bytes = self.get_response(url, token=token).body
        return body

    def get_response(self, url: str, *, token: str = "") -> Any:
        """The response, whose status is 200. Raises ProviderUnreachable, ProviderResponseError."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self._send("GET", url, headers, None)
        if answer.status != 200:
            raise ProviderResponseError(f"the provider answered {answer.status}")
        return answer

    def get_object(self, url: str, *, token: str = "") -> dict[str, Any]:
        """The response's JSON object. Raises ProviderUnreachable, ProviderResponseError."""
        return parse_json_object(self.get(url, token=token))

    def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object of the response. Raises ProviderUnreachable, ProviderResponseError."""
        status, body = self._post(url, form, headers)
        if status != 200:
            code = _read_error_code(body)
            raise ProviderResponseError(f"the provider answered {status}{f' ({code})' if code else ''}")
        return parse_json_object(body)

    def post_form_for_error(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, str]:
        """Status and known error code of the response; the code is empty for any other. Raises ProviderUnreachable."""
        status, body = self._post(url, form, headers)
        return status, _read_error_code(body)

    def _post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, bytes]:
        all_headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        answer = self._send("POST", url, all_headers, urlencode(form).encode())
        return answer.status, answer.body

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Any:
        left = self._ends_at - monotonic()
        all_headers = {"Accept": "application/json", "User-Agent": f"identity/{__version__}", **headers}
        try:
            if left <= 0:
                raise TimeoutError
            return self._transport.send(method, url, headers=all_headers, body=body, seconds=left)
        except ForbiddenDestination:
            # The same message as for an unknown name.
            raise ProviderUnreachable("the provider did not answer: OSError", private=True) from None
        except (OSError, HTTPException, ValueError) as problem:
            raise ProviderUnreachable(f"the provider did not answer: {type(problem).__name__}") from None


class ProviderHttpClient:
    """One per process. Callers commit first: requests hold no database locks."""

    def __init__(self, transport: OutboundHttpClient | HttpTransport) -> None:
        self._transport = transport
        self._slots = FairSemaphore(_MAX_CONCURRENT_REQUESTS)
        self._backoff_until: dict[str, float] = {}

    @contextmanager
    def open_session(self, provider: UpstreamProvider) -> Iterator[ProviderHttpSession]:
        """Requests to this provider. Raises ProviderUnreachable if too many are waiting for it, or it failed a moment
        ago."""
        if monotonic() < self._backoff_until.get(provider.id, 0):
            raise ProviderUnreachable("the provider has not answered just now")
        with FairSemaphore.organization_scope(provider.organization_id):
            try:
                leave = self._slots.acquire(provider.id)
            except NoFreeSlot:
                raise ProviderUnreachable("too many wait for providers") from None
            try:
                with PasswordHasher.released_slot():
                    yield ProviderHttpSession(self._transport)
            except ProviderUnreachable as problem:
                why = (
                    f"it has no public address ({OUTBOUND_NETWORKS_SETTING} can name its network)"
                    if problem.private
                    else problem.user_message
                )
                log.warning("identity provider %s: %s", provider.id, why)
                self._back_off(provider.id)
                raise
            finally:
                leave()

    def _back_off(self, provider_id: str) -> None:
        if len(self._backoff_until) > _MAX_BACKOFF_ENTRIES:
            self._backoff_until.clear()
        self._backoff_until[provider_id] = monotonic() + _BACKOFF_SECONDS


def parse_json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body. Raises ProviderResponseError."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ProviderResponseError("the provider's answer is no JSON") from None
    if not isinstance(value, dict):
        raise ProviderResponseError("the provider's answer is no JSON object")
    return value


#: Error codes of RFC 6749 §5.2, and of GitHub; other texts are not repeated.
_ERRORS = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "bad_verification_code",
        "incorrect_client_credentials",
        "redirect_uri_mismatch",
    }
)


def _read_error_code(body: bytes) -> str:
    try:
        error = parse_json_object(body).get("error")
    except ProviderResponseError:
        return ""
    return error if isinstance(error, str) and error in _ERRORS else ""

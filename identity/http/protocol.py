"""Protocol endpoints without a web framework: what Pyramid and the ASGI application have in common at them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity import watching
from identity.http.cookies import cookie_headers
from identity.http.cors import origin_headers, preflight
from identity.http.request_services import RequestServices
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.errors import MethodNotAllowed, RequestTooLarge
from identity.provider.request import Browser, ProtocolRequest, ProtocolResponse

if TYPE_CHECKING:
    from identity.process import Identity

#: How many bytes the body of a form or of an API's request may have.
MAX_BODY = 64 * 1024

log = logging.getLogger(__name__)

_NOT_MODIFIED = 304

Headers = list[tuple[str, str]]


def too_large() -> RequestTooLarge:
    """The refusal of a body over MAX_BODY."""
    return RequestTooLarge(f"the body is larger than {MAX_BODY} bytes")


def content_type_of(header: str) -> str:
    """The media type without parameters."""
    return header.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an endpoint, for Pyramid to draw a page of it: a response or an error."""

    result: ProtocolResponse | Exception
    context: Context | None


class EndpointHandler:
    """Calls one endpoint."""

    def __init__(self, endpoint: Endpoint, identity: "Identity") -> None:
        self.endpoint = endpoint
        # A HEAD must not do what a GET does, where that is more than showing something (RFC 9110 §9.3.2).
        shows = "GET" in endpoint.methods and not endpoint.writes
        self._methods = frozenset(endpoint.methods) | ({"HEAD"} if shows else set())
        self._may_lag = endpoint.may_lag and identity.backend.lags
        self.has_browser = endpoint.host is Host.LOGIN
        self._identity = identity

    def is_preflight(self, method: str, requested_method: str | None) -> bool:
        """True if a browser asks beforehand whether a script may send a request (Fetch §3.2.2)."""
        return method == "OPTIONS" and requested_method is not None and self.endpoint.cross_origin

    def asks_storage(self, origin: str | None) -> bool:
        """True if the answer to a script of this origin, None if it is no script, may wait for the storage."""
        return self.endpoint.asks_storage or (origin is not None and self.endpoint.cross_origin)

    def preflight(self) -> ProtocolResponse:
        """The answer to that."""
        return preflight(self.endpoint)

    def check_method(self, method: str) -> None:
        """Raise MethodNotAllowed."""
        if method not in self._methods:
            raise MethodNotAllowed(self.endpoint.methods)

    def answer(self, request: ProtocolRequest, opened: RequestServices) -> ProtocolResponse:
        """What the endpoint answers. Raises what it raises."""
        answer = self._lagging_answer(request, opened) if self._may_lag else None
        if answer is None:
            opened.context = opened.new_context()
            answer = self.endpoint.handle(request, opened.context)
        return answer

    def headers(
        self, answer: ProtocolResponse, origin: str | None, opened: RequestServices, browser: Callable[[], Browser]
    ) -> Headers:
        """All headers of the answer; ``origin`` is that of a script."""
        headers = response_headers(answer, self._identity, browser)
        if origin is not None and self.endpoint.cross_origin:
            headers += origin_headers(origin, opened.services)
        return headers

    def _lagging_answer(self, request: ProtocolRequest, opened: RequestServices) -> ProtocolResponse | None:
        """What the endpoint says by a storage that may be behind; None if the primary has to be asked.

        A refusal does not count: what was made a moment ago may not be there yet. Neither does a failure.
        """
        if opened.begin_lagging():
            try:
                answer = self.endpoint.handle(request, opened.new_context())
            except Exception as problem:
                log.debug("asked anew: %s", type(problem).__name__)
            else:
                if not answer.denies:
                    watching.came_to(watching.READ, self.endpoint.name, watching.FROM_STANDBY)
                    return answer
            opened.end_lagging()
        watching.came_to(watching.READ, self.endpoint.name, watching.FROM_PRIMARY)
        return None


def response_headers(answer: ProtocolResponse, identity: "Identity", browser: Callable[[], Browser]) -> Headers:
    """The headers of an answer, whoever asks."""
    headers = [("X-Content-Type-Options", "nosniff")]
    if identity.strict_transport:
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    # A 304 has no body, and may only name the length that a 200 would have (RFC 9110 §8.6).
    if answer.status != _NOT_MODIFIED:
        headers.append(("Content-Length", str(len(answer.body))))
    if answer.body:
        headers.append(("Content-Type", answer.content_type))
    headers.extend(answer.headers.items())
    if answer.cookies:
        headers.extend(cookie_headers(identity.settings, browser(), answer.cookies))
    return headers

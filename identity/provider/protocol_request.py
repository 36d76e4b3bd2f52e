"""Requests and responses of endpoints, independent of the web framework."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import ClassVar

from identity.provider.errors import InvalidRequest, OAuthError, OversizedRequest, UnredirectableError
from identity.provider.parameters import Parameters

#: The maximum size of a request that may have to wait for its user.
MAX_REQUEST_BYTES = 16 * 1024

NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class CookieKind(Enum):
    """Purpose of a cookie of the login host."""

    SESSION = "session"
    SIGN_IN = "sign-in"
    KNOWN_BROWSER = "known"
    REMEMBERED = "remembered"


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie to set on the login host, or with ``secret`` None to remove. ``id`` is the session, pending sign-in or
    browser; the browser presents ``secret`` until ``max_age`` has passed."""

    kind: CookieKind
    id: str
    secret: str | None = None
    max_age: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class BrowserState:
    """The browser's cookies by id: secrets of its sessions and pending sign-ins, and tokens of accounts that know the
    browser or remember its second factor."""

    sessions: Mapping[str, str] = field(default_factory=dict)
    sign_ins: Mapping[str, str] = field(default_factory=dict)
    known_browsers: Mapping[str, str] = field(default_factory=dict)
    remembered_browsers: Mapping[str, str] = field(default_factory=dict)
    user_agent: str = ""


NO_BROWSER_STATE = BrowserState()


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """An HTTP request as the protocol sees it; ``body`` is already limited in size. ``browser_state`` is empty at
    endpoints that are not on the login host; ``resumed_request_id`` is the id of a continued authorization request,
    from the path. ``path`` is that of the address. ``headers`` are further ones by lower-case name: at least those of
    PASSED_HEADERS that were sent. ``is_from_proxy`` says that ``identity.trusted_proxy`` itself has sent it: only then
    does a header of CERTIFICATE_HEADERS mean anything."""

    #: Headers in which a proxy may pass the client's certificate. No request has one of them twice.
    CERTIFICATE_HEADERS: ClassVar[tuple[str, ...]] = ("client-cert", "x-client-cert", "x-ssl-client-cert")

    #: Headers that endpoints can read.
    PASSED_HEADERS: ClassVar[tuple[str, ...]] = ("accept", "dpop", *CERTIFICATE_HEADERS)

    method: str
    query: bytes
    body: bytes
    content_type: str
    authorization: str | None
    if_none_match: str | None = None
    browser_state: BrowserState = NO_BROWSER_STATE
    resumed_request_id: str | None = None
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_from_proxy: bool = False

    def parse_parameters(self, *, may_be_empty: bool = False) -> Parameters:
        """Parameters of the query or form, including repeated ones, of a request whose errors are shown in the
        browser. A POST without a body needs no content type if it ``may_be_empty``. Raises OversizedRequest,
        UnredirectableError."""
        encoded = self.body if self.method == "POST" else self.query
        if len(encoded) > MAX_REQUEST_BYTES:
            raise OversizedRequest(f"the request is larger than {MAX_REQUEST_BYTES} bytes")
        is_form = self.content_type == "application/x-www-form-urlencoded"
        if self.method == "POST" and not is_form and (encoded or not may_be_empty):
            raise UnredirectableError("the body must be application/x-www-form-urlencoded")
        try:
            return Parameters.parse_leniently(encoded)
        except InvalidRequest as problem:
            raise UnredirectableError(problem.description) from None

    def parse_form(self) -> Parameters:
        """Raises InvalidRequest, also for another content type."""
        parameters = self.parse_lenient_form()
        parameters.refuse_repeated()
        return parameters

    def parse_lenient_form(self) -> Parameters:
        """Like ``parse_form``, but keep repeated parameters for the caller to refuse."""
        if self.content_type != "application/x-www-form-urlencoded":
            raise InvalidRequest("the body must be application/x-www-form-urlencoded")
        return Parameters.parse_leniently(self.body)


@dataclass(frozen=True, slots=True)
class FormPost:
    """A page that posts these fields to a client automatically (OAuth 2.0 Form Post Response Mode)."""

    action: str
    fields: Mapping[str, str]
    application: str


@dataclass(frozen=True, slots=True)
class ProtocolResponse:
    """An HTTP response. ``form_post`` is rendered as its body by the HTTP layer. ``is_negative`` means that nothing was
    found, although it may have been stored just now."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: NO_STORE)
    cookies: tuple[Cookie, ...] = ()
    form_post: FormPost | None = None
    is_negative: bool = False

    @classmethod
    def from_json(
        cls, text: str, *, status: int = 200, headers: Mapping[str, str] = NO_STORE, is_negative: bool = False
    ) -> "ProtocolResponse":
        """A response with JSON text, never cached."""
        return cls(status, text.encode(), headers=headers, is_negative=is_negative)

    @classmethod
    def from_error(cls, error: OAuthError) -> "ProtocolResponse":
        """The response for an error (RFC 6749 §5.2): error, error_description, and the error's own headers."""
        from identity.provider.pyoidc_messages import ErrorResponse

        message = ErrorResponse(error=error.error, error_description=error.description)
        return cls.from_json(message.to_json(), status=error.status, headers={**NO_STORE, **error.headers})

    @classmethod
    def redirect(cls, location: str, *cookies: Cookie) -> "ProtocolResponse":
        """303 to a whole address: behind a proxy the request does not know its own."""
        return cls(303, headers={**NO_STORE, "Location": location}, cookies=cookies)

"""Requests and responses of endpoints, independent of the web framework."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from identity.provider.errors import InvalidRequest
from identity.provider.parameters import Parameters

NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class CookieKind(Enum):
    """What a cookie of the login host remembers."""

    SESSION = "session"
    SIGN_IN = "sign-in"
    KNOWN_BROWSER = "known"
    REMEMBERED = "remembered"


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie to set on the login host, or with ``secret`` None to remove.

    ``id`` names the session, the pending sign-in or the browser itself; the browser shows ``secret`` until ``max_age``
    is over.
    """

    kind: CookieKind
    id: str
    secret: str | None = None
    max_age: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class BrowserState:
    """The browser's cookies by id: secrets of its sessions and pending sign-ins, and tokens of accounts that know it or
    remember its second factor.
    """

    sessions: Mapping[str, str] = field(default_factory=dict)
    sign_ins: Mapping[str, str] = field(default_factory=dict)
    known_browsers: Mapping[str, str] = field(default_factory=dict)
    remembered_browsers: Mapping[str, str] = field(default_factory=dict)
    user_agent: str = ""


NO_BROWSER_STATE = BrowserState()


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """An HTTP request as the protocol sees it; ``body`` is already limited in size.

    ``browser_state`` is empty at endpoints that are not on the login host; ``resumed_request_id`` is the id in the
    address of an authorization request that is continued.
    """

    method: str
    query: bytes
    body: bytes
    content_type: str
    authorization: str | None
    if_none_match: str | None = None
    browser_state: BrowserState = NO_BROWSER_STATE
    resumed_request_id: str | None = None

    def parse_form(self) -> Parameters:
        """The parameters of a form-encoded body. Raises InvalidRequest, also for another content type."""
        parameters = self.parse_lenient_form()
        parameters.refuse_repeated()
        return parameters

    def parse_lenient_form(self) -> Parameters:
        """The same with parameters that were given more than once, for whoever refuses those."""
        if self.content_type != "application/x-www-form-urlencoded":
            raise InvalidRequest("the body must be application/x-www-form-urlencoded")
        return Parameters.parse_leniently(self.body)


@dataclass(frozen=True, slots=True)
class FormPost:
    """A page that sends these fields on to a client by itself (OAuth 2.0 Form Post Response Mode)."""

    action: str
    fields: Mapping[str, str]
    application: str


@dataclass(frozen=True, slots=True)
class ProtocolResponse:
    """An HTTP answer. With ``form_post`` its body is that page, which the rim draws.

    ``is_negative`` says that it tells of nothing, though there may be something that was stored just now.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: NO_STORE)
    cookies: tuple[Cookie, ...] = ()
    form_post: FormPost | None = None
    is_negative: bool = False

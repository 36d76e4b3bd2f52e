"""The end-session endpoint (service description §4.7, OpenID Connect RP-Initiated Logout)."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from identity.domain.applications import Client
from identity.domain.sessions import SignedIn
from identity.provider.endpoint import Endpoint, Host
from identity.provider.endpoints.authorize import MAX_REQUEST
from identity.provider.errors import InvalidRequest, LargeRequest, UnreadableRequest, UntrustedRedirect
from identity.provider.id_token_hint import IdTokenHint, read_hint
from identity.provider.parameters import Parameters, given_twice
from identity.provider.request import NO_STORE, Context, Cookie, CookieKind, ProtocolRequest, ProtocolResponse

PATH = "/oauth/v2/endsession"

#: Where a person is asked, and where they end up if nowhere else.
ASK = "/sign-out"
SIGNED_OUT = "/signed-out"

#: What the page that asks needs to know; the hint stays behind.
_ASKED = ("client_id", "post_logout_redirect_uri", "state", "ui_locales", "logout_hint")


@dataclass(frozen=True, slots=True)
class LogoutRequest:
    """What was asked: by which client, and where the browser goes afterwards; None if it stays here."""

    client: Client | None
    return_to: str | None
    hint: IdTokenHint | None
    parameters: Parameters


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Sign out and send the browser back, if a valid hint names a session of this browser; otherwise ask the person.

    Raises Unredirectable if the request cannot be read, or names an address that is not registered.
    """
    asked = read_logout_request(_parameters(request), context)
    sessions = context.services.sessions
    if request.method == "POST" and not request.browser.sessions:
        # Browsers keep our cookies back from another site's POST, and send them with the GET that follows.
        return _redirect(_here(PATH, asked.parameters, context))
    accounts = sessions.of_browser(request.browser.sessions.values())
    ended = _meant(asked, accounts)
    if ended is None and any(sessions.live(one) for one in accounts):
        query = {name: asked.parameters[name] for name in _ASKED if name in asked.parameters}
        if asked.hint is not None:
            query["client_id"] = asked.hint.client_id
        return _redirect(_here(ASK, query, context))
    return sign_out(asked, () if ended is None else (ended,), context)


def read_logout_request(parameters: Parameters, context: Context) -> LogoutRequest:
    """The request, its addresses checked. Raises Unredirectable."""
    text = parameters.one("id_token_hint")
    hint = None
    if text is not None:
        try:
            hint = read_hint(text, context)
        except InvalidRequest:
            # Whoever sent it knows no session: the person is asked, and stays here.
            return LogoutRequest(None, None, None, Parameters({}))
    client_id = parameters.one("client_id")
    if hint is not None and client_id not in (None, hint.client_id):
        raise UntrustedRedirect("client_id is another than the one that id_token_hint was made for")
    named = client_id or (None if hint is None else hint.client_id)
    client = None if named is None else context.services.applications.find_client(named)
    if client_id is not None and (client is None or not client.active):
        raise UntrustedRedirect("client_id names no active application")
    uri = parameters.one("post_logout_redirect_uri")
    if uri is None:
        return LogoutRequest(client, None, hint, parameters)
    if client is None or not client.active:
        raise UntrustedRedirect("post_logout_redirect_uri needs id_token_hint or client_id beside it")
    if uri not in client.application.post_logout_redirect_uris:
        raise UntrustedRedirect(
            "post_logout_redirect_uri is not registered for this application",
            reason=f"post_logout_redirect_uri {uri[:500]} is not registered",
            application=client.application.name,
        )
    return LogoutRequest(client, _with_state(uri, parameters.one("state")), hint, parameters)


def sign_out(asked: LogoutRequest, accounts: tuple[SignedIn, ...], context: Context) -> ProtocolResponse:
    """End these sessions, and send the browser where it was asked to go, or to the page that says so."""
    for account in accounts:
        context.services.sessions.end(account)
    cookies = tuple(Cookie(CookieKind.SESSION, account.session.id) for account in accounts)
    return _redirect(asked.return_to or _here(SIGNED_OUT, {}, context), *cookies)


def _meant(asked: LogoutRequest, accounts: tuple[SignedIn, ...]) -> SignedIn | None:
    """The session of this browser that the hint was issued in; another one of the same person is not meant."""
    if asked.hint is None:
        return None
    return next((one for one in accounts if one.session.id == asked.hint.session_id), None)


def _parameters(request: ProtocolRequest) -> Parameters:
    encoded = request.query if request.method != "POST" else request.body
    if len(encoded) > MAX_REQUEST:
        raise LargeRequest(f"the request is larger than {MAX_REQUEST} bytes")
    if request.method == "POST" and encoded and request.content_type != "application/x-www-form-urlencoded":
        raise UnreadableRequest("the body must be application/x-www-form-urlencoded")
    try:
        parameters, repeated = Parameters.parse_leniently(encoded)
        if repeated:
            raise given_twice(repeated[0])
    except InvalidRequest as problem:
        raise UnreadableRequest(problem.description) from None
    return parameters


def _with_state(uri: str, state: str | None) -> str:
    if state is None:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode({'state': state})}"


def _here(path: str, query: Mapping[str, str], context: Context) -> str:
    """An address on the login host, by the settings: behind a proxy the request does not know it."""
    address = context.settings.login_url + path
    return f"{address}?{urlencode(query)}" if query else address


def _redirect(location: str, *cookies: Cookie) -> ProtocolResponse:
    headers = {**NO_STORE, "Location": location}
    return ProtocolResponse(303, headers=headers, cookies=cookies)


ENDPOINT = Endpoint(
    name="end_session",
    path=PATH,
    host=Host.LOGIN,
    methods=("GET", "POST"),
    advertised_as="end_session",
    writes=True,
    handle=handle,
)

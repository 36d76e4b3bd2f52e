"""The end-session endpoint (service description §4.7, OpenID Connect RP-Initiated Logout).

A request that must wait, either for the cookies that browsers withhold from a cross-site POST or for the user's
confirmation, is stored as a row, like authorization requests: neither hint nor state appears in URLs of the service.
"""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from identity.api.endpoints import (
    BrowserState,
    Context,
    Cookie,
    CookieKind,
    Endpoint,
    EndpointHost,
    InvalidRequest,
    Parameters,
    ProtocolRequest,
    ProtocolResponse,
    UnknownApplication,
    UnredirectableError,
    UntrustedRedirect,
)
from identity.api.entities import ApplicationClient
from identity.api.sign_in import LogoutHandler, SignedInAccount, SignInUnavailable, SignOutPage

PATH = "/oauth/v2/endsession"

#: The parameter with the id of the pending request.
PENDING_REQUEST_PARAMETER = "request"

#: Schemes for which browsers follow a redirect without asking.
REDIRECT_SCHEMES = ("https://", "http://")

_KNOWN = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales", "logout_hint")
_LONGEST_STATE = 2048
_LONGEST_LOCALES = 200


@dataclass(frozen=True, slots=True)
class LogoutRequest:
    """Which client requested the logout, and where the browser goes afterwards; None if it stays here.

    ``session_id`` is the session of the hint. ``pending_request_id`` is the id of the stored row; None if it is not
    pending.
    """

    client: ApplicationClient | None
    post_logout_redirect_uri: str | None
    session_id: str | None
    parameters: Parameters
    pending_request_id: str | None = None


#: The request of an unknown client: the user must confirm, and is not redirected.
EMPTY_LOGOUT_REQUEST = LogoutRequest(None, None, None, Parameters({}))


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Sign out and redirect back if a valid hint names a session of this browser; otherwise ask the user to confirm.

    Raises UnredirectableError if the request cannot be read, or has an unregistered redirect URI.
    """
    parameters = request.parse_parameters(may_be_empty=True)
    try:
        parameters.refuse_repeated()
    except InvalidRequest as problem:
        raise UnredirectableError(problem.description) from None
    logout_request = parse_logout_request(parameters, context)
    if request.method == "POST" and not request.browser_state.sessions:
        # Browsers withhold cookies from a cross-site POST, and send them with the GET that follows.
        return _wait(logout_request, f"{PATH}/{{}}", context)
    return _decide(logout_request, request.browser_state, context)


def resume(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Continue a request that was sent by POST. Raises SignInUnavailable if it cannot continue in this browser;
    UnredirectableError."""
    return _decide(
        load_pending_request(request.resumed_request_id or "", request.browser_state, context),
        request.browser_state,
        context,
    )


def load_pending_request(request_id: str, browser: BrowserState, context: Context) -> LogoutRequest:
    """The pending request; the empty one if it cannot continue in this browser. Raises UnredirectableError."""
    try:
        pending = context.services.sign_ins.find(request_id, browser.sign_ins.get(request_id))
    except SignInUnavailable:
        return EMPTY_LOGOUT_REQUEST
    return replace(parse_logout_request(Parameters(pending.parameters), context), pending_request_id=pending.id)


def parse_logout_request(parameters: Parameters, context: Context) -> LogoutRequest:
    """The request with validated URIs. Raises UnredirectableError."""
    text = parameters.get_value("id_token_hint")
    hint = None if text is None else context.services.signing_keys.verify_id_token_hint(text)
    if text is not None and hint is None:
        # The hint names no known session.
        return EMPTY_LOGOUT_REQUEST
    session_id = None if hint is None else hint.session_id
    client_id = parameters.get_value("client_id")
    if hint is not None and client_id not in (None, hint.client_id):
        raise UnredirectableError("client_id is another than the one that id_token_hint was made for")
    named = client_id or (None if hint is None else hint.client_id)
    client = None if named is None else context.services.applications.find_client(named)
    if client is None or not client.is_active:
        if client_id is not None:
            raise UnknownApplication("client_id names no active application")
        # Without a client the URI cannot be checked (RP-Initiated Logout §2).
        return LogoutRequest(None, None, session_id, parameters)
    if len(parameters.get("state", "")) > _LONGEST_STATE:
        raise UnredirectableError(f"parameter state is longer than {_LONGEST_STATE} characters")
    uri = parameters.get_value("post_logout_redirect_uri")
    if uri is None:
        return LogoutRequest(client, None, session_id, parameters)
    if uri not in client.application.post_logout_redirect_uris:
        refusal = UntrustedRedirect(
            "post_logout_redirect_uri is not registered for this application", application=client.application, uri=uri
        )
        context.services.audit.record_refusal(
            "authorization.refused",
            kind="application",
            id=client.id,
            organization_id=client.organization.id,
            reason=refusal.audit_reason,
            detail={"error": refusal.error, "post_logout_redirect_uri": refusal.sent},
        )
        raise refusal
    return LogoutRequest(client, _with_state(uri, parameters.get_value("state")), session_id, parameters)


def end_requested_sessions(
    logout_request: LogoutRequest, accounts: tuple[SignedInAccount, ...], context: Context, *, fallback_url: str = ""
) -> ProtocolResponse:
    """End these sessions and redirect to the requested URI or the page that confirms the logout; ``fallback_url``
    replaces both. A logout at an upstream provider comes first.
    """
    return LogoutHandler.end_sessions(
        accounts,
        context,
        return_to=fallback_url
        or logout_request.post_logout_redirect_uri
        or context.settings.login_url + SignOutPage.SIGNED_OUT_PATH,
        parameters=_stored_parameters(logout_request),
        pending_request_id=logout_request.pending_request_id,
        client_id=None if logout_request.client is None else logout_request.client.id,
    )


def finish_logout_request(request_id: str, browser: BrowserState, context: Context) -> ProtocolResponse | None:
    """Redirect after a logout at an upstream provider: to the application that requested the logout, once; else to
    the page that confirms it and links to the local applications. None if the request cannot continue in this
    browser. Raises UnredirectableError.
    """
    try:
        pending = context.services.sign_ins.find(request_id, browser.sign_ins.get(request_id))
        uri = parse_logout_request(Parameters(pending.parameters), context).post_logout_redirect_uri
        if uri is None or not uri.startswith(REDIRECT_SCHEMES):
            query = urlencode({PENDING_REQUEST_PARAMETER: request_id})
            return context.redirect_to_page(f"{SignOutPage.SIGNED_OUT_PATH}?{query}")
        context.services.sign_ins.finish(pending)
    except SignInUnavailable:
        return None
    return ProtocolResponse.redirect(uri, Cookie(CookieKind.SIGN_IN, pending.id))


def _decide(logout_request: LogoutRequest, browser: BrowserState, context: Context) -> ProtocolResponse:
    sessions = context.services.sessions
    accounts = sessions.list_by_secrets(browser.sessions.values())
    ended = _meant(logout_request, accounts)
    if ended is None and any(sessions.is_live(account) for account in accounts):
        locales = logout_request.parameters.get("ui_locales", "")[:_LONGEST_LOCALES]
        spoken = f"&{urlencode({'ui_locales': locales})}" if locales else ""
        return _wait(logout_request, f"{SignOutPage.PATH}?{PENDING_REQUEST_PARAMETER}={{}}", context, spoken)
    return end_requested_sessions(logout_request, () if ended is None else (ended,), context)


def _wait(logout_request: LogoutRequest, path: str, context: Context, more: str = "") -> ProtocolResponse:
    """Redirect to the path with the id of the pending request, which is stored first unless it is already."""
    if logout_request.pending_request_id is not None:
        return context.redirect_to_page(path.format(logout_request.pending_request_id) + more)
    parameters = _stored_parameters(logout_request)
    request_id, cookie = context.store_request(parameters, ui_locales=parameters.get("ui_locales", ""))
    return context.redirect_to_page(path.format(request_id) + more, cookie)


def _stored_parameters(logout_request: LogoutRequest) -> dict[str, str]:
    return {name: logout_request.parameters[name] for name in _KNOWN if name in logout_request.parameters}


def _meant(logout_request: LogoutRequest, accounts: tuple[SignedInAccount, ...]) -> SignedInAccount | None:
    """The browser's session in which the hint was issued; another session of the same user does not match."""
    return next((account for account in accounts if account.session.id == logout_request.session_id), None)


def _with_state(uri: str, state: str | None) -> str:
    if state is None:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode({'state': state})}"


ENDPOINT = Endpoint(
    name="end_session",
    path=PATH,
    host=EndpointHost.LOGIN,
    methods=("GET", "POST"),
    discovery_member="end_session_endpoint",
    writes=True,
    allows_impersonators=True,
    handle=handle,
)

RESUME = Endpoint(
    name="end_session.resume",
    path=f"{PATH}/{{request}}",
    host=EndpointHost.LOGIN,
    methods=("GET",),
    discovery_member=None,
    writes=True,
    allows_impersonators=True,
    handle=resume,
)

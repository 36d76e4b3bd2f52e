"""Requests from other sites: how they are parsed, and stored until their user has acted."""

from collections.abc import Mapping

from identity.provider.context import Context
from identity.provider.errors import InvalidRequest, OversizedRequest, UnreadableRequest
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import Cookie, CookieKind, ProtocolRequest, ProtocolResponse
from identity.provider.responses import redirect_response

MAX_REQUEST_BYTES = 16 * 1024


def parse_request_parameters(request: ProtocolRequest, *, may_be_empty: bool = False) -> Parameters:
    """Parameters of the query or form, including repeated ones. Raises OversizedRequest, UnreadableRequest."""
    encoded = request.query if request.method != "POST" else request.body
    if len(encoded) > MAX_REQUEST_BYTES:
        raise OversizedRequest(f"the request is larger than {MAX_REQUEST_BYTES} bytes")
    is_form = request.content_type == "application/x-www-form-urlencoded"
    if request.method == "POST" and not is_form and (encoded or not may_be_empty):
        raise UnreadableRequest("the body must be application/x-www-form-urlencoded")
    try:
        return Parameters.parse_leniently(encoded)
    except InvalidRequest as problem:
        raise UnreadableRequest(problem.description) from None


def store_and_redirect(
    parameters: Mapping[str, str], path: str, context: Context, *, login_name: str = "", ui_locales: str = ""
) -> ProtocolResponse:
    """Store the request for this browser, and redirect to the path on the login host with its id in place of braces."""
    request_id, cookies = store_pending_request(parameters, context, login_name=login_name, ui_locales=ui_locales)
    return redirect_response(context.settings.login_url + path.format(request_id), *cookies)


def store_pending_request(
    parameters: Mapping[str, str], context: Context, *, login_name: str = "", ui_locales: str = ""
) -> tuple[str, tuple[Cookie, ...]]:
    """The id of the stored request, and the cookie that identifies its browser."""
    pending, secret = context.services.sign_ins.begin(parameters, login_name=login_name, ui_locales=ui_locales)
    return pending.id, (Cookie(CookieKind.SIGN_IN, pending.id, secret, context.settings.sign_in_lifetime),)

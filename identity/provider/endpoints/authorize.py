"""The authorization endpoint (service description §4.2), and where a request that waited for its user goes on.

A request goes through two halves, split at the moment its redirect URI is trusted: before it, errors are shown to the
person at the browser; after it, they travel to the client. Then either a page comes first, and the request waits as a
row whose id is in the address; or the response type says what the answer carries.
"""

from dataclasses import replace
from typing import Any

from identity.domain.applications import Client
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.sessions import PendingAuthorization, SignedIn
from identity.domain.users import Subject
from identity.provider.answers import redirect
from identity.provider.assurance import missing, starting
from identity.provider.authorization_request import AuthorizationRequest, find_address, read_request
from identity.provider.consent import CONSENT, offered
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.errors import (
    AccountSelectionRequired,
    ConsentRequired,
    InteractionRequired,
    LoginRequired,
    OAuthError,
    UnmetAuthenticationRequirements,
    Unredirectable,
    UntrustedRedirect,
)
from identity.provider.interaction import Interaction, Need, SignIn, first_required
from identity.provider.issuing import issue, new_code, new_family
from identity.provider.known_browser import known_browser
from identity.provider.parameters import Parameters
from identity.provider.request import Browser, Cookie, CookieKind, ProtocolRequest, ProtocolResponse
from identity.provider.response_type import Artifact
from identity.provider.return_address import ReturnAddress
from identity.provider.scope import required_organization
from identity.provider.waiting import read_parameters, wait
from identity.services.sign_ins import ChangedSignIn

#: Errors that say no more than that prompt=none allowed no page.
_PAGE_NEEDED = (LoginRequired, InteractionRequired, AccountSelectionRequired, ConsentRequired)

PATH = "/oauth/v2/authorize"


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Answer the client at once, or send the browser to the first page that is needed. Raises Unredirectable."""
    parameters = read_parameters(request)
    client, address = _find_address(parameters, context)
    try:
        asked = read_request(parameters, client, address, context)
        if request.method == "POST":
            # Browsers keep our cookies back from another site's POST, and send them with the GET that follows.
            return _wait(asked, context, f"{PATH}/{{}}")
        return _go_on(_sign_in(asked, None, request.browser, context), request.browser, context)
    except OAuthError as error:
        return _refusal(error, client, address, context)


def resume(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Go on with a request that waited: its answer, or the next page.

    Raises NoSignIn if it cannot go on in this browser; Unredirectable if its application is gone.
    """
    request_id = request.resumed or ""
    try:
        return _resume(request_id, request, context)
    except ChangedSignIn:
        return redirect(context.settings.login_url + f"{PATH}/{request_id}")


def _resume(request_id: str, request: ProtocolRequest, context: Context) -> ProtocolResponse:
    pending = context.services.sign_ins.find(request_id, request.browser.sign_ins.get(request_id))
    if pending.target is not None:
        return _go_on(_sign_in(None, pending, request.browser, context), request.browser, context)
    parameters = Parameters(pending.parameters)
    client, address = _find_address(parameters, context)
    try:
        asked = read_request(parameters, client, address, context)
        return _go_on(_sign_in(asked, pending, request.browser, context), request.browser, context)
    except OAuthError as error:
        context.services.sign_ins.finish(pending)
        refusal = _refusal(error, client, address, context)
        return replace(refusal, cookies=(Cookie(CookieKind.SIGN_IN, pending.id),))


def sign_in_of(pending: PendingAuthorization, browser: Browser, context: Context) -> SignIn:
    """How far a waiting request has come, for the pages that draw it. Raises OAuthError, Unredirectable."""
    if pending.target is not None:
        return _sign_in(None, pending, browser, context)
    parameters = Parameters(pending.parameters)
    client, address = _find_address(parameters, context)
    return _sign_in(read_request(parameters, client, address, context), pending, browser, context)


def _find_address(parameters: Parameters, context: Context) -> tuple[Client, ReturnAddress]:
    try:
        client, address = find_address(parameters, context)
    except Unredirectable as error:
        # Only what is registered is named: a stranger's words fill no trail.
        named = context.services.applications.find_client(parameters.get("client_id", ""))
        _audit(error, named, context)
        raise
    context.waiting.append(address)
    return client, address


def _refusal(error: OAuthError, client: Client, address: ReturnAddress, context: Context) -> ProtocolResponse:
    # That a page would be needed is no refusal: clients ask with prompt=none all day long.
    if not isinstance(error, _PAGE_NEEDED):
        _audit(error, client, context)
    return address.error(error)


def _audit(error: OAuthError, client: Client | None, context: Context) -> None:
    context.services.audit.refuse(
        "authorization.refused",
        kind="application",
        id=None if client is None else client.id,
        organization_id=None if client is None else client.organization.id,
        reason=error.reason,
        detail=_detail(error),
    )


def _detail(error: OAuthError) -> dict[str, object]:
    # Of what was sent this alone is told: whoever registered the addresses finds the slip by it.
    sent = error.sent if isinstance(error, UntrustedRedirect) else ""
    return {"error": error.error, **({"redirect_uri": sent} if sent else {})}


def _sign_in(
    asked: AuthorizationRequest | None,
    pending: PendingAuthorization | None,
    browser: Browser,
    context: Context,
) -> SignIn:
    proved: Subject | None = None
    if pending is not None and pending.user_id is not None:
        with context.services.look() as storage:
            proved = storage.users.find_subject(pending.user_id)
        policies = context.services.policies
        if proved is None or not proved.active or not policies.counting(proved, pending.proofs):
            # What they did counts for nobody else at this browser, and not by what may not be used.
            proved, pending = None, pending.begun_anew()
    return SignIn(
        request=asked,
        accounts=context.services.sessions.of_browser(browser.sessions.values()),
        now=context.now,
        lives=context.services.sessions.live,
        pending=pending,
        proved=proved,
        organization=None if asked is None else required_organization(asked.scope, context),
        browser=browser,
        assess=lambda sign_in: missing(sign_in, context),
        counts=lambda account: bool(context.services.policies.counting(account.subject, account.session.proofs)),
        offering=lambda sign_in: offered(sign_in, sign_in.chosen, context),
    )


def _go_on(sign_in: SignIn, browser: Browser, context: Context) -> ProtocolResponse:
    """The next page, or the answer."""
    needed = first_required(context.protocol.interactions.values(), sign_in, context)
    if needed is None:
        if sign_in.need is not None:
            raise _lacking(sign_in.need)
        return _answer(sign_in, browser, context)
    if sign_in.request is not None and sign_in.request.silent:
        raise needed.error(needed.description)
    return _show(needed, sign_in, context)


def _show(needed: Interaction, sign_in: SignIn, context: Context) -> ProtocolResponse:
    if sign_in.pending is not None:
        return redirect(context.settings.login_url + _page(needed, sign_in, sign_in.pending.id))
    if sign_in.request is None:
        raise ValueError("a sign-in of the service's own pages waits from its beginning")
    return _wait(sign_in.request, context, _page(needed, sign_in, "{}"))


def _page(needed: Interaction, sign_in: SignIn, request_id: str) -> str:
    below = needed.path(sign_in)
    return f"/login/{request_id}/{below}" if below else f"/login/{request_id}"


def _wait(asked: AuthorizationRequest, context: Context, path: str) -> ProtocolResponse:
    return wait(asked.parameters, path, context, login_name=asked.login_hint, ui_locales=asked.ui_locales)


def _answer(sign_in: SignIn, browser: Browser, context: Context) -> ProtocolResponse:
    """What was asked for, from the session that was chosen or that starts now."""
    cookies: list[Cookie] = []
    pending = sign_in.pending
    if pending is not None:
        # First of all, so that of racing tabs one goes on.
        context.services.sign_ins.finish(pending)
        cookies.append(Cookie(CookieKind.SIGN_IN, pending.id))
    account = sign_in.chosen
    if sign_in.proved is not None and pending is not None:
        account, secret = context.services.sessions.sign_in(
            sign_in.proved,
            sign_in.accounts,
            proofs=starting(sign_in, context),
            user_agent=browser.user_agent,
            at=pending.authenticated_at,
            client_id=pending.client_id,
            known=bool(context.services.known_browsers.of(sign_in.proved.user.id, browser.known)),
        )
        age = account.session.ends_at - context.now
        cookies.append(Cookie(CookieKind.SESSION, account.session.id, secret, age))
        cookies.extend(_superseded(sign_in, account))
        cookies.extend(known_browser(account.subject.user.id, browser, context.services))
    elif account is not None and pending is not None and pending.proofs:
        account, secret = context.services.sessions.strengthen(account, pending.proofs, client_id=pending.client_id)
        age = account.session.ends_at - context.now
        cookies.append(Cookie(CookieKind.SESSION, account.session.id, secret, age))
    if account is None or not sign_in.live(account) or (sign_in.proved is None and not sign_in.fresh(account)):
        # No interaction stands for this: without pages for signing in, nobody is let through.
        account = None
    if sign_in.request is None:
        if account is None or pending is None or pending.target is None:
            raise LoginRequired("The user is not signed in.")
        context.services.sessions.select(account)
        return redirect(context.settings.login_url + pending.target, *cookies)
    asked = sign_in.request
    try:
        response = asked.address.answer(_members(sign_in, account, asked, context))
    except OAuthError as error:
        # The person may well be signed in now, even if the client gets nothing.
        response = _refusal(error, asked.client, asked.address, context)
    return replace(response, cookies=tuple(cookies)) if cookies else response


def _lacking(need: Need) -> OAuthError:
    """No interaction stands for this: without pages for factors, nobody is let through who lacks one."""
    if need.by_client:
        return UnmetAuthenticationRequirements("The user cannot be authenticated in the way that acr asks for.")
    return InteractionRequired("The user has to prove who they are by a second factor.")


def _superseded(sign_in: SignIn, account: SignedIn) -> list[Cookie]:
    """Cookies of expired sessions of the same person: the new session stands for them."""
    return [
        Cookie(CookieKind.SESSION, one.session.id)
        for one in sign_in.accounts
        if one.subject.user.id == account.subject.user.id and one.session.id != account.session.id
    ]


def _members(
    sign_in: SignIn, account: SignedIn | None, asked: AuthorizationRequest, context: Context
) -> dict[str, Any]:
    """The members of the answer (service description §4.2)."""
    if account is None:
        raise LoginRequired("The user is not signed in.")
    if asked.subject not in (None, account.subject.user.id):
        raise LoginRequired("Another user is signed in than the one that the request names.")
    offer = sign_in.offer if account is sign_in.chosen else offered(sign_in, account, context)
    if offer.unagreed or (CONSENT in sign_in.prompts and not sign_in.done(CONSENT)):
        # As with signing in: without a page for it, nobody is taken to have agreed.
        raise ConsentRequired("The user has to consent.")
    authorization, granted, issues = offer.authorization, offer.granted, asked.response_type.issues
    context.services.sessions.touch(account)
    members: dict[str, Any] = {}
    code: AuthorizationCode | None = None
    if issues & {Artifact.CODE, Artifact.ACCESS_TOKEN}:
        if Artifact.CODE in issues:
            members["code"], code = new_code(
                authorization, granted, context, redirect_uri=asked.redirect_uri, code_challenge=asked.code_challenge
            )
        family = new_family(authorization, granted, context)
        context.services.tokens.begin(family, code, last=not asked.response_type.fronts_tokens)
    if asked.response_type.fronts_tokens:
        tokens = issue(
            authorization,
            granted,
            context,
            access_token=Artifact.ACCESS_TOKEN in issues,
            code=members.get("code"),
        )
        members |= tokens.members()
    return members


ENDPOINT = Endpoint(
    name="authorize",
    path=PATH,
    host=Host.LOGIN,
    methods=("GET", "POST"),
    advertised_as="authorization_endpoint",
    writes=True,
    handle=handle,
)

RESUME = Endpoint(
    name="authorize.resume",
    path=f"{PATH}/{{request}}",
    host=Host.LOGIN,
    methods=("GET",),
    advertised_as=None,
    writes=True,
    handle=resume,
)

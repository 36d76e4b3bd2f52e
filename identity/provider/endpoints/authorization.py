"""The authorization endpoint (service description §4.2), and how a pending request continues.

Until the redirect URI is trusted, errors are shown in the browser; afterwards they are sent to the client. Then a
page comes first, and the request waits as a row whose id is in the path; or the response type builds the response.
"""

from dataclasses import dataclass, replace
from typing import Any

from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import AuthorizationCode
from identity.domain.sessions import PendingAuthorization, SignedInAccount
from identity.domain.tokens import TokenFamily
from identity.domain.users import Subject
from identity.provider.access_token_formats import SigningKeyGetter
from identity.provider.authorization_request import (
    AuthorizationRequest,
    parse_authorization_request,
    resolve_client_and_redirect_target,
)
from identity.provider.authorization_request_source import LoadedRequest, load_request, require_forms
from identity.provider.consent import build_consent_summary, requires_consent_page
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.errors import (
    AccessDenied,
    AccountSelectionRequired,
    ConsentRequired,
    InteractionRequired,
    LoginRequired,
    OAuthError,
    UnmetAuthenticationRequirements,
    UnredirectableError,
    UntrustedRedirect,
)
from identity.provider.interaction import ConsentSummary, Interaction, SignIn, StepUpRequirement, next_interaction
from identity.provider.known_browser_cookies import new_known_browser_cookies
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import BrowserState, Cookie, CookieKind, ProtocolRequest, ProtocolResponse
from identity.provider.redirect_target import RedirectTarget
from identity.provider.resource_indicators import join_resources
from identity.provider.response_type import Artifact
from identity.provider.scope import required_organization
from identity.provider.step_up import find_step_up_requirement, initial_session_proofs, is_fully_authenticated
from identity.provider.token_issuance import MintedTokens, mint_tokens, new_code, new_family, store_tokens
from identity.services.sign_ins import StaleSignIn

#: Errors which only say that prompt=none allowed no page.
_PAGE_NEEDED = (LoginRequired, InteractionRequired, AccountSelectionRequired, ConsentRequired)

PATH = "/oauth/v2/authorize"


def handle(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Respond to the client at once, or redirect to the first page that is needed. Raises UnredirectableError."""
    loaded, problem = _load(join_resources(request.parse_parameters(), context), context)
    parameters = loaded.parameters
    client, address = _find_address(parameters, context)
    try:
        if problem is not None:
            raise problem
        require_forms(client, loaded.forms)
        authorization = parse_authorization_request(parameters, client, address, context)
        if request.method == "POST":
            # Browsers withhold our cookies from another site's POST, and send them with the GET that follows.
            return _wait(authorization, context, f"{PATH}/{{}}")
        sign_in = build_sign_in(authorization, None, request.browser_state, context)
        return _go_on(sign_in, request.browser_state, context)
    except OAuthError as error:
        return _refusal(error, client, address, context)


def _load(parameters: Parameters, context: Context) -> tuple[LoadedRequest, OAuthError | None]:
    """The request, or as much of it as is needed to send its error. Raises UnredirectableError."""
    try:
        return load_request(parameters, context), None
    except UnredirectableError as error:
        _audit(error, None, context)
        raise
    except OAuthError as error:
        if "redirect_uri" in parameters:
            return LoadedRequest(parameters), error
        _audit(error, context.services.applications.find_client(parameters.get("client_id", "")), context)
        raise UnredirectableError(error.description, reason=error.audit_reason) from None


def resume(request: ProtocolRequest, context: Context) -> ProtocolResponse:
    """Continue a pending request: its response, or the next page. Raises SignInUnavailable if it cannot continue in
    this browser; UnredirectableError if its application is gone."""
    request_id = request.resumed_request_id or ""
    try:
        return _resume(request_id, request, context)
    except StaleSignIn:
        return context.redirect_to_page(f"{PATH}/{request_id}")


def _resume(request_id: str, request: ProtocolRequest, context: Context) -> ProtocolResponse:
    pending = context.services.sign_ins.find(request_id, request.browser_state.sign_ins.get(request_id))
    if pending.target is not None:
        return _go_on(build_sign_in(None, pending, request.browser_state, context), request.browser_state, context)
    parameters = Parameters(pending.parameters)
    client, address = _find_address(parameters, context)
    try:
        authorization = parse_authorization_request(parameters, client, address, context)
        sign_in = build_sign_in(authorization, pending, request.browser_state, context)
        return _go_on(sign_in, request.browser_state, context)
    except OAuthError as error:
        context.services.sign_ins.finish(pending)
        refusal = _refusal(error, client, address, context)
        return replace(refusal, cookies=(Cookie(CookieKind.SIGN_IN, pending.id),))


def load_sign_in(pending: PendingAuthorization, browser: BrowserState, context: Context) -> SignIn:
    """The state of a pending request, for its pages. Raises OAuthError, UnredirectableError."""
    if pending.target is not None:
        return build_sign_in(None, pending, browser, context)
    parameters = Parameters(pending.parameters)
    client, address = _find_address(parameters, context)
    return build_sign_in(parse_authorization_request(parameters, client, address, context), pending, browser, context)


def _find_address(parameters: Parameters, context: Context) -> tuple[ApplicationClient, RedirectTarget]:
    try:
        client, address = resolve_client_and_redirect_target(parameters, context)
    except UnredirectableError as error:
        # Only registered clients are named, so that anonymous requests cannot fill the trail.
        named = context.services.applications.find_client(parameters.get("client_id", ""))
        _audit(error, named, context)
        if named is not None:
            context.activity.set_client(named)
        raise
    context.redirect_targets.append(address)
    context.activity.set_client(client)
    return client, address


def _refusal(
    error: OAuthError, client: ApplicationClient, address: RedirectTarget, context: Context
) -> ProtocolResponse:
    context.activity.refuse(error)
    # A page being needed is not a refusal: clients poll with prompt=none.
    if not isinstance(error, _PAGE_NEEDED):
        _audit(error, client, context)
    return address.error_response(error)


def _audit(error: OAuthError, client: ApplicationClient | None, context: Context) -> None:
    # The only request data in the audit trail: it shows the owner of the application the mistake.
    sent = error.sent if isinstance(error, UntrustedRedirect) else ""
    context.services.audit.record_refusal(
        "authorization.refused",
        kind="application",
        id=None if client is None else client.id,
        organization_id=None if client is None else client.organization.id,
        reason=error.audit_reason,
        detail={"error": error.error, **({"redirect_uri": sent} if sent else {})},
    )


def build_sign_in(
    authorization: AuthorizationRequest | None,
    pending: PendingAuthorization | None,
    browser: BrowserState,
    context: Context,
) -> SignIn:
    """The state of a sign-in with this request or stored row. Raises InvalidScope."""
    proved: Subject | None = None
    if pending is not None and pending.user_id is not None:
        with context.services.read_session() as storage:
            proved = storage.users.find_subject(pending.user_id)
        policies = context.services.policies
        if proved is None or not proved.is_active or not policies.filter_valid_proofs(proved, pending.proofs):
            # Steps of one account do not count for another, or for a factor that is not allowed.
            proved, pending = None, pending.restarted()
    accounts = context.services.sessions.list_by_secrets(browser.sessions.values())
    for account in accounts:
        if account.session.is_impersonated:
            context.services.audit.act_as_impersonator(account.session)
    return SignIn(
        request=authorization,
        accounts=accounts,
        now=context.now,
        is_live=context.services.sessions.is_live,
        pending=pending,
        authenticated_subject=proved,
        required_organization=None if authorization is None else required_organization(authorization.scope, context),
        browser_state=browser,
        step_up_checker=lambda sign_in: find_step_up_requirement(sign_in, context),
        full_authentication_checker=lambda sign_in: is_fully_authenticated(sign_in, context),
        is_allowed_session=lambda account: (
            account.session.is_impersonated
            or bool(context.services.policies.filter_valid_proofs(account.subject, account.session.proofs))
        ),
        consent_summary_builder=lambda sign_in: build_consent_summary(sign_in, sign_in.selected_account, context),
    )


def _go_on(sign_in: SignIn, browser: BrowserState, context: Context) -> ProtocolResponse:
    needed = next_interaction(context.protocol.interactions.values(), sign_in, context)
    if sign_in.impersonated_account is not None:
        _refuse_interaction_of_impersonator(sign_in, needed)
    if needed is None:
        if sign_in.step_up_requirement is not None:
            raise _missing_factor_error(sign_in.step_up_requirement)
        return _answer(sign_in, browser, context)
    if sign_in.request is not None and sign_in.request.is_silent:
        raise needed.error(needed.error_description)
    return _show(needed, sign_in, context)


def _refuse_interaction_of_impersonator(sign_in: SignIn, needed: Interaction | None) -> None:
    """Raise AccessDenied if a page would come first: only the person themselves can prove, choose or agree to
    anything. Silent requests get the error of the page."""
    is_silent = sign_in.request is not None and sign_in.request.is_silent
    if (needed is not None and not is_silent) or sign_in.authenticated_subject is not None:
        raise AccessDenied("Someone who is signed in as another person cannot do this for that person.")


def _show(needed: Interaction, sign_in: SignIn, context: Context) -> ProtocolResponse:
    if sign_in.pending is not None:
        context.activity.forget_client()
        return context.redirect_to_page(_page(needed, sign_in, sign_in.pending.id))
    if sign_in.request is None:
        raise ValueError("a sign-in of the service's own pages waits from its beginning")
    return _wait(sign_in.request, context, _page(needed, sign_in, "{}"))


def _page(needed: Interaction, sign_in: SignIn, request_id: str) -> str:
    below = needed.path(sign_in)
    return f"/login/{request_id}/{below}" if below else f"/login/{request_id}"


def _wait(authorization: AuthorizationRequest, context: Context, path: str) -> ProtocolResponse:
    """Store the request for this browser, and redirect to the path with its id in place of braces."""
    request_id, cookie = context.store_request(
        authorization.parameters, login_name=authorization.login_hint, ui_locales=authorization.ui_locales
    )
    return context.redirect_to_page(path.format(request_id), cookie)


def _answer(sign_in: SignIn, browser: BrowserState, context: Context) -> ProtocolResponse:
    """The response, from the selected session or a new one."""
    cookies: list[Cookie] = []
    pending = sign_in.pending
    if pending is not None:
        # First, so that only one of several racing tabs continues.
        context.services.sign_ins.finish(pending)
        cookies.append(Cookie(CookieKind.SIGN_IN, pending.id))
    account = sign_in.selected_account
    if sign_in.authenticated_subject is not None and pending is not None:
        account, secret = context.services.sessions.start(
            sign_in.authenticated_subject,
            sign_in.accounts,
            proofs=initial_session_proofs(sign_in, context),
            user_agent=browser.user_agent,
            at=pending.authenticated_at,
            client_id=pending.client_id,
            known=bool(
                context.services.known_browsers.list_ids(sign_in.authenticated_subject.user.id, browser.known_browsers)
            ),
        )
        cookies.append(_session_cookie(account, secret, context))
        cookies.extend(_find_superseded_cookies(sign_in, account))
        cookies.extend(new_known_browser_cookies(account.subject.user.id, browser, context.services))
    elif account is not None and pending is not None and pending.proofs:
        account, secret = context.services.sessions.step_up(account, pending.proofs, client_id=pending.client_id)
        cookies.append(_session_cookie(account, secret, context))
    if (
        account is None
        or not sign_in.is_live(account)
        or (sign_in.authenticated_subject is None and not sign_in.is_fresh(account))
    ):
        # There is no interaction for this: without sign-in pages no user can continue.
        account = None
    if sign_in.request is None:
        if account is None or pending is None or pending.target is None:
            raise LoginRequired("The user is not signed in.")
        context.services.sessions.select(account)
        return context.redirect_to_page(pending.target, *cookies)
    authorization = sign_in.request
    context.activity.user_id = None if account is None else account.subject.user.id
    try:
        response = authorization.redirect_target.success_response(_members(sign_in, account, authorization, context))
    except OAuthError as error:
        # The user may be signed in now, even if the client gets nothing.
        response = _refusal(error, authorization.client, authorization.redirect_target, context)
    return replace(response, cookies=tuple(cookies)) if cookies else response


def _session_cookie(account: SignedInAccount, secret: str, context: Context) -> Cookie:
    return Cookie(CookieKind.SESSION, account.session.id, secret, account.session.ends_at - context.now)


def _missing_factor_error(need: StepUpRequirement) -> OAuthError:
    """There is no interaction for this: without pages for factors, users who lack one are not let through."""
    if need.is_client_request:
        return UnmetAuthenticationRequirements("The user cannot be authenticated in the way that acr asks for.")
    return InteractionRequired("The user has to prove who they are by a second factor.")


def _find_superseded_cookies(sign_in: SignIn, account: SignedInAccount) -> list[Cookie]:
    """Cookies of the user's expired sessions, which the new session replaces."""
    return [
        Cookie(CookieKind.SESSION, signed_in_account.session.id)
        for signed_in_account in sign_in.accounts
        if signed_in_account.subject.user.id == account.subject.user.id
        and signed_in_account.session.id != account.session.id
    ]


def _members(
    sign_in: SignIn, account: SignedInAccount | None, authorization_request: AuthorizationRequest, context: Context
) -> dict[str, Any]:
    """The members of the response (service description §4.2)."""
    if account is None:
        raise LoginRequired("The user is not signed in.")
    is_required = authorization_request.is_required_user
    if is_required is not None and not is_required(account.subject.user.id):
        raise LoginRequired("Another user is signed in than the one that the request names.")
    offer = (
        sign_in.consent_summary
        if account is sign_in.selected_account
        else build_consent_summary(sign_in, account, context)
    )
    if offer.needs_consent or requires_consent_page(sign_in):
        # As with sign-in: without a page there is no consent.
        raise ConsentRequired("The user has to consent.")
    context.services.sessions.touch(account)
    key = context.services.signing_keys.current_signing_key
    issued = mint_artifacts(offer, authorization_request, context, key=key)
    stored = authorization_request.response_type.artifacts & {Artifact.CODE, Artifact.ACCESS_TOKEN}
    # Who got an ID token alone is found by the family, too, when the session ends.
    if stored or authorization_request.client.application.has_logout_uri:
        context.services.tokens.store_family(issued.family, issued.code, is_last_write=issued.minted is None)
    if issued.minted is not None:
        store_tokens(issued.minted, context)
    return {
        **({} if issued.code_text is None else {"code": issued.code_text}),
        **({} if issued.minted is None else issued.minted.tokens.response_members()),
    }


@dataclass(frozen=True, slots=True)
class MintedArtifacts:
    """What an authorization response brings: a code in clear text with its row, tokens, and their family."""

    family: TokenFamily
    code_text: str | None
    code: AuthorizationCode | None
    minted: MintedTokens | None


def mint_artifacts(
    offer: ConsentSummary, request: AuthorizationRequest, context: Context, *, key: SigningKeyGetter
) -> MintedArtifacts:
    """The code and tokens of the response, not stored yet. The token preview ends here."""
    authorization, granted, issues = offer.authorization, offer.granted, request.response_type.artifacts
    text, code, minted = None, None, None
    if Artifact.CODE in issues:
        text, code = new_code(
            authorization,
            granted,
            context,
            redirect_uri=request.redirect_uri,
            code_challenge=request.code_challenge,
        )
    if request.response_type.uses_front_channel:
        minted = mint_tokens(
            authorization, granted, context, key=key, access_token=Artifact.ACCESS_TOKEN in issues, code=text
        )
    return MintedArtifacts(new_family(authorization, granted, context), text, code, minted)


ENDPOINT = Endpoint(
    name="authorize",
    path=PATH,
    host=EndpointHost.LOGIN,
    methods=("GET", "POST"),
    discovery_member="authorization_endpoint",
    writes=True,
    allows_impersonators=True,
    handle=handle,
)

RESUME = Endpoint(
    name="authorize.resume",
    path=f"{PATH}/{{request}}",
    host=EndpointHost.LOGIN,
    methods=("GET",),
    discovery_member=None,
    writes=True,
    allows_impersonators=True,
    handle=resume,
)

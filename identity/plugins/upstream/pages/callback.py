"""The callback: verifies a provider's response and completes its purpose."""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from pyramid.request import Request
from pyramid.response import Response

from identity.api.endpoints import (
    LoginRequired,
    MethodNotAllowed,
    OAuthError,
    Parameters,
    build_protocol_request,
)
from identity.api.entities import Conflict, Invalid, NotFound, UpstreamProvider
from identity.api.pages import SignedInPage, gettext_lazy, render_error_page, see_other
from identity.api.plugins import Outcome
from identity.api.sign_in import PendingAuthorization, PendingSignInContext, Proof, SignInPage, SignInUnavailable
from identity.plugins.upstream import authorization_states, provider_selection, unlinked_identities
from identity.plugins.upstream.account_resolution import AccountResolver, AccountUnavailable, IdentityNotLinked
from identity.plugins.upstream.authorization_states import PendingUpstreamSignIn, UpstreamSignInPurpose
from identity.plugins.upstream.claim_mapping import merge_apple_name
from identity.plugins.upstream.http_client import ProviderResponseError, ProviderUnreachable
from identity.plugins.upstream.logout import store_logout_state
from identity.plugins.upstream.pages.authorization_redirect import provider_error_page, record_refusal
from identity.plugins.upstream.pages.identity_linking import identity_in_use_page
from identity.plugins.upstream.pages.provider_check import finish_trial
from identity.plugins.upstream.provider_clients import ExternalUser, UpstreamClientCredentials
from identity.plugins.upstream.provider_registry import get_provider_registry, load_client_credentials, plugin_records

#: Parameters of a response (RFC 6749 §4.1.2, RFC 9207); ``user`` is Apple's.
_PARAMETERS = ("code", "state", "iss", "error", "user")
_MAX_PARAMETER_LENGTH = 4096

CallbackHandler = Callable[[Request, UpstreamProvider, PendingUpstreamSignIn, ExternalUser], Response]


def handle_callback(request: Request) -> Response:
    """Handle a response; a cross-site form post is repeated with GET, which sends the cookies."""
    if request.method == "HEAD":
        # HEAD must not have the effects of GET (RFC 9110 §9.3.2).
        raise MethodNotAllowed(("GET", "POST"))
    if request.method == "POST":
        return _repeat_as_get(request)
    try:
        parameters = _read_parameters(Parameters.parse(request.environ.get("QUERY_STRING", "").encode("latin-1")))
    except OAuthError:
        return _unknown_state_page(request)
    provider = request.services.upstream_providers.find(request.matchdict["provider"])
    if provider is None or not provider.is_complete:
        return _unknown_state_page(request)
    # Committed: the state is redeemed whatever follows, and no lock is held during requests to the provider.
    redeemed = request.run_once("state", lambda: _redeem_state(request, provider, parameters.get("state", "")))
    if redeemed is None:
        return _unknown_state_page(request)
    waiting, back, credentials = redeemed
    try:
        with get_provider_registry(request).provider_client(provider) as client:
            client.verify_issuer(parameters.get("iss"))
            if "error" in parameters or "code" not in parameters:
                Outcome.REFUSED.record_sign_in(provider_selection.SIGN_IN_METHOD)
                return _not_signed_in_page(request, provider, back)
            now = request.services.now
            # The provider accepts its code only once.
            external_user = request.run_once(
                "code", lambda: client.exchange_code(parameters["code"], waiting.authorization_state, credentials, now)
            )
    except (ProviderUnreachable, ProviderResponseError) as problem:
        Outcome.FAILED.record_sign_in(provider_selection.SIGN_IN_METHOD)
        return provider_error_page(request, provider, problem, back=back, purpose=waiting.purpose)
    # A provider must not outlive its deactivation by a slow answer.
    current = request.services.upstream_providers.find(provider.id)
    if current is None or not _is_usable(current, waiting) or current.effective_issuer != provider.effective_issuer:
        return _unknown_state_page(request)
    provider = current
    return CALLBACK_HANDLERS[waiting.purpose](
        request, provider, waiting, merge_apple_name(provider, external_user, parameters.get("user", ""))
    )


def _redeem_state(
    request: Request, provider: UpstreamProvider, state: str
) -> tuple[PendingUpstreamSignIn, str, UpstreamClientCredentials] | None:
    """Redeem the state: its pending sign-in, return path and client credentials. None if the state belongs to another
    browser or provider, or was redeemed before."""
    records = plugin_records(request)
    waiting = authorization_states.find_state(records, state)
    if waiting is None or waiting.provider_id != provider.id:
        return None
    if not _is_usable(provider, waiting):
        return None
    back = _find_return_path(request, waiting)
    if back is None or not authorization_states.redeem_state(records, waiting.authorization_state.state):
        return None
    return waiting, back, load_client_credentials(provider, request.services)


def _is_usable(provider: UpstreamProvider, waiting: PendingUpstreamSignIn) -> bool:
    """True if the provider can be used for this. A draft can be tested, and used for nothing else."""
    return provider.is_usable or waiting.purpose is UpstreamSignInPurpose.TEST


def _repeat_as_get(request: Request) -> Response:
    form = Parameters.parse(build_protocol_request(request).body)
    return see_other(request, f"{request.path}?{urlencode(_read_parameters(form))}")


def _read_parameters(parameters: Parameters) -> dict[str, str]:
    """The response's parameters. Raises OAuthError for a repeated parameter."""
    parameters.refuse_repeated()
    return {
        name: value
        for name in _PARAMETERS
        if (value := parameters.get(name, "")) and len(value) <= _MAX_PARAMETER_LENGTH
    }


def _find_return_path(request: Request, waiting: PendingUpstreamSignIn) -> str | None:
    """The return path; None if the state belongs to another browser, or its sign-in has ended."""
    if waiting.purpose is UpstreamSignInPurpose.SIGN_IN:
        return None if _find_pending_authorization(request, waiting) is None else f"/login/{waiting.origin_id}"
    account = request.signed_in_account
    if account is None or account.session.id != waiting.origin_id:
        return None
    if waiting.purpose is UpstreamSignInPurpose.LINK:
        return "/account/security"
    return f"/console/upstream-providers/{waiting.provider_id}/test"


def _find_pending_authorization(request: Request, waiting: PendingUpstreamSignIn) -> PendingAuthorization | None:
    """The pending sign-in in this browser."""
    try:
        pending: PendingAuthorization = request.services.sign_ins.find(
            waiting.origin_id, request.browser_state.sign_ins.get(waiting.origin_id)
        )
    except SignInUnavailable:
        return None
    return pending


def _unknown_state_page(request: Request) -> Response:
    """A response to no request of this browser, or a repeated one."""
    return render_error_page(
        request,
        400,
        gettext_lazy("This sign-in cannot continue here"),
        [gettext_lazy("It was started in another browser, took too long, or is already complete.")],
        advice=gettext_lazy("Go back to the application and open it again."),
        action=(gettext_lazy("Your account"), "/account"),
    )


def _not_signed_in_page(request: Request, provider: UpstreamProvider, back: str) -> Response:
    return render_error_page(
        request,
        400,
        gettext_lazy("You have not signed in at {provider}", provider=provider.name),
        advice=gettext_lazy("Try again, or choose another method."),
        action=(gettext_lazy("Choose another method"), back),
    )


def complete_sign_in(
    request: Request, provider: UpstreamProvider, waiting: PendingUpstreamSignIn, external_user: ExternalUser
) -> Response:
    """Continue the pending sign-in as the authenticated user."""
    try:
        return _complete_sign_in(request, provider, waiting, external_user)
    except (Conflict, Invalid):
        # Of two concurrent first sign-ins one creates the account; the other finds it now.
        request.roll_back()
        return _complete_sign_in(request, provider, waiting, external_user)


def _complete_sign_in(
    request: Request, provider: UpstreamProvider, waiting: PendingUpstreamSignIn, external_user: ExternalUser
) -> Response:
    services = request.services
    pending = _find_pending_authorization(request, waiting)
    if pending is None:
        return _unknown_state_page(request)
    try:
        under_way = PendingSignInContext.load_sign_in(request, pending)
    except OAuthError:
        return see_other(request, f"{SignInPage.AUTHORIZATION_PATH}/{pending.id}")
    accounts = AccountResolver.for_request(request, provider)
    try:
        subject = accounts.resolve_subject(external_user, provider_selection.sign_in_organization(under_way, services))
        required = under_way.required_organization
        if required is not None and subject.organization.id != required.id:
            why = gettext_lazy(
                "You need an account of {organization}.",
                organization=services.branding.organization_display_name(required),
            )
            raise AccountUnavailable(why, "another organization is required")
        if not services.policies.allows_factor(subject, provider_selection.SIGN_IN_METHOD):
            name = services.branding.organization_display_name(subject.organization)
            why = gettext_lazy("{organization} does not allow this sign-in method.", organization=name)
            raise AccountUnavailable(why, "the policy of the organization")
        subject = services.attribute_mappings.apply(subject, provider, external_user.claims)
        services.group_mappings.apply(subject, provider, external_user.claims)
    except IdentityNotLinked as nobody:
        Outcome.REFUSED.record_sign_in(provider_selection.SIGN_IN_METHOD)
        record_refusal(request, provider, str(nobody))
        unlinked_identities.store_unlinked_identity(plugin_records(request), pending, provider, external_user)
        return see_other(request, f"/login/{pending.id}/upstream/unlinked")
    except AccountUnavailable as refused:
        return _account_unavailable_page(request, provider, refused, f"/login/{pending.id}")
    methods = (provider.trust_methods and external_user.authentication_methods) or (Proof.FEDERATED_METHOD,)
    if not external_user.is_recently_authenticated:
        methods = (*methods, Proof.UNDATED_METHOD)
    proved = services.sign_ins.add_proof(pending, subject, methods, factor=provider_selection.SIGN_IN_METHOD)
    if not _can_continue(request, proved):
        why = gettext_lazy(
            "{provider} does not report when you last signed in there, which is required here.", provider=provider.name
        )
        return _account_unavailable_page(
            request, provider, AccountUnavailable(why, "the provider does not say when"), f"/login/{pending.id}"
        )
    Outcome.SUCCEEDED.record_sign_in(provider_selection.SIGN_IN_METHOD)
    store_logout_state(request, provider, subject, external_user)
    return see_other(request, f"{SignInPage.AUTHORIZATION_PATH}/{pending.id}")


def _can_continue(request: Request, proved: PendingAuthorization) -> bool:
    """False if the authentication time is required but unknown, and the user has no local factor."""
    try:
        _ = PendingSignInContext.load_sign_in(request, proved).step_up_requirement
    except LoginRequired:
        return False
    except OAuthError:
        # The next step of the sign-in handles it.
        return True
    return True


def _account_unavailable_page(
    request: Request, provider: UpstreamProvider, refused: AccountUnavailable, back: str
) -> Response:
    Outcome.REFUSED.record_sign_in(provider_selection.SIGN_IN_METHOD)
    record_refusal(request, provider, refused.reason)
    # Roll back changes such as a new account in another organization.
    request.tm.doom()
    return render_error_page(
        request,
        403,
        gettext_lazy("You have signed in at {provider}, but not here", provider=provider.name),
        [refused.user_message],
        action=(gettext_lazy("Choose another method"), back),
    )


def complete_linking(
    request: Request, provider: UpstreamProvider, waiting: PendingUpstreamSignIn, external_user: ExternalUser
) -> Response:
    """Link the identity to the signed-in user. Raises Conflict if it is linked to another."""
    services = request.services
    account = request.signed_in_account
    if account is None or account.session.id != waiting.origin_id:
        return _unknown_state_page(request)
    if not services.upstream_providers.serves_subject(provider, account.subject):
        raise NotFound("identity provider", provider.id)
    proved_at = account.session.last_proof_at
    if proved_at is None or services.now - proved_at >= SignedInPage.RECENT_AUTHENTICATION_AGE:
        # The sign-in took too long: require another authentication first.
        return see_other(request, f"/account/identities/new/{provider.id}")
    try:
        AccountResolver.for_request(request, provider).link_identity(external_user, account.subject)
    except Conflict:
        return identity_in_use_page(request, (gettext_lazy("Your account"), "/account/security"))
    return see_other(request, "/account/security")


CALLBACK_HANDLERS: Mapping[UpstreamSignInPurpose, CallbackHandler] = {
    UpstreamSignInPurpose.SIGN_IN: complete_sign_in,
    UpstreamSignInPurpose.LINK: complete_linking,
    UpstreamSignInPurpose.TEST: finish_trial,
}

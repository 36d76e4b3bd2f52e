"""The redirect to a provider, which stores the state that the callback checks."""

from collections.abc import Iterator, Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.entities import NotFound, Resource, UpstreamProvider
from identity.api.pages import Form, gettext_lazy, render_error_page
from identity.api.plugins import cached_property
from identity.api.sign_in import PendingSignInContext, SignInPage
from identity.plugins.upstream import authorization_states, provider_selection
from identity.plugins.upstream.authorization_states import UpstreamSignInPurpose
from identity.plugins.upstream.http_client import OUTBOUND_NETWORKS_SETTING, ProviderResponseError, ProviderUnreachable
from identity.plugins.upstream.pages.provider_operator import describe_provider_operator
from identity.plugins.upstream.provider_registry import get_provider_registry, plugin_records, redirect_off_site

_DECISION_FIELD = "decision"
#: Redirects a sign-in to a provider; GET may write below the providers' paths.
PROVIDER_PATH = f"{UpstreamProvider.CALLBACK_PATH}/{{provider}}/for/{{request}}"
#: The permission to change and test a provider.
PERMISSION = "upstream_provider.write"


def provider_path(provider: UpstreamProvider, request_id: str) -> str:
    """The path that redirects a pending sign-in to a provider."""
    return PROVIDER_PATH.format(provider=provider.id, request=request_id)


class AutomaticRedirectPage(SignInPage):
    """/login/{request}/upstream: announces the redirect and offers other sign-in methods. It does not depend on the
    account: whether the provider works for the user is shown only after authentication."""

    template = "upstream/automatic_redirect.html"
    fields = (_DECISION_FIELD,)

    @cached_property
    def provider(self) -> UpstreamProvider | None:
        return provider_selection.next_provider(self.sign_in, request_context(self.request))

    def template_variables(self) -> Mapping[str, object] | Response:
        """The provider's name and operator."""
        if self.provider is None:
            return self.redirect_to_next()
        return {
            "provider": self.provider.name,
            "run_by": describe_provider_operator(self.provider, self.request.services),
        }

    def submit(self, form: Form) -> Response:
        """303 to the provider, or back to the first page."""
        if form.text(_DECISION_FIELD) == "another":
            self.request.services.sign_ins.choose_other_method(self.pending_authorization)
            return self.redirect(self.base_path)
        return (
            self.redirect_to_next()
            if self.provider is None
            else self.redirect(provider_path(self.provider, self.pending_authorization.id))
        )


def start_provider_sign_in(context: PendingSignInContext, request: Request) -> Response:
    """303 to the provider. Raises NotFound for one that this sign-in cannot use."""
    services, provider_id = request.services, request.matchdict["provider"]
    found = {provider.id: provider for provider in provider_selection.available_providers(context.sign_in, services)}
    if provider_id not in found:
        raise NotFound("identity provider", provider_id)
    pending, sign_in = context.pending, context.sign_in
    anew = sign_in.selected_account is not None and not sign_in.is_fresh(sign_in.selected_account)
    anew = anew or sign_in.requires_dated_proof
    return redirect_to_provider(
        request,
        found[provider_id],
        UpstreamSignInPurpose.SIGN_IN,
        pending.id,
        requires_reauthentication=anew,
        login_hint="" if sign_in.login_name is None else sign_in.login_name.full,
        ui_locales=pending.ui_locales,
        return_path=f"/login/{pending.id}",
    )


def redirect_to_provider(
    request: Request,
    provider: UpstreamProvider,
    purpose: UpstreamSignInPurpose,
    origin_id: str,
    *,
    return_path: str,
    requires_reauthentication: bool = False,
    login_hint: str = "",
    ui_locales: str = "",
) -> Response:
    """303 to the provider, or an error page with a link to ``return_path``."""
    begun = authorization_states.store_state(
        plugin_records(request),
        provider,
        purpose,
        origin_id,
        login_url=request.registry.application.settings.login_url,
        now=request.services.now,
        anew=requires_reauthentication,
    )
    # Hold no lock during the request for the provider's metadata.
    request.commit()
    try:
        with get_provider_registry(request).provider_client(provider) as client:
            address = client.authorization_url(begun, login_hint=login_hint, ui_locales=ui_locales)
    except (ProviderUnreachable, ProviderResponseError) as problem:
        return provider_error_page(request, provider, problem, back=return_path, purpose=purpose)
    return redirect_off_site(request, address)


def record_refusal(request: Request, provider: UpstreamProvider, reason: str) -> None:
    request.services.audit.record_refusal(
        "authentication.refused",
        kind="upstream_provider",
        id=provider.id,
        organization_id=provider.organization_id,
        reason=reason,
    )


def provider_error_page(
    request: Request,
    provider: UpstreamProvider,
    problem: ProviderUnreachable | ProviderResponseError,
    *,
    back: str,
    purpose: UpstreamSignInPurpose,
) -> Response:
    """The page for an unavailable provider; other sign-in methods still work. A manager who tests the provider sees the
    reason."""
    record_refusal(request, provider, problem.user_message)
    absent = isinstance(problem, ProviderUnreachable)
    return render_error_page(
        request,
        503 if absent else 400,
        gettext_lazy("You cannot sign in at {provider} now", provider=provider.name),
        [
            gettext_lazy("It does not answer.") if absent else gettext_lazy("Its response cannot be trusted."),
            *(_error_reasons(request, provider, problem) if purpose is UpstreamSignInPurpose.TEST else ()),
        ],
        advice=gettext_lazy("Try again, or choose another method."),
        action=(gettext_lazy("Choose another method"), back),
    )


def _error_reasons(
    request: Request, provider: UpstreamProvider, problem: ProviderUnreachable | ProviderResponseError
) -> Iterator[str]:
    """The reasons for managers of the provider; those about private addresses for instance administrators only."""
    access = request.services.access_control
    principal = access.load_principal(request.signed_in_account.subject)
    if not access.is_permitted(principal, PERMISSION, Resource.of_organization(provider.organization_id)):
        return
    if (
        isinstance(problem, ProviderUnreachable)
        and problem.private
        and access.is_permitted(principal, "instance.write", Resource.INSTANCE)
    ):
        yield gettext_lazy("Its host name does not resolve to a public address.")
        yield gettext_lazy("To allow it, name the network in the setting {setting}.", setting=OUTBOUND_NETWORKS_SETTING)
    else:
        yield gettext_lazy("The reason: {reason}.", reason=problem.user_message)

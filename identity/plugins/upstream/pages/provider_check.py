"""A manager tests a provider: signs in there and sees the claims. Nothing is stored."""

import json
from collections.abc import Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.api.entities import NotFound, Resource, UpstreamProvider
from identity.api.pages import Form, FormPage, RequestLanguage, RouteContext
from identity.plugins.upstream.authorization_states import PendingUpstreamSignIn, UpstreamSignInPurpose
from identity.plugins.upstream.claim_mapping import map_claims
from identity.plugins.upstream.pages.authorization_redirect import PERMISSION, redirect_to_provider
from identity.plugins.upstream.provider_clients import ExternalUser

#: The provider's page in the console, where the test starts.
_CONSOLE = "/console/upstream-providers"
CHECK_PATH = f"{_CONSOLE}/{{upstream_provider}}/test"
CHECK_CONTEXT_FACTORY = RouteContext.of_upstream_provider

_LONGEST_VALUE = 500


class CheckProviderPage(FormPage):
    context: RouteContext
    template = "upstream/check_provider.html"

    @property
    def redirects_off_site(self) -> bool:
        return True

    @property
    def provider(self) -> UpstreamProvider:
        provider: UpstreamProvider = self.context.entity
        return provider

    def template_variables(self) -> Mapping[str, object]:
        return {"provider": self.provider.name, "back": _provider_path(self.provider)}

    def submit(self, form: Form) -> Response:
        session_id, back = self.request.signed_in_account.session.id, _provider_path(self.provider)
        return redirect_to_provider(
            self.request,
            self.provider,
            UpstreamSignInPurpose.TEST,
            session_id,
            return_path=back,
            requires_reauthentication=True,
        )


def provider_check_result(
    request: Request, provider: UpstreamProvider, waiting: PendingUpstreamSignIn, external_user: ExternalUser
) -> Response:
    """The page with the provider's claims. Raises NotFound if the manager has lost the permission."""
    account, access = request.signed_in_account, request.services.access_control
    principal = access.load_principal(account.subject)
    if not access.is_permitted(principal, PERMISSION, Resource.of_organization(provider.organization_id)):
        raise NotFound("identity provider", provider.id)
    translator = request.registry.pages.catalogs.translator(RequestLanguage.negotiate(request))
    claims = {name: _format_value(value) for name, value in sorted(external_user.claims.items())}
    values: Mapping[str, object] = {
        "provider": provider.name,
        "issuer": external_user.issuer,
        "subject": external_user.subject,
        "profile": sorted(map_claims(provider, external_user.claims).items()),
        "claims": claims,
        "back": _provider_path(provider),
    }
    response: Response = request.registry.pages.render(
        request, "upstream/provider_check_result.html", values, status=200, language=translator.language
    )
    return response


def _format_value(value: object) -> str:
    return (value if isinstance(value, str) else json.dumps(value))[:_LONGEST_VALUE]


def _provider_path(provider: UpstreamProvider) -> str:
    return f"{_CONSOLE}/{provider.id}"

"""Provider selection: which providers a sign-in offers, and when it redirects to one at once."""

from collections.abc import Iterable
from typing import ClassVar

from identity.api.endpoints import Context, LoginRequired, OAuthError
from identity.api.entities import Organization, UpstreamProvider
from identity.api.services import Services
from identity.api.sign_in import Interaction, LoginName, PendingAuthorization, Proof, SignIn

#: The parameter with which an application names a provider, by id or name.
IDP_HINT_PARAM = "idp"
#: The page that announces the redirect, below ``/login/{request}``.
PAGE_NAME = "upstream"
#: The factor of an upstream sign-in.
SIGN_IN_METHOD = "upstream"


def sign_in_organization(sign_in: SignIn, services: Services) -> Organization | None:
    """The required organization, else that of the login name's domain, else the application's."""
    if sign_in.required_organization is not None:
        return sign_in.required_organization
    named = _find_domain_organization(sign_in.login_name, services)
    if named is not None:
        return named
    return None if sign_in.request is None else sign_in.request.client.responsible_organization


def available_providers(sign_in: SignIn, services: Services) -> tuple[UpstreamProvider, ...]:
    """The providers that the sign-in can use and the policy allows."""
    organization = sign_in_organization(sign_in, services)
    if organization is None:
        return services.upstream_providers.list_available(None)
    providers = _allowed_providers(organization, services)
    if not sign_in.has_completed(
        PendingAuthorization.OTHER_METHOD_STEP
    ) or not services.policies.instance_allows_factor(SIGN_IN_METHOD):
        return providers
    # Whether the user may use them is shown only after authentication.
    of_instance = (
        item for item in services.upstream_providers.list_available(organization.id) if item.instance_managed
    )
    return tuple(dict.fromkeys((*providers, *of_instance)))


def next_provider(sign_in: SignIn, context: Context) -> UpstreamProvider | None:
    """The provider to redirect to now, automatically or by the entered login name."""
    if sign_in.has_completed(PendingAuthorization.OTHER_METHOD_STEP) or sign_in.has_completed(
        PendingAuthorization.STRONGEST_PROOF_STEP
    ):
        return None
    named = "" if sign_in.pending is None else sign_in.pending.login_name
    return automatic_provider(sign_in, context) or find_provider_by_domain(
        LoginName.parse(named, sign_in.effective_organization), context
    )


def find_provider_by_domain(login_name: LoginName, context: Context) -> UpstreamProvider | None:
    """The provider of a login name's or email address's verified domain. It does not depend on whether the user
    exists."""
    organization = _find_domain_organization(login_name, context.services)
    return None if organization is None else _organization_default_provider(organization, context)


def automatic_provider(sign_in: SignIn, context: Context) -> UpstreamProvider | None:
    """The provider of an automatic redirect: the application's choice, or the default of the requested organization or
    of the login hint's domain."""
    authorization = sign_in.request
    if authorization is None or sign_in.has_completed(PendingAuthorization.OTHER_METHOD_STEP):
        return None
    services = context.services
    hint = authorization.parameters.get(IDP_HINT_PARAM, "")
    if hint:
        providers = available_providers(sign_in, services)
        return _single_provider(provider for provider in providers if provider.id == hint) or _single_provider(
            provider for provider in providers if provider.name == hint
        )
    if sign_in.required_organization is not None:
        return _organization_default_provider(sign_in.required_organization, context)
    return find_provider_by_domain(LoginName.parse(authorization.login_hint), context)


def _organization_default_provider(organization: Organization, context: Context) -> UpstreamProvider | None:
    """The organization's automatic provider: by its setting, or because the policy allows no other sign-in method."""
    providers = _allowed_providers(organization, context.services)
    allowed = context.services.policies.organization_policy(organization.id).factors
    if allowed is not None and not any(_allows_other_methods(item, context) for item in allowed):
        return _single_provider(providers)
    return _single_provider(item for item in providers if item.by_domain and item.organization_id == organization.id)


def _allowed_providers(organization: Organization, services: Services) -> tuple[UpstreamProvider, ...]:
    if not services.policies.allows_factor(organization, SIGN_IN_METHOD):
        return ()
    return services.upstream_providers.list_available(organization.id)


def _allows_other_methods(factor: str, context: Context) -> bool:
    """True for a sign-in method besides providers, which leaves the user a choice."""
    known = context.protocol.factors.get(factor)
    return factor == Proof.PASSWORD_FACTOR or (known is not None and known.is_passwordless)


def _find_domain_organization(login_name: LoginName | None, services: Services) -> Organization | None:
    domain = "" if login_name is None else login_name.domain
    if not domain:
        return None
    with services.read_session() as storage:
        holder = storage.organizations.find_effective_domain(domain)
        organization = None if holder is None else storage.organizations.find(holder.organization_id)
    return organization if organization is not None and organization.active else None


def _single_provider(providers: Iterable[UpstreamProvider]) -> UpstreamProvider | None:
    several = tuple(providers)
    return several[0] if len(several) == 1 else None


class UpstreamSignInInteraction(Interaction):
    """No session exists, and the provider of the sign-in is settled."""

    name = "upstream"
    error: ClassVar[type[OAuthError]] = LoginRequired
    error_description = "The user is not signed in."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the user is authenticated; a browser with several accounts shows the chooser first."""
        if sign_in.authenticated_subject is not None or sign_in.selectable_accounts or "create" in sign_in.prompts:
            return False
        if sign_in.has_completed(PendingAuthorization.STRONGEST_PROOF_STEP):
            # The identity is not linked, so the user must authenticate here.
            return False
        if sign_in.accounts and ("select_account" in sign_in.prompts and not sign_in.has_completed("select_account")):
            return False
        return automatic_provider(sign_in, context) is not None

    def path(self, sign_in: SignIn) -> str:
        return PAGE_NAME

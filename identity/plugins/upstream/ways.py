"""Ways: at which providers somebody can sign in, and when they are sent to one at once."""

from collections.abc import Iterable
from typing import ClassVar

from identity.domain.authentication import PASSWORD
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.provider.context import Context
from identity.provider.errors import LoginRequired, OAuthError
from identity.provider.interaction import Interaction, SignIn
from identity.services.bundle import Services
from identity.services.sign_ins import STRONGEST

#: The parameter with which an application names a provider, by id or name.
HINT = "idp"
#: The factor of whoever signed in elsewhere.
FACTOR = "upstream"


def organization_of(sign_in: SignIn, services: Services) -> Organization | None:
    """Whose people sign in: those of the organization that is required, else of the one whose domain stands in the
    login name, else of the application's."""
    if sign_in.organization is not None:
        return sign_in.organization
    named = _of_name(sign_in.login_name, services)
    if named is not None:
        return named
    return None if sign_in.request is None else sign_in.request.client.organization


def offered(sign_in: SignIn, services: Services) -> tuple[UpstreamProvider, ...]:
    """The providers at which they can sign in, and the policy lets them."""
    organization = organization_of(sign_in, services)
    if organization is None:
        return services.upstream_providers.offered(None)
    return _allowed(organization, services)


def by_name(login_name: LoginName, context: Context) -> UpstreamProvider | None:
    """Where people with a login name, or address, of this domain are sent: the organization has proven the domain.

    Whether there is such a person is not asked.
    """
    organization = _of_name(login_name, context.services)
    return None if organization is None else _at_once(organization, context)


def straight(sign_in: SignIn, context: Context) -> UpstreamProvider | None:
    """Where they are sent without being asked: to the one that the application names, or where people of the
    organization go that it asks for, or whose domain stands in the login name that it gives."""
    asked = sign_in.request
    if asked is None:
        return None
    services = context.services
    hint = asked.parameters.get(HINT, "")
    if hint:
        found = offered(sign_in, services)
        return _only(one for one in found if one.id == hint) or _only(one for one in found if one.name == hint)
    if sign_in.organization is not None:
        return _at_once(sign_in.organization, context)
    return by_name(LoginName.of(asked.login_hint), context)


def _at_once(organization: Organization, context: Context) -> UpstreamProvider | None:
    """The one to which people of the organization are sent without being asked: because its setting says so, or because
    the policy leaves them no other way in."""
    found = _allowed(organization, context.services)
    allowed = context.services.policies.of(organization.id).factors
    if allowed is not None and not any(_lets_in(one, context) for one in allowed):
        return _only(found)
    return _only(one for one in found if one.by_domain and one.organization_id == organization.id)


def _allowed(organization: Organization, services: Services) -> tuple[UpstreamProvider, ...]:
    if not services.policies.allow(organization.id, FACTOR):
        return ()
    return services.upstream_providers.offered(organization.id)


def _lets_in(factor: str, context: Context) -> bool:
    """True for a way in besides other providers, so that people have something to choose."""
    known = context.protocol.factors.get(factor)
    return factor == PASSWORD or (known is not None and known.alone)


def _of_name(login_name: LoginName | None, services: Services) -> Organization | None:
    domain = "" if login_name is None else login_name.domain
    if not domain:
        return None
    with services.look() as storage:
        holder = storage.organizations.find_domain_holder(domain)
        found = None if holder is None else storage.organizations.find(holder.organization_id)
    return found if found is not None and found.active else None


def _only(found: Iterable[UpstreamProvider]) -> UpstreamProvider | None:
    several = tuple(found)
    return several[0] if len(several) == 1 else None


class SignInElsewhere(Interaction):
    """Nobody is signed in, and it is settled at which provider they sign in."""

    name = "upstream"
    error: ClassVar[type[OAuthError]] = LoginRequired
    description = "The user is not signed in."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until somebody has proved who they are; whoever has several accounts here chooses first."""
        if sign_in.proved is not None or sign_in.choices or "create" in sign_in.prompts:
            return False
        if sign_in.done(STRONGEST):
            # They came from there, are nobody here yet, and are to prove here who they are.
            return False
        if sign_in.accounts and ("select_account" in sign_in.prompts and not sign_in.done("select_account")):
            return False
        return straight(sign_in, context) is not None

    def path(self, sign_in: SignIn) -> str:
        """The page that leads there."""
        return "upstream"

"""Upstream identity providers at which people can sign in, and the client secrets used there."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from identity.crypto.sealing import UnsealingError
from identity.crypto.secrets import constant_time_equal
from identity.crypto.signature_keys import InvalidKey, PrivateKey
from identity.domain.errors import Denied, Invalid
from identity.domain.groups import Group
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.upstream_providers import UpstreamKind, UpstreamProvider, issuer_error_for_kind
from identity.domain.users import Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.crud import DeactivatableEntityService
from identity.services.instance_managers import InstanceManagerService
from identity.storage.errors import UnreadableRow
from identity.storage.paging import iterate_rows

#: A change of these ends the tokens that identity assertions brought.
_ASSERTION_TERMS = ("issuer", "identity_assertion_clients", "trust_methods", "instance_managed", "everywhere")


@dataclass(eq=False, repr=False)
class UpstreamProviderService(DeactivatableEntityService[UpstreamProvider]):
    """Identity providers of organizations. A deactivated one cannot be used to sign in.

    The instance manages the providers for all organizations, those whose second factors are trusted where no
    organization may ask for fewer than the instance, and those used by holders of instance roles: creating, changing
    or removing one of them raises Denied unless the principal holds instance.write.

    A provider is a credential of the accounts linked to it: who controls it can sign in as them. With group mappings,
    they also decide who is in these groups: changing or reactivating the provider takes the right to give every role of
    the groups, as a change of the mapping does. Deactivating and removing it does not."""

    kind = "upstream_provider"
    store = "upstream_providers"

    _access: AccessControl
    _holders: InstanceManagerService
    _require_giving: Callable[[Group, Principal], None]

    def serves_subject(self, provider: UpstreamProvider, subject: Subject) -> bool:
        """True if the person may link an account at the provider and sign in with it: one of their organization or for
        all; with a role at the instance only one that the instance manages."""
        if not provider.everywhere and subject.organization.id != provider.organization_id:
            return False
        return provider.instance_managed or not self._holders.is_instance_manager(subject.user.id)

    def create(
        self, organization_id: str, command: CreateUpstreamProvider, *, principal: Principal, id: str | None = None
    ) -> UpstreamProvider:
        """Raises NotFound, Denied; Invalid for inconsistent settings."""
        provider = self._new_entity(UpstreamProvider, command, id=id, organization_id=organization_id)
        self._authorize(provider, principal)
        provider = self._with_secret(provider, command.client_secret)
        _refuse_inconsistent(provider)
        self._add("upstream_provider.created", provider, organization_id, parent=("organization", organization_id))
        return provider

    def change(
        self,
        provider_id: str,
        command: ChangeUpstreamProvider,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> UpstreamProvider:
        """Raises NotFound, Denied, Conflict; Invalid for inconsistent settings."""
        before = self._get_authorized(provider_id, principal)
        self._require_giving_mapped_groups(before, principal)
        after = self._next_version(before, command, expected_version=expected_version)
        self._authorize(after, principal)
        after = self._with_secret(after, command.client_secret)
        _refuse_inconsistent(after)
        if any(getattr(after, name) != getattr(before, name) for name in _ASSERTION_TERMS):
            self.revoke_assertions(before.id)
        return self._update("upstream_provider.changed", before, after)

    def deactivate(self, id: str, *, principal: Principal) -> UpstreamProvider:
        after = super().deactivate(id, principal=principal)
        self.revoke_assertions(id)
        return after

    def revoke_assertions(self, provider_id: str, *, user_id: str | None = None) -> None:
        """End all tokens that the provider's identity assertions brought, or those of one user. They also end when it
        is removed."""
        self._storage.tokens.revoke_for_provider(provider_id, self._now, user_id=user_id)

    def list_asserting(self, client_id: str) -> tuple[UpstreamProvider, ...]:
        """The active providers whose identity assertions bring the application tokens; oldest first."""
        with self._look() as storage:
            return storage.upstream_providers.list_asserting(client_id)

    def reactivate(self, id: str, *, principal: Principal) -> UpstreamProvider:
        self._require_giving_mapped_groups(self._get_authorized(id, principal), principal)
        return super().reactivate(id, principal=principal)

    def list_available(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        """The providers at which people of the organization can sign in; without an organization, those for all. A
        provider that was imported without its secret is not available until it has one."""
        with self._look() as storage:
            return tuple(
                provider
                for provider in storage.upstream_providers.list_available(organization_id)
                if provider.is_usable
            )

    def find(self, provider_id: str) -> UpstreamProvider | None:
        """Active or not."""
        with self._look() as storage:
            return storage.upstream_providers.find(provider_id)

    def open_secret(self, provider: UpstreamProvider) -> str:
        """Its client secret or key in clear text; empty for none. Raises UnreadableRow."""
        if not provider.secret:
            return ""
        try:
            return self._sealer.open(provider.secret, associated_data=sealing_context(provider.id)).decode()
        except UnsealingError:
            raise UnreadableRow("upstream_providers", provider.id) from None

    def has_secret(self, provider: UpstreamProvider, secret: str) -> bool:
        """True if this is its secret. Raises UnreadableRow."""
        return constant_time_equal(secret.encode(), self.open_secret(provider).encode())

    def require_can_change(self, provider: UpstreamProvider, *, principal: Principal) -> None:
        """Raise Denied unless the principal may change the provider, apart from the route's permission."""
        self._authorize(provider, principal)

    def require_control(self, provider: UpstreamProvider, principal: Principal) -> None:
        """Raise Denied unless the principal may change the provider, with the route's permission."""
        self._access.require(principal, "upstream_provider.write", Resource.of_organization(provider.organization_id))
        self._authorize(provider, principal)

    def require_can_remove_all(self, organization_id: str, *, principal: Principal) -> None:
        """Raise Denied unless the principal may remove all providers of the organization, which are removed with it."""
        stored = self._storage.upstream_providers
        for provider in iterate_rows(lambda request: stored.page(organization_id, request)):
            self._authorize(provider, principal)

    def _require_giving_mapped_groups(self, provider: UpstreamProvider, principal: Principal) -> None:
        ids = {mapping.group_id for mapping in self._storage.group_mappings.list_of_provider(provider.id)}
        for group in self._storage.groups.find_many(ids).values():
            self._require_giving(group, principal)

    def _with_secret(self, provider: UpstreamProvider, secret: str | None) -> UpstreamProvider:
        """The provider with this secret sealed, if it is given and differs."""
        if not secret or self.has_secret(provider, secret):
            return provider
        sealed = self._sealer.seal(secret.encode(), associated_data=sealing_context(provider.id))
        if provider.kind is UpstreamKind.APPLE:
            _refuse_no_key(secret)
        return replace(provider, secret=sealed, secret_changed_at=self._now)

    def _authorize(self, provider: UpstreamProvider, principal: Principal) -> None:
        if not provider.instance_managed:
            # Who controls the provider can sign in as the accounts linked to it.
            self._access.require_no_more_privileged_user(
                principal, provider.organization_id, except_instance_managers=True
            )
        of_instance = provider.everywhere or provider.trust_methods or provider.instance_managed
        if of_instance and not self._access.is_permitted(principal, INSTANCE_WRITE, Resource.INSTANCE):
            raise Denied(
                gettext_lazy(
                    "Only instance administrators can manage a provider that belongs to the instance, "
                    "serves all organizations, or has trusted authentication methods."
                ),
                permission=INSTANCE_WRITE,
            )


def _refuse_inconsistent(provider: UpstreamProvider) -> None:
    """Raise Invalid for settings that contradict each other."""
    problems: dict[str, str] = {}
    issuer = issuer_error_for_kind(provider.kind, provider.issuer)
    if issuer is not None:
        problems["issuer"] = issuer
    if provider.identity_assertion_clients and provider.kind is UpstreamKind.GITHUB:
        problems["identity_assertion_clients"] = gettext_lazy("A provider of this kind asserts no identities.")
    if provider.kind is UpstreamKind.APPLE:
        needed = {"team_id": provider.team_id, "key_id": provider.key_id}
        problems |= {name: gettext_lazy("This is required.") for name, value in needed.items() if not value}
    if problems:
        raise Invalid(problems)


def _refuse_no_key(text: str) -> None:
    try:
        PrivateKey.from_pem(text, SignatureAlgorithm.ES256)
    except InvalidKey:
        raise Invalid(
            {
                "client_secret": gettext_lazy(
                    "Enter the key that Apple gave you, from BEGIN PRIVATE KEY to END PRIVATE KEY."
                )
            }
        ) from None


def sealing_context(provider_id: str) -> str:
    """Sealing context of this provider's secret."""
    return f"upstream_provider\n{provider_id}"

"""Upstream providers: somebody else at whom people can sign in, and the secrets by which the service is known there."""

from dataclasses import replace

from identity.crypto.key_sets import read_elliptic_key
from identity.crypto.keys import UnreadableKey
from identity.crypto.sealing import Sealer, Unsealable
from identity.crypto.secrets import same
from identity.domain.errors import Denied, Invalid
from identity.domain.permissions import INSTANCE
from identity.domain.upstream_providers import UpstreamKind, UpstreamProvider, issuer_of_kind_problem
from identity.domain.users import Subject
from identity.domain.words import say
from identity.services.access import Access, Principal
from identity.services.changes import TransactionState
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.holders import Holders
from identity.services.lifecycle import Lifecycle
from identity.storage.errors import Unreadable
from identity.storage.paging import every_row

#: What it takes to have people of all organizations sign in somewhere.
OF_INSTANCE = "instance.write"


class UpstreamProviders(Lifecycle[UpstreamProvider]):
    """Identity providers of organizations. Nobody signs in at one that is deactivated.

    Those for all organizations are the instance's, those that are believed about factors, of which no organization
    asks for fewer than the instance, and those at which holders of its roles sign in: whatever makes, changes or
    removes one raises Denied unless ``by`` holds instance.write.

    A provider is a credential of the accounts that are linked there: whoever decides over it can sign in as them.
    """

    kind = "upstream_provider"
    store = "upstream_providers"

    def __init__(self, state: TransactionState, sealer: Sealer, access: Access, holders: Holders) -> None:
        super().__init__(state)
        self._sealer, self._access, self._holders = sealer, access, holders

    def serves(self, provider: UpstreamProvider, subject: Subject) -> bool:
        """True if the person may link an account there and sign in by it: of its organization or of any; with a role at
        the instance only where the instance manages it."""
        if not provider.everywhere and subject.organization.id != provider.organization_id:
            return False
        return provider.instance_managed or not self._holders.is_one(subject.user.id)

    def create(
        self,
        organization_id: str,
        command: CreateUpstreamProvider,
        *,
        by: Principal,
        id: str | None = None,  # noqa: A002
    ) -> UpstreamProvider:
        """A new one. Raises NotFound, Denied; Invalid for settings that do not fit each other."""
        made = self._made(UpstreamProvider, command, id=id, organization_id=organization_id)
        self._check(made, by)
        made = self._with_secret(made, command.client_secret)
        _refuse_inconsistent(made)
        self._add("upstream_provider.created", made, organization_id, of=("organization", organization_id))
        return made

    def change(
        self,
        provider_id: str,
        command: ChangeUpstreamProvider,
        *,
        by: Principal,
        expected_version: int | None = None,
    ) -> UpstreamProvider:
        """The changed one. Raises NotFound, Denied, Conflict; Invalid for settings that do not fit each other."""
        before = self._governed(provider_id, by)
        after = self._next(before, command, expected_version=expected_version)
        self._check(after, by)
        after = self._with_secret(after, command.client_secret)
        _refuse_inconsistent(after)
        return self._keep("upstream_provider.changed", before, after)

    def offered(self, organization_id: str | None) -> tuple[UpstreamProvider, ...]:
        """Those at which people of the organization can sign in; without one, those for all.

        One that came without its secret, out of a document, waits for it.
        """
        with self._look() as storage:
            return tuple(one for one in storage.upstream_providers.offered(organization_id) if one.usable)

    def find(self, provider_id: str) -> UpstreamProvider | None:
        """The one with this id, active or not."""
        with self._look() as storage:
            return storage.upstream_providers.find(provider_id)

    def secret(self, provider: UpstreamProvider) -> str:
        """Its client secret or key, to be used and told to nobody; empty for none. Raises Unreadable."""
        if not provider.secret:
            return ""
        try:
            return self._sealer.open(provider.secret, associated=place(provider.id)).decode()
        except Unsealable:
            raise Unreadable("upstream_providers", provider.id) from None

    def has_secret(self, provider: UpstreamProvider, secret: str) -> bool:
        """True if this is its secret. Raises Unreadable."""
        return same(secret.encode(), self.secret(provider).encode())

    def require_end_of(self, organization_id: str, *, by: Principal) -> None:
        """Raise Denied unless the caller may remove all providers of the organization, which go with it."""
        stored = self._storage.upstream_providers
        for one in every_row(lambda request: stored.page(organization_id, request)):
            self._check(one, by)

    def _with_secret(self, provider: UpstreamProvider, secret: str | None) -> UpstreamProvider:
        """The same with this secret, if one is given that it does not have already."""
        if not secret or self.has_secret(provider, secret):
            return provider
        sealed = self._sealer.seal(secret.encode(), associated=place(provider.id))
        if provider.kind is UpstreamKind.APPLE:
            _refuse_no_key(secret)
        return replace(provider, secret=sealed, secret_changed_at=self._now)

    def _check(self, thing: UpstreamProvider, by: Principal) -> None:
        if not thing.instance_managed:
            # Who decides over it can sign in as whoever is linked there.
            self._access.require_none_above(by, thing.organization_id, but_holders=True)
        of_instance = thing.everywhere or thing.trust_methods or thing.instance_managed
        if of_instance and not self._access.may(by, OF_INSTANCE, INSTANCE):
            raise Denied(
                say(
                    "Only instance administrators can decide over a provider that the instance manages, that is for all"
                    " organizations, or whose authentication methods are trusted."
                ),
                permission=OF_INSTANCE,
            )


def _refuse_inconsistent(provider: UpstreamProvider) -> None:
    """Raise Invalid for settings that do not fit each other."""
    problems: dict[str, str] = {}
    issuer = issuer_of_kind_problem(provider.kind, provider.issuer)
    if issuer is not None:
        problems["issuer"] = issuer
    if provider.kind is UpstreamKind.APPLE:
        needed = {"team_id": provider.team_id, "key_id": provider.key_id}
        problems |= {name: say("This is required.") for name, value in needed.items() if not value}
    if problems:
        raise Invalid(problems)


def _refuse_no_key(text: str) -> None:
    try:
        read_elliptic_key(text)
    except UnreadableKey:
        raise Invalid(
            {"client_secret": say("Enter the key that Apple gave you, from BEGIN PRIVATE KEY to END PRIVATE KEY.")}
        ) from None


def place(provider_id: str) -> str:
    """With what the secret of this provider is sealed."""
    return f"upstream_provider\n{provider_id}"

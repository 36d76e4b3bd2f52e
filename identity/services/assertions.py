"""Signed assertions of other parties: the keys that verify them, and their single use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from identity.crypto.jwk_sets import JwkPublicKey
from identity.crypto.secrets import token_digest
from identity.domain.applications import ApplicationClient
from identity.domain.federated_credentials import FederatedCredential, IssuerKind
from identity.domain.records import CORE_NAMESPACE, Record
from identity.key_sets import KeySetClient, KeySetForm, PublicKeys, parse_stored_key_set, select_key
from identity.services.base import Service
from identity.services.process_state import ProcessState


@dataclass(eq=False, repr=False)
class AssertionService(Service):
    """``release_connection`` returns the connection of the request's reads, so that nothing is held while a key set is
    fetched or another transaction runs."""

    _process: ProcessState
    _release_connection: Callable[[], None]
    _committed_keys: set[Any]

    def find_key(
        self,
        header: Mapping[str, Any],
        *,
        jwks: str,
        jwks_uri: str,
        organization_id: str,
        form: KeySetForm = KeySetForm.JWKS,
    ) -> JwkPublicKey | None:
        """The key for the header's ``kid`` and ``alg``, in the stored key set or in the one at the URL. None if there
        is none. Raises KeySetUnavailable."""
        if jwks:
            keys = parse_stored_key_set(jwks)
            return select_key(header, lambda is_key_missing: keys)
        if not jwks_uri:
            return None
        return select_key(header, lambda is_key_missing: self._keys_at(jwks_uri, form, organization_id, is_key_missing))

    def find_client_key(self, header: Mapping[str, Any], client: ApplicationClient) -> JwkPublicKey | None:
        """The same for an application."""
        application, organization_id = client.application, client.responsible_organization_id
        return self.find_key(
            header, jwks=application.jwks, jwks_uri=application.jwks_uri, organization_id=organization_id
        )

    def has_client_key(self, client: ApplicationClient, matches: Callable[[JwkPublicKey], bool]) -> bool:
        """True if one of the application's keys matches; its URL is requested again if none does. Raises InvalidKey,
        KeySetUnavailable."""
        application, organization_id = client.application, client.responsible_organization_id
        if application.jwks or not application.jwks_uri:
            return bool(application.jwks) and any(map(matches, parse_stored_key_set(application.jwks)))
        return any(
            any(map(matches, self._keys_at(application.jwks_uri, KeySetForm.JWKS, organization_id, is_missing)))
            for is_missing in (False, True)
        )

    def find_issuer_key(
        self, header: Mapping[str, Any], credential: FederatedCredential, organization_id: str
    ) -> JwkPublicKey | None:
        """The same for the issuer of a federated credential."""
        if credential.kind is IssuerKind.OIDC:
            return self.find_discovered_key(header, credential.issuer, organization_id)
        return self.find_key(
            header,
            jwks=credential.jwks,
            jwks_uri=credential.jwks_uri,
            organization_id=organization_id,
            form=KeySetForm.BUNDLE if credential.kind is IssuerKind.SPIFFE else KeySetForm.JWKS,
        )

    def find_discovered_key(self, header: Mapping[str, Any], issuer: str, organization_id: str) -> JwkPublicKey | None:
        """The same for an issuer whose discovery document names its keys."""
        return self.find_key(header, jwks="", jwks_uri=issuer, organization_id=organization_id, form=KeySetForm.ISSUER)

    def use_once(self, issuer: str, jti: str, until: datetime) -> bool:
        """Record the use of an assertion, in a transaction of its own: it stays used even if the request fails.
        False if it was used before, by another request than this one, which may run again after a conflict."""
        key = token_digest(f"{issuer}\n{jti}")
        if key in self._committed_keys:
            return True
        record = Record(plugin=CORE_NAMESPACE, kind="client_assertion", key=key, created_at=self._now, expires_at=until)
        if self._process.open_transaction is None:
            return self._storage.records.add(record) is None
        self._release_connection()
        with self._process.open_transaction() as storage:
            is_new = storage.records.add(record, is_last_write=True) is None
        if is_new:
            self._committed_keys.add(key)
        return is_new

    def _keys_at(self, url: str, form: KeySetForm, organization_id: str, is_key_missing: bool) -> PublicKeys:
        client: KeySetClient = self._process.key_sets
        found = client.find(url, form, is_key_missing=is_key_missing)
        if found is not None:
            return found
        self._release_connection()
        return client.fetch(url, organization_id, form)

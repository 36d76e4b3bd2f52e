"""Key sets of other parties by URL (RFC 7517 §5): fetched under the rules of outbound requests, cached, refreshed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from identity.crypto.jwk_sets import JwkPublicKey
from identity.crypto.signature_keys import InvalidKey
from identity.document_cache import DocumentCache, DocumentClient, DocumentTransport, DocumentUnavailable
from identity.domain.key_sets import key_set_url_error
from identity.outbound_http import OutboundResponse

PublicKeys = tuple[JwkPublicKey, ...]


class KeySetUnavailable(DocumentUnavailable, InvalidKey):
    """The key set cannot be fetched or read."""


class KeySetForm(StrEnum):
    """What is at the URL: a JWK set, a SPIFFE bundle with keys for JWT-SVIDs, or an issuer whose metadata names the JWK
    set (OpenID Connect Discovery §4)."""

    JWKS = "jwks"
    BUNDLE = "bundle"
    ISSUER = "issuer"


class KeySetCache(DocumentCache[PublicKeys]):
    """Key sets by URL."""

    subject = "key set"
    unavailable = KeySetUnavailable

    def find(self, url: str, *, is_key_missing: bool = False) -> PublicKeys | None:
        """The cached keys; None if they must be fetched. A key may be published just after a fetch (OpenID Connect Core
        §10.1.1), so a missing key causes one more fetch per interval, whatever key ids tokens name."""
        return self.find_document(url, is_incomplete=is_key_missing)

    def fetch(self, url: str, request: Callable[[], OutboundResponse], *, organization_id: str = "") -> PublicKeys:
        """The keys from ``request``, or from a request for the same URL that is in progress. Raises KeySetUnavailable
        and what ``request`` raises."""
        return self.fetch_document(url, lambda: _parse_keys(request()), organization_id=organization_id)


class KeySetClient(DocumentClient[PublicKeys]):
    """Fetches key sets, and documents that name them."""

    cache: KeySetCache

    def __init__(self, transport: DocumentTransport, *, cache: KeySetCache | None = None) -> None:
        super().__init__(transport, cache or KeySetCache())

    def find(self, url: str, form: KeySetForm = KeySetForm.JWKS, *, is_key_missing: bool = False) -> PublicKeys | None:
        """The cached keys; None if they must be fetched."""
        return self.cache.find(_cache_key(url, form), is_key_missing=is_key_missing)

    def fetch(self, url: str, organization_id: str, form: KeySetForm = KeySetForm.JWKS) -> PublicKeys:
        """Raises KeySetUnavailable."""
        return self.fetch_document(
            url, _cache_key(url, form), lambda: _parse_keys(self._get_key_set(url, form)), organization_id
        )

    def _get_key_set(self, url: str, form: KeySetForm) -> OutboundResponse:
        if form is KeySetForm.ISSUER:
            metadata = _parse_object(self.get(f"{url.rstrip('/')}/.well-known/openid-configuration").body)
            if metadata.get("issuer") != url:
                raise KeySetUnavailable("the issuer's metadata names another issuer")
            url = metadata.get("jwks_uri", "")
            if not isinstance(url, str) or not url or key_set_url_error(url) is not None:
                raise KeySetUnavailable("the issuer's metadata has no usable jwks_uri")
        answer = self.get(url)
        return replace(answer, body=_jwt_svid_keys(answer.body)) if form is KeySetForm.BUNDLE else answer


def _parse_keys(answer: OutboundResponse) -> tuple[PublicKeys, str]:
    try:
        keys = JwkPublicKey.parse_set(answer.body)
    except InvalidKey:
        raise KeySetUnavailable("the response is no key set") from None
    if not keys:
        raise KeySetUnavailable("the key set has no key that can be used")
    return keys, answer.cache_control


def _cache_key(url: str, form: KeySetForm) -> str:
    return url if form is KeySetForm.JWKS else f"{form} {url}"


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise KeySetUnavailable("the response is no JSON object")
    return document


def _jwt_svid_keys(body: bytes) -> bytes:
    """The keys of a SPIFFE bundle that sign JWT-SVIDs, as a JWK set (SPIFFE Trust Domain and Bundle §4.2.2)."""
    keys = _parse_object(body).get("keys")
    listed = keys if isinstance(keys, list) else []
    found = [key for key in listed if isinstance(key, dict) and key.get("use") == "jwt-svid"]
    return json.dumps({"keys": [{name: key[name] for name in key if name != "use"} for key in found]}).encode()


#: Key sets that are stored here, parsed once.
parse_stored_key_set = lru_cache(256)(lambda text: JwkPublicKey.parse_set(text.encode()))


def select_key(header: Mapping[str, Any], get_keys: Callable[[bool], Sequence[JwkPublicKey]]) -> JwkPublicKey | None:
    """The key for the token's ``kid`` and ``alg``; without ``kid`` the only key for the algorithm (OpenID Connect Core
    §10.1). ``get_keys`` is called again with True if none is found. None if there is no such key, or more than one."""
    algorithm, key_id = header["alg"], header.get("kid")
    for is_key_missing in (False, True):
        fitting = [key for key in get_keys(is_key_missing) if algorithm in key.algorithms]
        found = fitting if key_id is None else [key for key in fitting if key.id == key_id]
        if len(found) == 1:
            return found[0]
    return None

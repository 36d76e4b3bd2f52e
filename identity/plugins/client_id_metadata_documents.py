"""Client ID metadata documents (draft-ietf-oauth-client-id-metadata-document-03): the client id is the URL of the
client's metadata.

The document at ``https://app.example.com/client.json``::

    {
      "client_id": "https://app.example.com/client.json",
      "client_name": "Example App",
      "redirect_uris": ["https://app.example.com/callback", "http://127.0.0.1/callback"],
      "token_endpoint_auth_method": "none"
    }

Where the draft leaves a choice, the stricter one is taken: URLs have no query and no percent signs, metadata has at
most 5 KiB, and redirect URIs are of the same origin as the metadata, or of a loopback address.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from identity.api.entities import Invalid, domain_name_error
from identity.api.plugins import InvalidSetting, hookimpl, setting
from identity.api.services import ClientMetadataSource, RegisterApplication

_MAX_DOCUMENT_BYTES = 5 * 1024
_MAX_URL_LENGTH = 200
_MAX_REDIRECT_URIS = 20
_URL = re.compile(
    r"(?P<origin>(?P<scheme>https?)://(?P<host>[a-z0-9.-]+|\[::1\])(?P<port>:[1-9][0-9]{0,4})?)"
    r"(?P<path>(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+)\Z"
)
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: Clients that anyone can name can keep no secret that this service issues.
_METHODS = ("private_key_jwt", "none")
_SECRETS = ("client_secret", "client_secret_expires_at")
#: Values of grant_types that a client of this kind can use.
_GRANT_TYPES = frozenset({"authorization_code", "refresh_token"})


class ClientIdMetadataDocuments(ClientMetadataSource):
    """Metadata at URLs of allowed hosts."""

    name = "client_id_metadata_documents"

    def __init__(self, allowed_hosts: Iterable[str], denied_hosts: Iterable[str] = ()) -> None:
        self._allowed, self._denied = frozenset(allowed_hosts), frozenset(denied_hosts)

    def accepts(self, client_id: str) -> bool:
        """True for a URL in normal form at an allowed host. http is for loopback hosts, which no pattern covers."""
        found = _URL.match(client_id) if len(client_id) <= _MAX_URL_LENGTH else None
        if found is None or {".", ".."} & set(found["path"].split("/")):
            return False
        host = found["host"]
        if host in _LOOPBACK_HOSTS:
            return host in self._allowed
        if found["scheme"] != "https" or found["port"] == ":443" or not _is_public_name(host):
            return False
        parents = (host.split(".", count)[-1] for count in range(1, host.count(".") + 1))
        patterns = {"*", host, *(f"*.{parent}" for parent in parents)}
        return not self._allowed.isdisjoint(patterns) and self._denied.isdisjoint(patterns)

    def read(self, client_id: str, body: bytes) -> RegisterApplication:
        """The application that the document describes. Raises Invalid."""
        document = _parse(body)
        problems = dict(_problems(client_id, document))
        if problems:
            raise Invalid(problems)
        redirect_uris, name, host = document["redirect_uris"], document.get("client_name"), urlsplit(client_id).netloc
        is_native = any(uri.startswith("http://") for uri in redirect_uris)
        method = _authentication_method(document)
        fields: dict[str, Any] = {
            # Pages show the name alone, so it says who vouches for it.
            "name": f"{name} ({host})" if name else host,
            "type": "native" if is_native else "web",
            "authentication_method": method,
            "redirect_uris": redirect_uris,
            "response_types": ["code"],
            "grant_types": sorted(_GRANT_TYPES & {*document.get("grant_types", ("authorization_code",))}),
        }
        if method == "private_key_jwt":
            keys = document.get("jwks")
            fields |= {
                "jwks": "" if keys is None else json.dumps(keys),
                "jwks_uri": document.get("jwks_uri", ""),
                "token_endpoint_auth_signing_alg": document.get("token_endpoint_auth_signing_alg", ""),
            }
        return RegisterApplication.decode(fields)


def _is_public_name(host: str) -> bool:
    """True for a domain name with a top-level domain, which no IP address has."""
    return "." in host and domain_name_error(host) is None and not host.rpartition(".")[2].isdigit()


def _parse(body: bytes) -> Mapping[str, Any]:
    if len(body) > _MAX_DOCUMENT_BYTES:
        raise Invalid({"document": f"has more than {_MAX_DOCUMENT_BYTES} bytes"})
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise Invalid({"document": "is no JSON object"})
    return document


def _problems(client_id: str, document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if document.get("client_id") != client_id:
        yield "client_id", "must be the URL of the document"
    for name in _SECRETS:
        if name in document:
            yield name, "must not be there: the document is public"
    for name in ("client_name", "jwks_uri", "token_endpoint_auth_method", "token_endpoint_auth_signing_alg"):
        if not isinstance(document.get(name, ""), str):
            yield name, "must be a text"
    for name in ("response_types", "grant_types", "token_endpoint_auth_methods_supported"):
        if not _is_list_of_texts(document.get(name, [])):
            yield name, "must be a list of texts"
            return
    for name, needed in (("response_types", "code"), ("grant_types", "authorization_code")):
        if needed not in document.get(name, (needed,)):
            yield name, f"must contain {needed}"
    if _authentication_method(document) not in _METHODS:
        yield "token_endpoint_auth_method", f"must be one of {', '.join(_METHODS)}"
    yield from _redirect_uri_problems(client_id, document.get("redirect_uris"))


def _redirect_uri_problems(client_id: str, uris: object) -> Iterator[tuple[str, str]]:
    if not _is_list_of_texts(uris) or not isinstance(uris, list) or not 0 < len(uris) <= _MAX_REDIRECT_URIS:
        yield "redirect_uris", f"must be a list of 1 to {_MAX_REDIRECT_URIS} addresses"
        return
    found = _URL.match(client_id)
    origin = "" if found is None else found["origin"]
    for uri in uris:
        if not uri.startswith(f"{origin}/") and not _is_loopback(uri):
            yield "redirect_uris", "must be of the origin of the document, or http of a loopback address"


def _is_loopback(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        return False


def _authentication_method(document: Mapping[str, Any]) -> str:
    """The method, or the first of ours among those that the client can use (OpenID Connect RP Metadata Choices)."""
    choices = document.get("token_endpoint_auth_methods_supported", [])
    default = next((name for name in _METHODS if name in choices), "none" if not choices else "")
    method: str = document.get("token_endpoint_auth_method", default)
    return method


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class ClientIdMetadataDocumentsPlugin:
    """Clients whose id is the URL of their metadata."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """Which clients are known by their URL."""

        allowed_hosts: tuple[str, ...] = setting(
            "Hosts of the metadata, separated by spaces: ``*.example.com`` for the hosts below a domain, ``*`` for all"
            " but loopback hosts. Without a host no client is known by its URL.",
            default=(),
        )
        denied_hosts: tuple[str, ...] = setting(
            "Hosts whose clients are refused although they are allowed, in the same form.", default=()
        )

        def __post_init__(self) -> None:
            for name, hosts in (("allowed_hosts", self.allowed_hosts), ("denied_hosts", self.denied_hosts)):
                for host in hosts:
                    if host not in _LOOPBACK_HOSTS | {"*"} and not _is_public_name(host.removeprefix("*.")):
                        raise InvalidSetting(name, f"{host} is no host name in lower case")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_client_metadata_sources(self) -> Iterable[ClientMetadataSource]:
        """The documents."""
        settings = self.settings
        source = ClientIdMetadataDocuments(settings.allowed_hosts, settings.denied_hosts)
        return [source] if settings.allowed_hosts else []

    @hookimpl
    def identity_discovery(self) -> Mapping[str, object]:
        """Announces them, if any host is allowed."""
        return {"client_id_metadata_document_supported": True} if self.settings.allowed_hosts else {}

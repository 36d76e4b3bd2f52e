"""Exactly one authentication method per request, including methods of plugins."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from identity.domain.applications import ApplicationClient
from identity.domain.audit import SYSTEM
from identity.provider.client_authentication import ClientAuthenticationMethod, authenticate_client
from identity.provider.errors import InvalidClient, InvalidRequest
from identity.provider.parameters import Parameters
from identity.provider.protocol_request import ProtocolRequest
from identity.storage.contract import factories as make

REQUEST = ProtocolRequest("POST", b"", b"", "application/x-www-form-urlencoded", None)


@dataclass(frozen=True, slots=True)
class KnownClient(ApplicationClient):
    """A client that records the method which authenticated it."""

    method_name: str = ""


class Method(ClientAuthenticationMethod):
    """Handles these form parameters and always authenticates the same client."""

    def __init__(self, name: str, *parameters: str, proves: bool = True) -> None:
        self.name = name  # type: ignore[misc]
        self.parameters = frozenset(parameters)  # type: ignore[misc]
        self.is_proof = proves  # type: ignore[misc]

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        return self.parameters <= parameters.keys()

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Any) -> Any:
        if parameters.get(min(self.parameters)) == "wrong":
            raise InvalidClient("client authentication failed")
        organization = make.organization()
        project = make.project(organization)
        return KnownClient(make.application(project, id="client"), (), project, organization, method_name=self.name)


NAME = Method("none", "client_id", proves=False)
CERTIFICATE = Method("certificate", "certificate")
SECRET = Method("client_secret_post", "client_secret")


def authenticated(form: dict[str, str], *methods: Method) -> Any:
    """The client that the form authenticates, with these methods registered."""
    audit = SimpleNamespace(record_refusal=lambda *_, **__: None, actor=SYSTEM)
    context: Any = SimpleNamespace(
        protocol=SimpleNamespace(client_authentication_methods={method.name: method for method in methods}),
        services=SimpleNamespace(audit=audit),
        activity=SimpleNamespace(set_client=lambda _: None),
    )
    return authenticate_client(REQUEST, Parameters(form), context)


def test_client_id_beside_credentials_is_accepted() -> None:
    """RFC 6749 §3.2.1: beside credentials, client_id only identifies the client."""
    client = authenticated({"client_id": "client", "certificate": "x"}, NAME, CERTIFICATE)
    assert client.method_name == "certificate"


def test_client_id_does_not_replace_failed_credentials() -> None:
    with pytest.raises(InvalidClient):
        authenticated({"client_id": "client", "certificate": "wrong"}, NAME, CERTIFICATE)


def test_client_id_alone_needs_the_none_method() -> None:
    assert authenticated({"client_id": "client"}, NAME, CERTIFICATE).method_name == "none"
    with pytest.raises(InvalidClient, match="missing"):
        authenticated({"client_id": "client"}, CERTIFICATE)


def test_two_credentials_are_refused() -> None:
    with pytest.raises(InvalidRequest):
        authenticated({"client_secret": "x", "certificate": "x"}, NAME, CERTIFICATE, SECRET)


def test_unsupported_credentials_are_refused() -> None:
    """RFC 6749 §2.3: a second, unsupported credential beside a supported one is an error."""
    with pytest.raises(InvalidRequest):
        authenticated({"client_id": "client", "client_secret": "x"}, NAME, CERTIFICATE)
    with pytest.raises(InvalidRequest):
        authenticated({"certificate": "x", "client_assertion": "x"}, CERTIFICATE)


def test_client_id_must_match_credentials() -> None:
    """Security 3.3."""
    with pytest.raises(InvalidRequest):
        authenticated({"client_id": "another", "certificate": "x"}, NAME, CERTIFICATE)

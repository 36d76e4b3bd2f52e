"""Mutual TLS (RFC 8705): clients that authenticate with a certificate, and tokens that are bound to one.

The proxy that terminates TLS asks for the certificate and passes it on in a header. The header counts only if the proxy
of ``identity.trusted_proxy`` itself has sent the request; anyone else's is ignored, as if there were none.

The service does not take the proxy's word for ``tls_client_auth``: it verifies itself which authority signed the
certificate, so a proxy that asks for any certificate (as ``self_signed_tls_client_auth`` needs) lets no one in.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from identity.api.crypto import ClientCertificate, InvalidKey
from identity.api.endpoints import ClientAuthenticationMethod, Context, InvalidRequest, Parameters, ProtocolRequest
from identity.api.entities import ApplicationClient
from identity.api.grants import SenderConstraint
from identity.api.plugins import InvalidSetting, hookimpl, setting

if TYPE_CHECKING:
    from identity.api.plugins import ServicesFactory, SystemCheck
    from identity.api.plugins import Settings as CoreSettings


def _check_header(name: str) -> None:
    if name and name.lower() not in ProtocolRequest.CERTIFICATE_HEADERS:
        raise ValueError(f"must be one of {', '.join(ProtocolRequest.CERTIFICATE_HEADERS)}")


def _check_base_url(url: str) -> None:
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.netloc or url != f"https://{parts.netloc}" or "@" in url):
        raise ValueError("must be such as https://mtls.example.com")


@dataclass(frozen=True, kw_only=True)
class MutualTlsPluginSettings:
    """Where the proxy passes certificates, and which count."""

    certificate_header: str = setting(
        "The header in which the proxy of ``identity.trusted_proxy`` passes the client's certificate: ``Client-Cert``,"
        " ``X-Client-Cert`` or ``X-SSL-Client-Cert``. The proxy must overwrite what the client sent. Empty: the plugin"
        " offers nothing.",
        default="",
        validator=_check_header,
    )
    certificate_authorities: Path | None = setting(
        "A file with the certificates (PEM) of the authorities that issue client certificates for ``tls_client_auth``,"
        " each the direct issuer. Without it, this method is not offered. It is read at the start.",
        default=None,
    )
    base_url: str = setting(
        "The address at which the proxy asks for certificates, such as https://mtls.example.com, if it is another than"
        " ``identity.base_url``. Discovery names it in ``mtls_endpoint_aliases``.",
        default="",
        validator=_check_base_url,
    )


class CertificateReader:
    """Reads the certificate of a request."""

    def __init__(self, header: str) -> None:
        self._header = header.lower()

    def has_certificate(self, request: ProtocolRequest) -> bool:
        """True if the proxy passed one, readable or not."""
        return request.is_from_proxy and bool(request.headers.get(self._header))

    def read(self, request: ProtocolRequest) -> ClientCertificate:
        """Raises InvalidKey."""
        if not self.has_certificate(request):
            raise InvalidKey("no certificate")
        return ClientCertificate.parse(request.headers[self._header])


class _CertificateAuthentication(ClientAuthenticationMethod):
    """Accepts a ``client_id`` beside a certificate."""

    is_of_connection = True

    def __init__(self, reader: CertificateReader) -> None:
        self._reader = reader

    def is_used_in(self, request: ProtocolRequest, parameters: Parameters) -> bool:
        """True for a certificate and a client_id without other credentials."""
        return (
            self._reader.has_certificate(request)
            and "client_id" in parameters
            and not request.authorization
            and not any(credential in parameters for credential in self.CREDENTIAL_PARAMETERS)
        )

    def authenticate(self, request: ProtocolRequest, parameters: Parameters, context: Context) -> ApplicationClient:
        """The application that registered the certificate. Every failure looks the same from outside."""
        client = self.find_public_client(parameters.require_value("client_id"), context)
        try:
            certificate = self._reader.read(request)
            if not certificate.is_valid_at(context.now):
                raise self.error("the certificate has expired or is not valid yet")
            if not self.is_registered(certificate, client, context):
                raise self.error("the certificate is not the application's")
        except InvalidKey as problem:
            raise self.error(str(problem)) from None
        return client

    @abstractmethod
    def is_registered(self, certificate: ClientCertificate, client: ApplicationClient, context: Context) -> bool:
        """True if the certificate is the application's. Raises InvalidKey."""


class TlsClientAuth(_CertificateAuthentication):
    """A certificate of an authority with the application's name (RFC 8705 §2.1)."""

    name = "tls_client_auth"

    def __init__(self, reader: CertificateReader, authorities: tuple[ClientCertificate, ...]) -> None:
        super().__init__(reader)
        self._authorities = authorities

    def is_registered(self, certificate: ClientCertificate, client: ApplicationClient, context: Context) -> bool:
        """True if it has the one registered name, and an authority has signed it."""
        names = client.application.certificate_names.items()
        return (
            len(names) == 1
            and all(certificate.has_name(field, name) for field, name in names)
            and certificate.is_issued_by(self._authorities, context.now)
        )


class SelfSignedTlsClientAuth(_CertificateAuthentication):
    """A certificate of any issuer whose public key the application has registered (RFC 8705 §2.2)."""

    name = "self_signed_tls_client_auth"

    def is_registered(self, certificate: ClientCertificate, client: ApplicationClient, context: Context) -> bool:
        """True if its key is one of the application's."""
        return context.services.assertions.has_client_key(client, certificate.has_key)


class MutualTlsConstraint(SenderConstraint):
    """Tokens bound to the certificate of the connection (RFC 8705 §3)."""

    name = "mutual_tls"
    method = "x5t#S256"
    token_type = "Bearer"  # noqa: S105 - a word of the protocol
    discovery_members: ClassVar[Mapping[str, object]] = {"tls_client_certificate_bound_access_tokens": True}

    def __init__(self, reader: CertificateReader) -> None:
        self._reader = reader

    def is_used_in(self, request: ProtocolRequest) -> bool:
        """True for a certificate, readable or not."""
        return self._reader.has_certificate(request)

    def verify(self, request: ProtocolRequest, context: Context, *, access_token: str | None = None) -> str:
        """The thumbprint of the certificate. Raises InvalidRequest."""
        try:
            return self._reader.read(request).thumbprint
        except InvalidKey:
            raise InvalidRequest("the client certificate cannot be read") from None


# Inside the plugin class ``Settings`` is the plugin's attribute.
_Settings = MutualTlsPluginSettings


class MutualTlsPlugin:
    """Client certificates: ``tls_client_auth``, ``self_signed_tls_client_auth``, and bound tokens (RFC 8705)."""

    hookspecs = 1
    Settings = _Settings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._reader = CertificateReader(settings.certificate_header)
        self._authorities = _read_authorities(settings.certificate_authorities)

    @hookimpl
    def identity_client_authentication_methods(self) -> Iterable[ClientAuthenticationMethod]:
        """Both methods, if the header is set."""
        if self.settings.certificate_header:
            if self._authorities:
                yield TlsClientAuth(self._reader, self._authorities)
            yield SelfSignedTlsClientAuth(self._reader)

    @hookimpl
    def identity_sender_constraints(self) -> Iterable[SenderConstraint]:
        """mutual_tls, if the header is set."""
        return [MutualTlsConstraint(self._reader)] if self.settings.certificate_header else []

    @hookimpl
    def identity_discovery(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """Where clients with certificates find the endpoints (RFC 8705 §5)."""
        if not (self.settings.certificate_header and self.settings.base_url):
            return {}
        return {
            "mtls_endpoint_aliases": {
                name: self.settings.base_url + urlsplit(str(address)).path
                for name, address in document.items()
                if name == "userinfo_endpoint" or f"{name}_auth_methods_supported" in document
            }
        }

    @hookimpl
    def identity_system_checks(
        self, settings: "CoreSettings", open_services: "ServicesFactory"
    ) -> "Iterable[SystemCheck]":
        """Checks that certificates can arrive."""
        from identity.api.plugins import SystemCheck

        return [SystemCheck("mutual_tls", lambda: self._problem(settings), affects_readiness=False)]

    def _problem(self, settings: "CoreSettings") -> str | None:
        if self.settings.certificate_header:
            if settings.is_trusted_proxy(settings.trusted_proxy):
                return None
            return (
                "identity.plugin.mutual_tls.certificate_header is set, but identity.trusted_proxy names no proxy: all"
                " certificates are ignored. Name the proxy that passes them."
            )
        if self.settings.certificate_authorities is None and not self.settings.base_url:
            return None
        return (
            "identity.plugin.mutual_tls.certificate_header is empty, so no certificate counts. Set it to the header in"
            " which the proxy passes them, or remove the other settings of the plugin."
        )


def _read_authorities(file: Path | None) -> tuple[ClientCertificate, ...]:
    try:
        return () if file is None else ClientCertificate.read_authorities(file)
    except (OSError, ValueError, InvalidKey) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise InvalidSetting("certificate_authorities", f"{file}: {reason}") from None

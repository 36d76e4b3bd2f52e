"""Verifies that a domain belongs to an organization, by its DNS or a file on its web server."""

import logging
from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING

from identity import __version__, password_hashing
from identity.domain.domains import DomainProof, OrganizationDomain
from identity.fair_semaphore import FairSemaphore
from identity.outbound_http import OutboundHttpClient
from identity.settings import Settings, parse_name_server

if TYPE_CHECKING:
    from dns.resolver import Resolver

log = logging.getLogger(__name__)

#: Timeout in seconds for DNS and web server.
VERIFICATION_TIMEOUT = 5.0
#: One client network or organization can occupy at most a quarter of these slots with slow servers.
_MAX_CONCURRENT_VERIFICATIONS = 8
_RETRY_AFTER_SECONDS = 10


class DomainVerifier:
    """One per process. Holds no lock while it queries, because the caller has committed before."""

    def __init__(self, settings: Settings) -> None:
        self._servers = [parse_name_server(text) for text in settings.dns_resolver]
        self._slots = FairSemaphore(_MAX_CONCURRENT_VERIFICATIONS)
        self._web = OutboundHttpClient(
            networks=OutboundHttpClient.parse_networks(settings.allowed_networks),
            seconds=VERIFICATION_TIMEOUT,
            resolve=self._resolve_addresses,
        )

    def find_proof(self, domain: OrganizationDomain) -> DomainProof | None:
        """Where the challenge of the domain was found: in DNS, else in the file; None if in neither. Raises
        ServerBusy.
        """
        with (
            FairSemaphore.organization_scope(domain.organization_id),
            password_hashing.acquire_slot(
                self._slots, "Too many domains are being checked just now.", seconds=_RETRY_AFTER_SECONDS
            ),
        ):
            if domain.record_value in self._txt_records(domain.record_name):
                return DomainProof.DNS
            return DomainProof.FILE if domain.record_value in self._file_lines(domain.file_url) else None

    def _txt_records(self, name: str) -> Sequence[str]:
        from dns.exception import DNSException

        try:
            answer = self._create_resolver().resolve(f"{name}.", "TXT", search=False)
        except (DNSException, OSError) as problem:
            log.info("no TXT record %s was found: %s", name, type(problem).__name__)
            return ()
        return [b"".join(item.strings).decode("ascii", "replace") for item in answer]

    def _file_lines(self, url: str) -> Sequence[str]:
        try:
            answer = self._web.send("GET", url, headers={"User-Agent": f"identity/{__version__}"})
        except (OSError, HTTPException, ValueError) as problem:
            log.info("%s could not be read: %s", url, type(problem).__name__)
            return ()
        if answer.status != 200:
            log.info("%s answered %d", url, answer.status)
            return ()
        return [line.strip() for line in answer.body.decode("ascii", "replace").splitlines()]

    def _resolve_addresses(self, host: str, seconds: float) -> Sequence[str]:
        from dns.exception import DNSException

        try:
            answers = self._create_resolver().resolve_name(f"{host}.", lifetime=seconds, search=False)
        except DNSException as problem:
            raise OSError(type(problem).__name__) from None
        return list(answers.addresses())

    def _create_resolver(self) -> "Resolver":
        """Created for each check, because the resolvers of the machine may change. Raises DNSException."""
        # Imported here, because it is rarely needed.
        from dns.nameserver import Do53Nameserver
        from dns.resolver import Resolver

        resolver = Resolver(configure=not self._servers)
        if self._servers:
            resolver.nameservers = [Do53Nameserver(address, port) for address, port in self._servers]
        resolver.lifetime = VERIFICATION_TIMEOUT
        return resolver

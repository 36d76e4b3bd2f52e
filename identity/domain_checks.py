"""Domain checks: looks outside for the proof that a domain is an organization's, in its DNS or on its web server."""

import logging
from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING

from identity import __version__, hashing
from identity.domain.domains import OrganizationDomain, Proof
from identity.fair_shares import FairShares, on_behalf_of
from identity.outgoing import Outgoing, networks_of
from identity.settings import Settings, read_name_server

if TYPE_CHECKING:
    from dns.resolver import Resolver

log = logging.getLogger(__name__)

#: How long an answer may take: of the DNS, and of the web server.
SECONDS = 5.0
#: Whoever has slow servers of their own keeps a quarter of so many waiting, and no more.
_AT_ONCE = 8
_BUSY_SECONDS = 10


class DomainChecks:
    """One per process. Nothing is locked while it asks: whoever calls has committed before."""

    def __init__(self, settings: Settings) -> None:
        self._servers = [read_name_server(word) for word in settings.dns_resolver]
        self._places = FairShares(_AT_ONCE)
        self._web = Outgoing(
            networks=networks_of(settings.reachable_networks), seconds=SECONDS, resolve=self._addresses
        )

    def find(self, domain: OrganizationDomain) -> Proof | None:
        """Where the domain's challenge stands: in its DNS, else in the file; None if it does not. Raises Busy."""
        with (
            on_behalf_of(domain.organization_id),
            hashing.holding(self._places, "Too many domains are being checked just now.", seconds=_BUSY_SECONDS),
        ):
            if domain.record_value in self._texts(domain.record_name):
                return Proof.DNS
            return Proof.FILE if domain.record_value in self._lines(domain.file_url) else None

    def _texts(self, name: str) -> Sequence[str]:
        from dns.exception import DNSException

        try:
            answer = self._resolver().resolve(f"{name}.", "TXT", search=False)
        except (DNSException, OSError) as problem:
            log.info("no TXT record %s was found: %s", name, type(problem).__name__)
            return ()
        return [b"".join(one.strings).decode("ascii", "replace") for one in answer]

    def _lines(self, url: str) -> Sequence[str]:
        try:
            answer = self._web.send("GET", url, headers={"User-Agent": f"identity/{__version__}"})
        except (OSError, HTTPException, ValueError) as problem:
            log.info("%s could not be read: %s", url, type(problem).__name__)
            return ()
        if answer.status != 200:
            log.info("%s answered %d", url, answer.status)
            return ()
        return [line.strip() for line in answer.body.decode("ascii", "replace").splitlines()]

    def _addresses(self, host: str, seconds: float) -> Sequence[str]:
        from dns.exception import DNSException

        try:
            answers = self._resolver().resolve_name(f"{host}.", lifetime=seconds, search=False)
        except DNSException as problem:
            raise OSError(type(problem).__name__) from None
        return list(answers.addresses())

    def _resolver(self) -> "Resolver":
        """Made for each check: what the machine's resolvers are may change. Raises DNSException."""
        # Few ever need it, so the start does without.
        from dns.nameserver import Do53Nameserver
        from dns.resolver import Resolver

        resolver = Resolver(configure=not self._servers)
        if self._servers:
            resolver.nameservers = [Do53Nameserver(address, port) for address, port in self._servers]
        resolver.lifetime = SECONDS
        return resolver

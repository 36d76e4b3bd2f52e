"""Domains of organizations: which ones need a proof, and what became of it."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from identity.domain.messages import gettext_lazy

#: How many domains one organization can have; whoever waits for strangers' domains does not fill the database.
MAX_DOMAINS = 20

#: Top-level domains are letters, or punycode; what ends otherwise is an address (RFC 3696 §2).
_PUBLIC = re.compile(r"[a-z0-9.-]+\.([a-z]{2,63}|xn--[a-z0-9-]{1,59})\Z")
#: One label that is what it looks like: no punycode (RFC 5890 §2.3.1).
_LABEL = re.compile(r"(?!..--)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


class DomainProof(StrEnum):
    """Why a domain counts."""

    #: It lies in the service's own name space, which the service itself gives out.
    NAME_SPACE = "name_space"
    DNS = "dns"
    FILE = "file"
    #: Somebody who may do everything with the instance said so.
    ASSERTED = "asserted"
    #: It counted before proofs were asked for.
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationDomain:
    """A domain that an organization has, or waits for: without a ``proof`` it counts nowhere.

    Once it counts it stays bound to the organization, also when both are gone, until it is released. ``challenge`` is
    no secret: it is published in the domain's DNS, or in a file on its web server.
    """

    organization_id: str
    name: str
    challenge: str
    created_at: datetime
    proof: DomainProof | None = None
    verified_at: datetime | None = None

    @property
    def is_effective(self) -> bool:
        """True if the organization may go by this name."""
        return self.proof is not None

    @property
    def is_verified(self) -> bool:
        """True if nothing more has to be shown."""
        return self.proof not in (None, DomainProof.UNPROVEN)

    @property
    def record_name(self) -> str:
        """The name of the TXT record that proves it."""
        return f"_identity-challenge.{self.name}"

    @property
    def record_value(self) -> str:
        """The text of that record, and the line that the file holds."""
        return f"identity-verification={self.challenge}"

    @property
    def file_url(self) -> str:
        """Where the file is looked for instead (RFC 8615)."""
        return f"https://{self.name}/.well-known/identity-verification"


@dataclass(frozen=True, slots=True)
class DomainNamespace:
    """What lies one label below ``domain`` is given out by the service itself; its own ``hosts`` are nobody's."""

    domain: str
    hosts: frozenset[str]

    def contains(self, name: str) -> bool:
        """True for a name that needs no proof."""
        label, _, rest = name.partition(".")
        return rest == self.domain and name not in self.hosts and _LABEL.match(label) is not None

    def name_error(self, name: str) -> str | None:
        """Why no organization can have this domain, as a sentence, or None."""
        if self.contains(name):
            return None
        if name == self.domain or name in self.hosts:
            return gettext_lazy("This name belongs to the service itself. Choose another.")
        if any(name.endswith(f".{item}") for item in (self.domain, *self.hosts)):
            return gettext_lazy("Below {domain}, choose one part without dots, such as acme.", domain=self.domain)
        if not _PUBLIC.match(name):
            return gettext_lazy("Enter a whole domain such as acme.example: neither a single name nor an address.")
        return None

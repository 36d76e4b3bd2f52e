"""Domains of organizations and their verification."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from identity.domain.messages import gettext_lazy

#: Domains per organization, so that unverified claims cannot fill the database.
MAX_DOMAINS = 20

#: Top-level domains are letters or punycode; other endings mean an IP address (RFC 3696 §2).
_PUBLIC = re.compile(r"[a-z0-9.-]+\.([a-z]{2,63}|xn--[a-z0-9-]{1,59})\Z")
#: A label without punycode (RFC 5890 §2.3.1).
_LABEL = re.compile(r"(?!..--)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


class DomainProof(StrEnum):
    """Why a domain is effective."""

    #: The domain is inside the service's own namespace.
    NAME_SPACE = "name_space"
    DNS = "dns"
    FILE = "file"
    #: Asserted by an administrator of the instance.
    ASSERTED = "asserted"
    #: From before verification was required.
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationDomain:
    """A domain of an organization; without a ``proof`` it has no effect yet. Once effective it stays bound to the
    organization, even after deletion, until it is released. ``challenge`` is public: it is published in the domain's
    DNS or in a file on its web server."""

    organization_id: str
    name: str
    challenge: str
    created_at: datetime
    proof: DomainProof | None = None
    verified_at: datetime | None = None

    @property
    def is_effective(self) -> bool:
        return self.proof is not None

    @property
    def is_verified(self) -> bool:
        """True if no verification is pending."""
        return self.proof not in (None, DomainProof.UNPROVEN)

    @property
    def record_name(self) -> str:
        """The name of the TXT record that verifies it."""
        return f"_identity-challenge.{self.name}"

    @property
    def record_value(self) -> str:
        """The text of that record, which is also the content of the file."""
        return f"identity-verification={self.challenge}"

    @property
    def file_url(self) -> str:
        """The URL of the file (RFC 8615)."""
        return f"https://{self.name}/.well-known/identity-verification"


@dataclass(frozen=True, slots=True)
class DomainNamespace:
    """The namespace of the service: names one label below ``domain`` need no verification; its ``hosts`` are
    reserved."""

    domain: str
    hosts: frozenset[str]

    def contains(self, name: str) -> bool:
        label, _, rest = name.partition(".")
        return rest == self.domain and name not in self.hosts and _LABEL.match(label) is not None

    def name_error(self, name: str) -> str | None:
        """Why no organization can have this domain, as a sentence, or None."""
        if self.contains(name):
            return None
        if name == self.domain or name in self.hosts:
            return gettext_lazy("This name is reserved for the service itself. Choose another.")
        if any(name.endswith(f".{item}") for item in (self.domain, *self.hosts)):
            return gettext_lazy("Under {domain}, choose a single label without dots, such as acme.", domain=self.domain)
        if not _PUBLIC.match(name):
            return gettext_lazy("Enter a complete domain such as acme.example, not a single label or an IP address.")
        return None

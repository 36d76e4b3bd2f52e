"""Parses login names, once for all consumers."""

from dataclasses import dataclass

from identity.domain.email_addresses import email_key
from identity.domain.names import login_name_key, split_login_name, user_name_error
from identity.domain.organizations import Organization

_LONGEST = 500


@dataclass(frozen=True, slots=True)
class LoginName:
    """``user_name`` is as typed; ``user_key`` and ``domain`` are normalized for comparison. ``organization`` is the one
    that the request is about, if any. A name without a domain belongs to it: then ``domain`` is its primary domain and
    ``has_own_domain`` is False. Without an organization such a name has no domain."""

    typed: str
    user_name: str
    user_key: str
    domain: str
    has_own_domain: bool
    organization: Organization | None = None

    @classmethod
    def parse(cls, typed: str, organization: Organization | None = None) -> "LoginName":
        """Parse what was typed on a page of the organization, or of the service itself."""
        text = typed[:_LONGEST].strip()
        user_key, domain = login_name_key(text)
        has_own_domain = bool(domain)
        if not has_own_domain and organization is not None:
            domain = organization.primary_domain
        return cls(text, split_login_name(text)[0], user_key, domain, has_own_domain, organization)

    @property
    def comparison_key(self) -> str:
        """The normalized login name."""
        return f"{self.user_key}@{self.domain}" if self.domain else self.user_key

    @property
    def full(self) -> str:
        """As displayed: what was typed, with the domain in which a bare name is looked up."""
        return self.typed if self.has_own_domain or not self.domain else f"{self.user_name}@{self.domain}"

    @property
    def is_valid(self) -> bool:
        """False if no user can have this name: user names contain no @, no space and no invisible characters."""
        return user_name_error(self.user_name) is None

    @property
    def email_key(self) -> str | None:
        """The key of the email address that was typed; None if it is not one."""
        return email_key(self.typed) if self.has_own_domain else None

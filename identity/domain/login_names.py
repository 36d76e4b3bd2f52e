"""LoginName: what a person types to say who they are, split once for every consumer."""

from dataclasses import dataclass

from identity.domain.email_addresses import email_key
from identity.domain.names import login_name_key, split_login_name, user_name_error
from identity.domain.organizations import Organization

_LONGEST = 500


@dataclass(frozen=True, slots=True)
class LoginName:
    """``user_name`` is as it was typed; ``user_key`` and ``domain`` are in the form in which names are compared.

    ``organization`` is the one that the request is about, if any. A bare name is one of that organization:
    ``domain`` is its primary domain then, and ``has_own_domain`` False. Without an organization a bare name has none.
    """

    typed: str
    user_name: str
    user_key: str
    domain: str
    has_own_domain: bool
    organization: Organization | None = None

    @classmethod
    def parse(cls, typed: str, organization: Organization | None = None) -> "LoginName":
        """What was typed at a page of the organization, or at the service's own."""
        text = typed[:_LONGEST].strip()
        user_key, domain = login_name_key(text)
        has_own_domain = bool(domain)
        if not has_own_domain and organization is not None:
            domain = organization.primary_domain
        return cls(text, split_login_name(text)[0], user_key, domain, has_own_domain, organization)

    @property
    def comparison_key(self) -> str:
        """The login name that it stands for, in the form in which names are compared."""
        return f"{self.user_key}@{self.domain}" if self.domain else self.user_key

    @property
    def full(self) -> str:
        """As it is shown: what was typed, a bare name with the domain where it is looked up."""
        return self.typed if self.has_own_domain or not self.domain else f"{self.user_name}@{self.domain}"

    @property
    def is_valid(self) -> bool:
        """False if no user can have this name: user names hold no @, no space and nothing invisible."""
        return user_name_error(self.user_name) is None

    @property
    def email_key(self) -> str | None:
        """The key of the email address that was typed; None if it is none."""
        return email_key(self.typed) if self.has_own_domain else None

"""LoginName: what a person types to say who they are, split once for whoever needs a part of it."""

import unicodedata
from dataclasses import dataclass

from identity.domain.email_addresses import email_key
from identity.domain.names import login_name_key, split_login_name, user_name_problem
from identity.domain.organizations import Organization

_LONGEST = 500
#: What directories skip when they compare names (RFC 4518 §2.2) and what nobody sees, beyond what their categories
#: tell: marks, spaces, control and format characters.
_SKIPPED = frozenset("\u115f\u1160\u3164\uffa0\ufffc")


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
    def of(cls, typed: str, organization: Organization | None = None) -> "LoginName":
        """What was typed at a page of the organization, or at the service's own."""
        text = typed[:_LONGEST].strip()
        user_key, domain = login_name_key(text)
        has_own_domain = bool(domain)
        if not has_own_domain and organization is not None:
            domain = organization.primary_domain
        return cls(text, split_login_name(text)[0], user_key, domain, has_own_domain, organization)

    @property
    def key(self) -> str:
        """The login name that it stands for, in the form in which names are compared."""
        return f"{self.user_key}@{self.domain}" if self.domain else self.user_key

    @property
    def whole(self) -> str:
        """As it is shown: what was typed, a bare name with the domain where it is looked up."""
        return self.typed if self.has_own_domain or not self.domain else f"{self.user_name}@{self.domain}"

    @property
    def is_possible(self) -> bool:
        """False for what nobody is called: user names hold no @, no space and nothing invisible."""
        return user_name_problem(self.user_name) is None

    @property
    def email_key(self) -> str | None:
        """The key of the email address that was typed; None if it is none."""
        return email_key(self.typed) if self.has_own_domain else None

    @property
    def counted(self) -> str:
        """One text for all spellings that the directories of this world take for one name: attempts go by it.

        Directories ignore case, spaces, what is invisible, and some of them accents.
        """
        user = _folded(self.user_key.partition("@")[0])
        return f"{user}@{self.domain}" if self.domain else user


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(one for one in decomposed if unicodedata.category(one)[0] not in "MCZ" and one not in _SKIPPED)

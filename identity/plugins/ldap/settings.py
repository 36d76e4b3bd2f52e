"""The settings of the plugin."""

import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from identity.api.entities import ClaimMapping, domain_name_error
from identity.api.plugins import InvalidSetting, setting

#: Stands for the entered login name in the filter.
LOGIN_PLACEHOLDER = "{login}"


@dataclass(frozen=True, kw_only=True)
class LdapPluginSettings:
    """Which directory to use, how users are found in it, and how they are mapped."""

    servers: tuple[str, ...] = setting(
        "The servers, such as ``ldaps://dc1.example.com``, asked in this order; none turns it off. With ``ldap://`` the"
        " connection is secured by StartTLS before anything is said.",
        default=(),
    )
    organization: str = setting("The primary domain of the organization whose people the directory knows.", default="")
    ca_file: Path | None = setting(
        "A file of certificate authorities (PEM) to trust in place of the usual ones.", default=None
    )
    bind_dn: str = setting("As whom people are searched, for example cn=identity,ou=services,dc=example.", default="")
    password_file: Path | None = setting("A file with that password, closed to others (mode 0600).", default=None)
    base: str = setting("Below what people are searched, for example ou=people,dc=example.", default="")
    filter: str = setting(
        "By what they are found; ``{login}`` is the first part of the login name, escaped.", default="(uid={login})"
    )
    id_attribute: str = setting(
        "What names an entry for ever: ``entryUUID``, or ``objectGUID`` of Active Directory.", default="entryUUID"
    )
    attributes: tuple[str, ...] = setting(
        "Where the profile comes from, by names without spaces: ``family_name=sn``.",
        default=("given_name=givenName", "family_name=sn", "display_name=displayName", "email=mail"),
    )
    create_accounts: bool = setting("Whoever signs in for the first time gets an account.", default=True)
    groups_attribute: str = setting("Where the groups of a person stand.", default="memberOf")
    roles: tuple[str, ...] = setting(
        "Roles by group: ``ORG_USER_MANAGER=cn=helpdesk,ou=groups,dc=example`` gives a manager role in the"
        " organization, ``PROJECT/KEY=…`` with a project's id a role in that project. Spaces are written as ``\\20``."
        " A role that stands here is taken from whoever is not in its group, at the next sign-in.",
        default=(),
    )

    def __post_init__(self) -> None:
        for server in self.servers:
            parts = urlsplit(server)
            if parts.scheme not in ("ldap", "ldaps") or not parts.hostname or parts.path not in ("", "/"):
                raise InvalidSetting("servers", "must be addresses such as ldaps://dc1.example.com")
        for line in self.attributes:
            if ClaimMapping.error(line) is not None:
                raise InvalidSetting("attributes", f"{line} must be such as family_name=sn")
        if any("=" not in line or not line.partition("=")[2] for line in self.roles):
            raise InvalidSetting("roles", "must be such as ORG_USER_MANAGER=cn=helpdesk,ou=groups,dc=example")
        if LOGIN_PLACEHOLDER not in self.filter or not self.filter.startswith("("):
            raise InvalidSetting("filter", "must be a filter with {login} in it, such as (uid={login})")
        if self.servers:
            self._validate_combination()

    def _validate_combination(self) -> None:
        for name in ("organization", "base", "bind_dn"):
            if not getattr(self, name):
                raise InvalidSetting(name, "is missing")
        if domain_name_error(self.organization) is not None:
            raise InvalidSetting("organization", "must be a primary domain such as acme.example")
        if self.ca_file is not None and not self.ca_file.is_file():
            raise InvalidSetting("ca_file", f"{self.ca_file} is no file")
        self.password()

    def password(self) -> str:
        """The password of ``bind_dn``, read at each use. Raises InvalidSetting without the password."""
        if self.password_file is None:
            raise InvalidSetting("password_file", "is missing")
        try:
            open_to_others = self.password_file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            text = self.password_file.read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise InvalidSetting("password_file", f"{self.password_file} cannot be read") from None
        if open_to_others:
            raise InvalidSetting("password_file", f'{self.password_file} is open to others: run "chmod 600" on it')
        if not text:
            raise InvalidSetting("password_file", f"{self.password_file} is empty")
        return text

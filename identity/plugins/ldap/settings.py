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
    """The directory, how users are found in it, and how they are mapped."""

    servers: tuple[str, ...] = setting(
        "The LDAP servers, such as ``ldaps://dc1.example.com``, tried in this order. Empty turns the plugin off. With"
        " ``ldap://``, the connection uses StartTLS.",
        default=(),
    )
    organization: str = setting("The primary domain of the organization whose users are in the directory.", default="")
    ca_file: Path | None = setting(
        "A file of certificate authorities (PEM) to trust instead of the system's.", default=None
    )
    bind_dn: str = setting("The DN that searches for users, such as cn=identity,ou=services,dc=example.", default="")
    password_file: Path | None = setting("A file with the password of ``bind_dn``, with mode 0600.", default=None)
    base: str = setting("The DN below which users are searched, such as ou=people,dc=example.", default="")
    filter: str = setting(
        "The filter that finds a user. ``{login}`` is the first part of the login name, escaped.",
        default="(uid={login})",
    )
    id_attribute: str = setting(
        "The attribute that permanently identifies an entry: ``entryUUID``, or ``objectGUID`` for Active Directory.",
        default="entryUUID",
    )
    attributes: tuple[str, ...] = setting(
        "Which attributes fill the profile, without spaces: ``family_name=sn``.",
        default=("given_name=givenName", "family_name=sn", "display_name=displayName", "email=mail"),
    )
    create_accounts: bool = setting("Create an account at the first sign-in.", default=True)
    groups_attribute: str = setting("The attribute that lists the groups of a user.", default="memberOf")
    roles: tuple[str, ...] = setting(
        "Roles by group: ``ORG_USER_MANAGER=cn=helpdesk,ou=groups,dc=example`` grants a manager role in the"
        " organization, ``PROJECT/KEY=…`` with a project's id a role in that project. Write spaces as ``\\20``. At"
        " each sign-in, users outside the group lose the role.",
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

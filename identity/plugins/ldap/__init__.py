"""Sign-in with the password of an LDAP directory."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from identity.api.plugins import hookimpl
from identity.plugins.ldap.settings import LdapPluginSettings

if TYPE_CHECKING:
    from identity.api.services import RecordNamespace
    from identity.api.sign_in import Directory

# Inside the plugin class ``Settings`` is the plugin's attribute.
_Settings = LdapPluginSettings


class LdapPlugin:
    """Sign-in with the password of an LDAP directory."""

    hookspecs = 1
    Settings = LdapPluginSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._name_space: RecordNamespace | None = None

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """The links between entries and users are stored here."""
        self._name_space = namespace

    @hookimpl
    def identity_directories(self) -> "Iterable[Directory[Any]]":
        """The directory, if servers are configured."""
        if not self.settings.servers or self._name_space is None:
            return ()
        from identity.plugins.ldap.client import LdapClient
        from identity.plugins.ldap.directory import LdapDirectory

        return [LdapDirectory(self.settings, self._name_space, LdapClient(self.settings))]

"""Signing in with the password of an LDAP directory."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from identity import hookimpl
from identity.plugins.ldap.settings import Settings

if TYPE_CHECKING:
    from identity.domain.records import NameSpace
    from identity.provider.directory import Directory

# Inside Plugin the name stands for the attribute that every plugin has.
_Settings = Settings


class Plugin:
    """People sign in with the password that an LDAP directory has for them."""

    hookspecs = 1
    Settings = Settings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._name_space: NameSpace | None = None

    @hookimpl
    def identity_name_space(self, name_space: "NameSpace") -> None:
        """Which entry is whose."""
        self._name_space = name_space

    @hookimpl
    def identity_directories(self) -> "Iterable[Directory[Any]]":
        """The directory, if there are servers."""
        if not self.settings.servers or self._name_space is None:
            return ()
        from identity.plugins.ldap.people import People
        from identity.plugins.ldap.search import Search

        return [People(self.settings, self._name_space, Search(self.settings))]

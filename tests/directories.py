"""A directory without servers, for tests of pages and of the API."""

from typing import Any, ClassVar

from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.provider.directory import Directory
from identity.services.container import Services
from identity.testing.world import World


class EmptyDirectory(Directory[Any]):
    """Nobody is in it. One of its two servers does not answer."""

    name: ClassVar[str] = "ldap"

    def __init__(self) -> None:
        self.organization_ids: set[str] = set()

    def serves_organization(self, organization: Organization) -> bool:
        return organization.id in self.organization_ids

    def check_servers(self) -> list[tuple[str, str]]:
        return [("ldaps://dc1.example.com", ""), ("ldaps://dc2.example.com", "The server does not respond.")]

    def linked_entry_id(self, subject: Subject, services: Services) -> str | None:
        return None

    def linked_user_id(self, found: Any, services: Services) -> str | None:
        return None

    def entry_key(self, found: Any) -> str:
        return ""

    def find_entry(self, login_name: LoginName) -> Any:
        return None

    def find_entry_by_id(self, link: str) -> Any:
        return None

    def verify_password(self, found: Any, password: str) -> bool:
        return False

    def provision_account(
        self, found: Any, subject: Subject | None, services: Services, *, hashed: str
    ) -> Subject | None:
        return None


def add_directory(world: World, organization: Organization) -> str:
    """Let the plugin ``ldap`` offer a directory that serves the organization; returns its name."""
    directories: Any = world.identity.protocol_registry.directories
    directory = directories.setdefault(EmptyDirectory.name, EmptyDirectory())
    directory.organization_ids.add(organization.id)
    world.identity.plugin_host.record_offers("directory", [("ldap", EmptyDirectory.name)])
    return EmptyDirectory.name

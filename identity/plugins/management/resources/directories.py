"""Directories: where people of an organization have their passwords, as the ini file says."""

from typing import Any

from identity.domain.directories import OrganizationDirectory
from identity.domain.errors import Conflict
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.plugin_summaries import find_directory_plugin
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import DIRECTORY, ORGANIZATION
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import Representation
from identity.plugins.management.resources.plugins import SettingRepresentation
from identity.provider.directory import DirectoryUnavailable
from identity.services.commands import Command


class DirectoryRepresentation(Representation):
    """A directory of the organization, with the settings of the ini file that set it up. The instance manages it."""

    has_volatile_members = True

    name: str
    plugin: str
    settings: list[SettingRepresentation]


class DirectoryServerRepresentation(Representation):
    """A server; `problem` says why a sign-in would fail there, and is empty if it would not."""

    server: str
    problem: str


class DirectoryTestRepresentation(Representation):
    """What a test of the connection found, in the order in which servers are tried."""

    servers: list[DirectoryServerRepresentation]


def _represent(call: OperationCall[Any], directory: OrganizationDirectory) -> DirectoryRepresentation:
    plugins = call.request.registry.application.plugin_host.summarize_plugins()
    may = call.services.access_control.is_permitted(call.principal, "instance.read", Resource.INSTANCE)
    plugin = find_directory_plugin(plugins, directory.name, with_paths=may)
    settings = [SettingRepresentation.from_value(item) for item in plugin.settings]
    return DirectoryRepresentation(name=directory.name, plugin=plugin.name, settings=settings)


def find_directory(call: OperationCall[Organization]) -> OrganizationDirectory:
    return call.services.directories.get(call.entity.id, call.request.matchdict["directory"])


def _test(call: OperationCall[Organization], _: Command) -> DirectoryTestRepresentation:
    directory = find_directory(call)
    call.services.directories.record_test(directory, principal=call.principal)
    # Hold no lock while the servers answer.
    call.request.commit()
    try:
        found = call.request.registry.application.protocol_registry.directories[directory.name].check_servers()
    except DirectoryUnavailable:
        raise Conflict(gettext_lazy("Too many requests to the directory are running. Try again.")) from None
    servers = [DirectoryServerRepresentation(server=server, problem=str(problem)) for server, problem in found]
    return DirectoryTestRepresentation(servers=servers)


_DIRECTORIES = ApiResource[OrganizationDirectory](
    "directory", DirectoryRepresentation, _represent, permission_subject="upstream_provider"
)

OPERATIONS = (
    _DIRECTORIES.list(
        ORGANIZATION / "directories",
        "Lists the directories of an organization, with their settings in the ini file.",
        lambda call: call.services.directories.list_of_organization(call.entity),
        name="list_directories",
        is_paged=False,
    ),
    _DIRECTORIES.get(DIRECTORY, "Shows a directory.", find_directory),
    _DIRECTORIES.action(
        "test_directory",
        DIRECTORY / "test",
        "Tests the connection to each server of a directory.",
        EmptyCommand,
        _test,
        description="Besides `instance.write` this takes `upstream_provider.write` in the organization.",
        permission=INSTANCE_WRITE,
        representation=DirectoryTestRepresentation,
    ),
)

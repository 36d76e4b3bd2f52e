"""Mappings of directories in the desired state. The ini file alone sets the directories themselves up."""

from collections.abc import Sequence

from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.services.commands.desired_state import DirectorySpec, MappingSourceSpec
from identity.services.desired_state.attribute_mappings import ensure_attribute_mappings
from identity.services.desired_state.group_mappings import ensure_group_mappings
from identity.services.desired_state.reconciler import Reconciler
from identity.services.provider_mappings import MappingSource


def ensure_mappings(
    build: Reconciler, path: str, organization: Organization, spec: MappingSourceSpec, source: MappingSource
) -> None:
    ensure_group_mappings(build, path, organization, spec, source)
    ensure_attribute_mappings(build, path, organization, spec, source)


def ensure_directories(
    build: Reconciler, path: str, organization: Organization, described: Sequence[DirectorySpec] | None
) -> None:
    """After the groups and attributes of the organization. A directory that does not serve it is a problem."""
    for number, spec in enumerate(described or ()):
        directory_path = f"{path}.directories[{number}]"
        with build.collect_problems(directory_path):
            try:
                directory = build.services.directories.get(organization.id, spec.name)
            except NotFound:
                message = gettext_lazy(
                    "The ini file sets up no directory {name} for this organization.", name=spec.name
                )
                raise Invalid({"name": message}) from None
            ensure_mappings(build, directory_path, organization, spec, directory)

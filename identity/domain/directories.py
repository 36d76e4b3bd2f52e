"""Directories: where people have their passwords, set up in the ini file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OrganizationDirectory:
    """A directory of the ini file for the organization that it serves."""

    name: str
    organization_id: str

    @property
    def id(self) -> str:
        """Other directories may have served the organization before, and this one others."""
        return f"{self.organization_id}/{self.name}"

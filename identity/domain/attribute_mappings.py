"""Attribute mappings: claims of an identity provider, or of a directory, that are values of attributes."""

from datetime import datetime

from identity.domain.entity import create_only, entity, mutable, read_only, versioned
from identity.domain.group_mappings import claim_path_error


@entity
class AttributeMapping:
    """People who sign in with the identity provider get the value of ``claim`` in the attribute. ``editor_id`` and
    ``directory`` are as in GroupMapping."""

    id: str = read_only()
    provider_id: str | None = read_only(default=None)
    directory: str | None = read_only(default=None)
    attribute_id: str = create_only()
    organization_id: str = read_only()
    claim: str = mutable(validator=claim_path_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    editor_id: str | None = read_only(default=None)
    version: int = versioned(default=1)

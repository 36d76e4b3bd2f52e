"""Group mappings: values in the claims of an identity provider or directory that make people members of groups."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from identity.domain.entity import create_only, entity, mutable, read_only, versioned
from identity.domain.messages import gettext_lazy
from identity.domain.names import is_printable

#: Mappings per identity provider: each sign-in reads all of them.
MAX_GROUP_MAPPINGS = 200
_MAX_CLAIM_LENGTH = 200
_MAX_VALUE_LENGTH = 500


def claim_path_error(path: str) -> str | None:
    """A claim, or names of nested objects separated by dots."""
    if not path or len(path) > _MAX_CLAIM_LENGTH or not is_printable(path) or " " in path:
        return gettext_lazy("Enter the name of a claim, such as {example}.", example="groups")
    return None


def claim_value_error(value: str) -> str | None:
    if not value.strip() or len(value) > _MAX_VALUE_LENGTH or not is_printable(value):
        return gettext_lazy("Use 1 to {length} printable characters.", length=_MAX_VALUE_LENGTH)
    return None


def find_claim(claims: Mapping[str, Any], path: str) -> object:
    """The value of a claim; None if there is none. A path such as ``realm_access.roles`` leads into nested objects. A
    name may contain dots itself."""
    if path in claims:
        return claims[path]
    for position, character in enumerate(path):
        nested = claims.get(path[:position]) if character == "." else None
        found = find_claim(nested, path[position + 1 :]) if isinstance(nested, Mapping) else None
        if found is not None:
            return found
    return None


@entity
class GroupMapping:
    """People who sign in with the identity provider become members of the group if ``claim`` is ``value`` or a list
    that contains it. ``editor_id`` is the user who saved the mapping last, with whose rights it acts; None for the
    operator, for whom it does not act.

    The mapping belongs to an identity provider or, by name, to a directory that serves the organization; ``claim`` is
    then an attribute of its entries."""

    id: str = read_only()
    provider_id: str | None = read_only(default=None)
    directory: str | None = read_only(default=None)
    group_id: str = create_only()
    organization_id: str = read_only()
    claim: str = mutable(validator=claim_path_error)
    value: str = mutable(validator=claim_value_error)
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    editor_id: str | None = read_only(default=None)
    version: int = versioned(default=1)

    def matches(
        self, claims: Mapping[str, Any], normalize: Callable[[str, str], str] = lambda claim, value: value
    ) -> bool:
        """Values are compared as ``normalize`` returns them."""
        found = find_claim(claims, self.claim)
        values = found if isinstance(found, list) else [found]
        expected = normalize(self.claim, self.value)
        return any(normalize(self.claim, value) == expected for value in values if isinstance(value, str))

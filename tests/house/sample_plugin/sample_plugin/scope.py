"""A scope with a fixed name, and its claim."""

from identity.api.grants import ClaimsScope, Scope

SCOPE = "department"
CLAIM = "department"


def department_scope() -> Scope:
    """The scope; discovery lists it and its claim."""
    return ClaimsScope(SCOPE, frozenset({CLAIM}))

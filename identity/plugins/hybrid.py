"""Response types of the hybrid flow (OpenID Connect Core §3.3): a code together with tokens.

Tokens pass through the browser: an application gets them only where it has the type enabled.
"""

from collections.abc import Iterable

from identity.api.grants import Artifact, ResponseType
from identity.api.plugins import hookimpl


class HybridPlugin:
    """The response types of the hybrid flow."""

    hookspecs = 1

    @hookimpl
    def identity_response_types(self) -> Iterable[ResponseType]:
        """All three."""
        return [
            ResponseType("code id_token", frozenset({Artifact.CODE, Artifact.ID_TOKEN})),
            ResponseType("code token", frozenset({Artifact.CODE, Artifact.ACCESS_TOKEN})),
            ResponseType("code id_token token", frozenset(Artifact)),
        ]

"""Response types id_token and id_token token (service description §4.2; OpenID Connect Core §3.2).

Tokens pass through the browser: an application gets them only where it has the type enabled.
"""

from collections.abc import Iterable

from identity.api.grants import Artifact, ResponseType
from identity.api.plugins import hookimpl


class ImplicitPlugin:
    """The response types of the implicit flow."""

    hookspecs = 1

    @hookimpl
    def identity_response_types(self) -> Iterable[ResponseType]:
        """Both."""
        return [
            ResponseType("id_token", frozenset({Artifact.ID_TOKEN})),
            ResponseType("id_token token", frozenset({Artifact.ID_TOKEN, Artifact.ACCESS_TOKEN})),
        ]

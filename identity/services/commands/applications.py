"""Changes to applications."""

from typing import Self

from pydantic import model_validator

from identity.domain.applications import ApplicationType, redirect_uri_problem
from identity.domain.users import TokenFormat
from identity.services.commands import Command
from identity.services.commands.fields import Name, TokenLifetime


class RegisterApplication(Command):
    """Register an application (an OIDC client) of a project; it gets a client id and, unless public, a secret."""

    name: Name
    type: ApplicationType
    response_types: frozenset[str] = frozenset()
    grant_types: frozenset[str] = frozenset()
    redirect_uris: tuple[str, ...] = ()
    post_logout_redirect_uris: tuple[str, ...] = ()
    authentication_method: str = "client_secret_basic"
    access_token_type: TokenFormat = TokenFormat.OPAQUE
    access_token_lifetime: TokenLifetime | None = None
    id_token_lifetime: TokenLifetime | None = None
    id_token_userinfo_assertion: bool = False
    assert_roles_in_access_token: bool = False
    assert_roles_in_id_token: bool = False
    development: bool = False

    @model_validator(mode="after")
    def _check_redirect_uris(self) -> Self:
        for uri in (*self.redirect_uris, *self.post_logout_redirect_uris):
            problem = redirect_uri_problem(uri, type=self.type, development=self.development)
            if problem is not None:
                raise ValueError(problem)
        return self

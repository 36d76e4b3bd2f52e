"""Changes to applications."""

from identity.domain.applications import ApplicationType, ConsentRule
from identity.domain.users import TokenFormat
from identity.services.commands import Command
from identity.services.commands.fields import Name, TokenLifetime


class RegisterApplication(Command):
    """Register an application (an OIDC client) of a project; it gets a client id and, unless public, a secret.

    What is None follows from the type: people sign in to web, native and browser applications with a code; web and API
    applications keep a secret, native and browser ones cannot.
    """

    name: Name
    type: ApplicationType
    response_types: frozenset[str] | None = None
    grant_types: frozenset[str] | None = None
    redirect_uris: tuple[str, ...] = ()
    post_logout_redirect_uris: tuple[str, ...] = ()
    authentication_method: str | None = None
    access_token_type: TokenFormat = TokenFormat.OPAQUE
    access_token_lifetime: TokenLifetime | None = None
    id_token_lifetime: TokenLifetime | None = None
    id_token_userinfo_assertion: bool = False
    assert_roles_in_access_token: bool = False
    assert_roles_in_id_token: bool = False
    consent: ConsentRule = ConsentRule.WHEN_FOREIGN
    may_manage: bool = False
    development: bool = False


class ChangeApplication(Command):
    """Change what is given; the type stays. A lifetime that is given as null is the instance's again."""

    name: Name | None = None
    response_types: frozenset[str] | None = None
    grant_types: frozenset[str] | None = None
    redirect_uris: tuple[str, ...] | None = None
    post_logout_redirect_uris: tuple[str, ...] | None = None
    authentication_method: str | None = None
    access_token_type: TokenFormat | None = None
    access_token_lifetime: TokenLifetime | None = None
    id_token_lifetime: TokenLifetime | None = None
    id_token_userinfo_assertion: bool | None = None
    assert_roles_in_access_token: bool | None = None
    assert_roles_in_id_token: bool | None = None
    consent: ConsentRule | None = None
    may_manage: bool | None = None
    development: bool | None = None

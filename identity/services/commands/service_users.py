"""Commands that change service users and their keys."""

from typing import Literal

from identity.domain.federated_credentials import FederatedCredential
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import Agent, ServiceUser
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import Expiration, Name, ScopeString, UserName


@with_create_fields(ServiceUser)
class CreateServiceUser(Command):
    """Create a service user (service description §2.1)."""

    user_name: UserName


@with_update_fields(ServiceUser)
class ChangeServiceUser(Command):
    """Change the fields that are set. ``may_manage`` is for agents."""

    may_manage: bool | None = None


@with_create_fields(Agent)
class CreateAgent(Command):
    """Create an agent of a person."""

    user_name: UserName


class AddServiceUserKey(Command):
    """Add a generated key; ``expires_at`` is one year from now by default, ``never`` must be explicit. ``algorithm`` is
    RS256 by default; ``key_size`` is for RSA keys."""

    expires_at: Expiration | None = None
    key_size: Literal[2048, 3072, 4096] = 2048
    algorithm: SignatureAlgorithm | None = None


class UploadServiceUserKey(Command):
    """Add a key whose private half the service never sees; ``public_key`` is PEM or a JWK. ``algorithm`` is by default
    the one that the JWK names, else RS256 for RSA, ES256 for P-256, and EdDSA for Ed25519."""

    public_key: str
    expires_at: Expiration | None = None
    algorithm: SignatureAlgorithm | None = None


@with_create_fields(FederatedCredential)
class AddFederatedCredential(Command):
    """Let the service user get tokens for tokens of an outside issuer.

    `conditions` are lines such as `sub = repo:acme/app:ref:refs/heads/main`. A value that ends in `:*` or `/*` is a
    prefix. One is about `sub` or an immutable id."""

    instance_managed: bool = False


class AddPersonalAccessToken(Command):
    """Add a personal access token; ``expires_at`` is that of a key.

    ``scope`` is what it may request of the service, by default ``openid``. Its audience is the instance's own
    project and ``project_ids``; for each the audience scope is added to the scope (service description §2.7)."""

    name: Name
    expires_at: Expiration | None = None
    scope: ScopeString = ""
    project_ids: tuple[str, ...] = ()

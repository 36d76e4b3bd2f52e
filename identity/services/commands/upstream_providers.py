"""Commands that change upstream providers."""

from typing import Annotated

from pydantic import Field

from identity.domain.messages import gettext_lazy
from identity.domain.upstream_providers import UpstreamKind, UpstreamProvider
from identity.domain.validators import multiline_text_error
from identity.services.commands import Command
from identity.services.commands.entity_fields import field_validator, with_create_fields, with_update_fields
from identity.services.commands.field_types import Name

_LONGEST_SECRET = 8000


def _secret_problem(text: str) -> str | None:
    if len(text) > _LONGEST_SECRET:
        return gettext_lazy("Use at most {length} characters.", length=_LONGEST_SECRET)
    return multiline_text_error("".join(sorted(set(text))))


#: A client secret, or the text of a private key; it is write-only.
ClientSecretText = Annotated[str, field_validator(_secret_problem)]


@with_create_fields(UpstreamProvider)
class CreateUpstreamProvider(Command):
    """Add an identity provider for sign-in. One that is not active is a draft: it can be tested, but people cannot sign
    in with it until it is reactivated."""

    name: Name
    kind: UpstreamKind = UpstreamKind.OPENID
    active: bool = True
    client_secret: ClientSecretText | None = Field(default=None, repr=False)


@with_update_fields(UpstreamProvider)
class ChangeUpstreamProvider(Command):
    """Change the fields that are set; the kind stays. A secret that is set replaces the stored one."""

    client_secret: ClientSecretText | None = Field(default=None, repr=False)

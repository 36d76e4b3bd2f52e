"""Changes to upstream providers."""

from typing import Annotated

from pydantic import Field

from identity.domain.rules import lines_problem
from identity.domain.upstream_providers import UpstreamKind, UpstreamProvider
from identity.domain.words import say
from identity.services.commands import Command
from identity.services.commands.derived import changing, checked, making
from identity.services.commands.fields import Name

_LONGEST_SECRET = 8000


def _secret_problem(text: str) -> str | None:
    if len(text) > _LONGEST_SECRET:
        return say("Use at most {length} characters.", length=_LONGEST_SECRET)
    return lines_problem("".join(sorted(set(text))))


#: A client secret, or the text of a private key: it goes in and never comes out.
Secret = Annotated[str, checked(_secret_problem)]


@making(UpstreamProvider)
class CreateUpstreamProvider(Command):
    """Add an identity provider at which people can sign in."""

    name: Name
    kind: UpstreamKind = UpstreamKind.OPENID
    client_secret: Secret | None = Field(default=None, repr=False)


@changing(UpstreamProvider)
class ChangeUpstreamProvider(Command):
    """Change what is given; the kind stays. A secret that is given takes the place of the one before."""

    client_secret: Secret | None = Field(default=None, repr=False)

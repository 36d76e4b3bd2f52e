"""Client secrets of an application: a new one beside the old one, and the end of one."""

from identity.domain.words import say
from identity.http import targets
from identity.plugins.console import client_secrets
from identity.plugins.console.places import Place
from identity.plugins.console.things import OfApplication


class NewSecret(OfApplication, client_secrets.NewSecret):
    """Makes one."""


class EndSecret(OfApplication, client_secrets.EndSecret):
    """Ends one."""

    @property
    def loss(self) -> str:
        if len(self.live) == 1:
            return say("It is the only one: the application gets no tokens until it has a new one.")
        return say("Where it is still in use, the application gets no tokens any more.")


_SECRETS = "/applications/{application}/secrets"

PLACES = (
    Place(f"{_SECRETS}/new", NewSecret, "application.write", targets.application),
    Place(f"{_SECRETS}/{{secret}}/delete", EndSecret, "application.write", targets.application),
)

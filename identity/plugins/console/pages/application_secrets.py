"""Client secrets of an application: a new one beside the old one, and the end of one."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.applications import ClientSecret
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import ConsoleForm, found_or_missing, matched
from identity.plugins.console.pages.applications import OfApplication
from identity.plugins.console.pages.service_user_keys import ALREADY, last_used
from identity.plugins.console.places import Place


class NewSecret(OfApplication, ConsoleForm):
    """Makes a client secret, and shows it once."""

    template = "console/new_secret.html"
    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New client secret for {name}", name=self.application.name)

    def show(self) -> Mapping[str, object]:
        """Whether there is another one already."""
        others = len(self.services.applications.secrets(self.application.id))
        return {"others": others, "back": f"{self.href}#secrets"}

    def submit(self, form: Form) -> Response:
        """Make it, beside another one that keeps working."""
        self.use_once(form, ALREADY)
        _, secret = self.services.applications.add_secret(self.application.id, by=self.principal)
        shown = {"client_id": self.application.id, "secret": secret, "back": f"{self.href}#secrets"}
        return self.draw({**shown, "title": self.words.t("Client secret added")}, template="console/secret_added.html")


class EndSecret(OfApplication, ConfirmPage):
    """Asks before what still uses it loses access."""

    fields = ()

    @property
    def secret(self) -> ClientSecret:
        """Which one. Raises NotFound."""
        wanted = matched(self, "secret")
        found = next((one for one in self._live if one.id == wanted), None)
        secret: ClientSecret = found_or_missing(found, "client secret", wanted)
        return secret

    def question(self) -> str:
        """Whose."""
        return say("End this client secret of {name}?", name=self.application.name)

    def effects(self) -> Sequence[str]:
        """When it was made and last used."""
        secret = self.secret
        lines = [
            say("Created {when} UTC.", when=secret.created_at.strftime("%Y-%m-%d %H:%M")),
            last_used(secret.last_used_at),
        ]
        if len(self._live) == 1:
            return [*lines, say("It is the only one: the application gets no tokens until it has a new one.")]
        return [*lines, say("Where it is still in use, the application gets no tokens any more.")]

    def label(self) -> str:
        """The button."""
        return say("End client secret")

    def back(self) -> str:
        """To the application."""
        return f"{self.href}#secrets"

    def act(self) -> str:
        """End it."""
        self.services.applications.remove_secret(self.application.id, self.secret.id, by=self.principal)
        return f"{self.href}#secrets"

    @property
    def _live(self) -> Sequence[ClientSecret]:
        live: Sequence[ClientSecret] = self.services.applications.secrets(self.application.id)
        return live


_SECRETS = "/applications/{application}/secrets"

PLACES = (
    Place(f"{_SECRETS}/new", NewSecret, "application.write", targets.application),
    Place(f"{_SECRETS}/{{secret}}/delete", EndSecret, "application.write", targets.application),
)

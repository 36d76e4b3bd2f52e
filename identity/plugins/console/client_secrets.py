"""Client secrets, of an application or of a service user: a new one beside the old one, and the end of one."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.words import say
from identity.pages.forms import Form
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import pick
from identity.plugins.console.expirations import ALREADY, last_used
from identity.plugins.console.places import Place
from identity.plugins.console.sections import Table
from identity.plugins.console.things import OfThing

#: So many can be live at once.
_MOST = 2


def secrets_table(page: OfThing[Any], id: str, title: str, lead: str, *, empty: str, first: bool) -> Table:  # noqa: A002
    """Those of the page's thing; with ``first`` it is the first task to make one."""
    live, may_write = page.use_case.secrets(page.thing.id), page.may(f"{page.subject_of}.write")
    rows = []
    for one in live:
        end = page.buttons(f"{page.href}/secrets/{one.id}", one.id, remove=say("End …"), change=False)
        created = page.ui.when(one.created_at, clock=True)
        rows.append((created, page.ago(one.last_used_at), end if may_write else ""))
    new = Markup()
    if may_write and len(live) < _MOST:
        kind = "primary" if first and not rows else ""
        new = page.link(say("New"), f"{page.href}/secrets/new", what=say("client secret"), kind=kind, symbol="plus")
    columns = (say("Created"), say("Last used"))
    return Table(id, title, lead, new, columns=columns, rows=rows, actions=True, empty=empty)


class OfSecrets(OfThing[Any]):
    """A page about secrets of one thing."""

    #: The section in which they stand.
    anchor = "secrets"

    @property
    def live(self) -> Sequence[Any]:
        """All there are."""
        live: Sequence[Any] = self.use_case.secrets(self.thing.id)
        return live

    @property
    def back(self) -> str:
        return f"{self.href}#{self.anchor}"


class NewSecret(OfSecrets, ConsoleForm):
    """Makes a client secret, and shows it once."""

    creates = True
    title = say("New client secret for {name}")
    label = say("Create secret")

    @property
    def about(self) -> str:
        once = self.words.t("The secret is shown once, on the next page.")
        keeps = self.words.t("The one there is keeps working, so that you can replace it without a gap.")
        return once + " " + keeps if self.live else once

    def submit(self, form: Form) -> Response:
        self.use_once(form, ALREADY)
        _, secret = self.use_case.add_secret(self.thing.id, by=self.principal)
        shown = {"client_id": self.thing.id, "secret": secret, "back": self.back}
        return self.draw({**shown, "title": self.words.t("Client secret added")}, template="console/secret_added.html")


class EndSecret(OfSecrets, ConfirmPage):
    """Asks before what still uses it loses access."""

    #: What stops working; and that it is the only one, where that means more.
    loss: ClassVar[str]
    last_loss: ClassVar[str] = ""
    #: What becomes of tokens, where that is not said by it.
    tokens: ClassVar[str] = ""
    title = say("End this client secret of {name}?")
    label = say("End client secret")

    @property
    def secret(self) -> Any:
        """Which one. Raises NotFound."""
        return pick(self, self.live, "secret")

    @property
    def names(self) -> Mapping[str, object]:
        return {"name": self.name, "when": self.secret.created_at.strftime("%Y-%m-%d %H:%M")}

    @property
    def effects(self) -> Sequence[str]:
        loss = self.last_loss if self.last_loss and len(self.live) == 1 else self.loss
        return [say("Created {when} UTC."), last_used(self.secret.last_used_at), loss, self.tokens]

    def act(self) -> str | None:
        self.use_case.remove_secret(self.thing.id, self.secret.id, by=self.principal)
        return None


def secret_places(kind: type[OfThing[Any]], **said: str) -> tuple[Place, ...]:
    """Where the secrets of things of a kind are made and ended."""
    path, permission = f"{kind.path}/secrets", f"{kind.subject_of}.write"
    anchor = said.get("anchor", OfSecrets.anchor)
    return (
        Place(f"{path}/new", NewSecret.of(kind, anchor=anchor), permission, kind.target),
        Place(f"{path}/{{secret}}/delete", EndSecret.of(kind, **said), permission, kind.target),
    )

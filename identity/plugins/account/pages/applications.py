"""/account/applications: what holds access to the account, and how to take it away."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.tokens import Connection
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.pages.scope_words import received
from identity.plugins.account.pages.account_page import APPLICATIONS, AccountPage
from identity.provider.scope import named_project


@dataclass(frozen=True)
class Row:
    """A connected application as the list shows it."""

    client_id: str
    application: str
    organization: str
    received: Markup
    manages: bool
    offline: bool
    since: datetime
    last_used_at: datetime


class Connected(AccountPage):
    """A page about connections of this person."""

    section = APPLICATIONS

    def connections(self) -> tuple[Connection, ...]:
        """All there are, last used first."""
        found: tuple[Connection, ...] = self.request.services.users.connections(self.subject.user.id)
        return found


class Applications(Connected):
    """One row an application."""

    template = "account/applications.html"

    def show(self) -> Mapping[str, object]:
        return {"rows": [self._row(one) for one in self.connections()]}

    def _row(self, connection: Connection) -> Row:
        client, instance = connection.client, self.request.services.instance()
        namespaces = self.request.registry.identity.settings.urn_namespaces
        own = "" if instance is None else instance.project_id
        return Row(
            client_id=client.id,
            application=client.application.name,
            organization=client.organization.name,
            received=_as_sentence(received(connection.scope, client.project.name, self.words, namespaces)),
            manages=any(named_project(word, namespaces, own) == own for word in connection.scope),
            offline=connection.offline,
            since=connection.since,
            last_used_at=connection.last_used_at,
        )


class Disconnect(Connected, FormPage):
    """Asks first. A client id that is not connected is not there, whether it exists or not."""

    template = "account/disconnect.html"

    @property
    def connection(self) -> Connection:
        """Which one. Raises NotFound."""
        client_id = self.request.matchdict["client_id"]
        found = next((one for one in self.connections() if one.client.id == client_id), None)
        if found is None:
            raise NotFound("application", client_id)
        return found

    def show(self) -> Mapping[str, object]:
        connection = self.connection
        return {"application": connection.client.application.name, "offline": connection.offline}

    def submit(self, form: Form) -> Response:
        self.request.services.users.disconnect(self.subject, self.connection.client.id)
        return self.redirect(self.done(APPLICATIONS))


def _as_sentence(parts: list[Markup]) -> Markup:
    """The parts as they stand by themselves, not within a sentence."""
    joined = Markup(", ").join(parts)
    return joined[:1].upper() + joined[1:]

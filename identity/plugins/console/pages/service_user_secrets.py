"""Client secrets and personal access tokens of a service user: what programs use that cannot sign."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.errors import Invalid, NotFound
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.client_secrets import secret_places, secrets_table
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import matched
from identity.plugins.console.expirations import (
    ALREADY,
    COLUMNS,
    EXPIRATION,
    DateField,
    ExpiringForm,
    expiration,
    expiration_cells,
    for_ever_tick,
    last_used,
)
from identity.plugins.console.fields import fields_of
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.sections import Table
from identity.plugins.console.things import OfServiceUser
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.storage.paging import Page, PageRequest


def secret_section(page: OfServiceUser) -> Table:
    """The client secrets."""
    lead = say("Only for programs that use the client credentials grant; a key is safer.")
    empty = say("No client secret")
    return secrets_table(page, "secret", say("Client secret"), lead, empty=empty, first=False)


class TokenList(OfServiceUser, ListPage):
    """All personal access tokens, newest first."""

    below = "/personal-access-tokens"

    columns = (say("Name"), *COLUMNS)
    actions = True
    searchable = False
    title = say("Personal access tokens")
    empty_title = say("No personal access tokens yet")
    empty_text = say("A program sends such a token as it is. A key is safer: it never leaves the program.")
    writing, what = "service_user.write", say("personal access token")
    id, all_of_them, made_there = "tokens", say("All personal access tokens …"), True
    section_lead = say("Tokens that a program sends as they are, for tools that cannot ask for one.")
    section_empty = say("No personal access tokens")

    def fetch(self, asked: PageRequest) -> Page[PersonalAccessToken]:
        return self.services.service_users.tokens(self.thing.id, asked)

    def cells(self, one: PersonalAccessToken) -> Cells:
        remove = self.buttons(f"{self.list_href}/{one.id}", one.name, remove=say("Remove …"), change=False)
        return self.ui.bold(one.name), *expiration_cells(self, one), remove if self.may(self.writing) else ""


class NewToken(ExpiringForm):
    """Makes a personal access token, and shows it once."""

    below = "#tokens"

    inputs = (
        *fields_of(PersonalAccessToken),
        DateField(
            EXPIRATION,
            say("Expiration date"),
            say("The token works until the end of this day (UTC)."),
        ),
        for_ever_tick(say("Only for tokens that you replace by other means.")),
    )
    title = say("New personal access token for {name}")
    label = say("Create token")

    def submit(self, form: Form) -> Response:
        problems: dict[str, str] = {}
        expires_at = None
        try:
            expires_at = expiration(form)
        except Invalid as refused:
            problems |= refused.fields
        try:
            command = self.decoded(AddPersonalAccessToken, {"name": form.one("name"), "expires_at": expires_at})
        except Invalid as refused:
            raise Invalid({**refused.fields, **problems}) from None
        if problems:
            raise Invalid(problems)
        self.use_once(form, ALREADY)
        _, text = self.services.service_users.add_token(self.thing.id, command, by=self.principal)
        shown = {"client_id": "", "secret": text, "back": self.back}
        added = self.words.t("Personal access token added")
        return self.draw({**shown, "title": added}, template="console/secret_added.html")


class RemoveToken(OfServiceUser, ConfirmPage):
    """Asks before programs lose access."""

    below = "#tokens"

    title = say("Remove the token “{token}” of {name}?")
    label = say("Remove token")

    @property
    def token(self) -> PersonalAccessToken:
        """Which one. Raises NotFound."""
        wanted = matched(self, "token")
        found = self.services.storage.credentials.find(PersonalAccessToken, wanted, self.thing.id)
        if found is None:
            raise NotFound("personal access token", wanted)
        token: PersonalAccessToken = found
        return token

    @property
    def names(self) -> Mapping[str, object]:
        return {"token": self.token.name, "name": self.name}

    @property
    def effects(self) -> Sequence[str]:
        return [say("Programs that use it lose access at once."), last_used(self.token.last_used_at)]

    def act(self) -> str:
        self.services.service_users.remove_token(self.thing.id, self.token.id, by=self.principal)
        return self.href


_ONE = "/service-users/{service_user}"

PLACES = (
    *secret_places(OfServiceUser, anchor="secret", loss=say("Programs that use it lose access at once.")),
    Place(f"{_ONE}/personal-access-tokens", TokenList, "service_user.read", targets.service_user),
    Place(f"{_ONE}/personal-access-tokens/new", NewToken, "service_user.write", targets.service_user),
    Place(f"{_ONE}/personal-access-tokens/{{token}}/delete", RemoveToken, "service_user.write", targets.service_user),
)

"""Client secrets and personal access tokens of a service user: what programs use that cannot sign."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.badges import expiry_badge
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import ConsoleForm, found_or_missing, matched
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.service_user_keys import (
    ALREADY,
    EXPIRATION,
    EXPIRES_AT,
    FOR_EVER,
    expiration,
    last_day,
    last_used,
    usual_day,
)
from identity.plugins.console.pages.service_users import OfServiceUser
from identity.plugins.console.places import Place
from identity.services.commands.service_users import AddPersonalAccessToken
from identity.storage.paging import Page, PageRequest


class NewSecret(OfServiceUser, ConsoleForm):
    """Makes a client secret, and shows it once."""

    template = "console/new_secret.html"
    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New client secret for {name}", name=self.user.display_name)

    def show(self) -> Mapping[str, object]:
        """What it is for, and whether there is another one already."""
        return {"others": len(self.services.service_users.secrets(self.user.id)), "back": f"{self.href}#secret"}

    def submit(self, form: Form) -> Response:
        """Make it, beside another one that keeps working."""
        self.use_once(form, ALREADY)
        _, secret = self.services.service_users.add_secret(self.user.id, by=self.principal)
        shown = {"client_id": self.user.id, "secret": secret, "back": f"{self.href}#secret"}
        return self.draw({**shown, "title": self.words.t("Client secret added")}, template="console/secret_added.html")


class EndSecret(OfServiceUser, ConfirmPage):
    """Asks before programs lose access."""

    fields = ()

    @property
    def secret(self) -> ServiceUserSecret:
        """Which one. Raises NotFound."""
        wanted = matched(self, "secret")
        live: Sequence[ServiceUserSecret] = self.services.service_users.secrets(self.user.id)
        secret: ServiceUserSecret = found_or_missing(
            next((one for one in live if one.id == wanted), None), "secret", wanted
        )
        return secret

    def question(self) -> str:
        """Whose."""
        return say("End this client secret of {name}?", name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """When it was made and last used."""
        return [
            say("Created {when} UTC.", when=self.secret.created_at.strftime("%Y-%m-%d %H:%M")),
            last_used(self.secret.last_used_at),
            say("Programs that use it lose access at once."),
        ]

    def label(self) -> str:
        """The button."""
        return say("End client secret")

    def back(self) -> str:
        """To the service user."""
        return f"{self.href}#secret"

    def act(self) -> str:
        """End it."""
        self.services.service_users.remove_secret(self.user.id, self.secret.id, by=self.principal)
        return self.href


class TokenList(OfServiceUser, ListPage):
    """All personal access tokens, newest first."""

    template = "console/personal_access_tokens.html"
    columns = (say("Name"), say("Expiration date"), say("State"), say("Last used"))
    actions = True
    searchable = False
    heading = say("Personal access tokens")
    empty_title = say("No personal access tokens yet")
    empty_text = say("A program sends such a token as it is. A key is safer: it never leaves the program.")

    def fetch(self, asked: PageRequest) -> Page[PersonalAccessToken]:
        """The tokens."""
        found: Page[PersonalAccessToken] = self.services.service_users.tokens(self.user.id, asked)
        return found

    def rows(self, found: Sequence[PersonalAccessToken]) -> Sequence[object]:
        """With their state."""
        return [(one, expiry_badge(one.expires_at, self.services.now, self.words)) for one in found]

    def show(self) -> Mapping[str, object]:
        """With the address below which they lie."""
        return {**super().show(), "href": self.href}


class NewToken(OfServiceUser, ConsoleForm):
    """Makes a personal access token, and shows it once."""

    template = "console/personal_access_token_form.html"
    fields = ("name", EXPIRATION, FOR_EVER)
    renamed = EXPIRES_AT
    missing = {"name": say("Enter a name that tells what the token is for.")}  # noqa: RUF012
    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New personal access token for {name}", name=self.user.display_name)

    def values(self) -> Mapping[str, str]:
        """What is usual."""
        return {EXPIRATION: usual_day(self.services.service_users)}

    def show(self) -> Mapping[str, object]:
        """What the date may be, and what is usual."""
        t, today = self.words.t, self._today
        latest = self.services.service_users.latest_expiration
        return {
            "first": str(today + timedelta(days=1)),
            "last": "" if latest is None else str(last_day(latest)),
            "may_be_for_ever": latest is None,
            "suggestions": [
                (str(today + timedelta(days=30)), t("in 30 days")),
                (str(today + timedelta(days=90)), t("in 90 days")),
                (str(today + timedelta(days=365)), t("in 1 year")),
            ],
            "back": f"{self.href}#tokens",
        }

    def submit(self, form: Form) -> Response:
        """Make it."""
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
        _, text = self.services.service_users.add_token(self.user.id, command, by=self.principal)
        shown = {"client_id": "", "secret": text, "back": f"{self.href}#tokens"}
        added = self.words.t("Personal access token added")
        return self.draw({**shown, "title": added}, template="console/secret_added.html")

    @property
    def _today(self) -> date:
        now: datetime = self.services.now
        return now.date()


class RemoveToken(OfServiceUser, ConfirmPage):
    """Asks before programs lose access."""

    fields = ()

    @property
    def token(self) -> PersonalAccessToken:
        """Which one. Raises NotFound."""
        wanted = matched(self, "token")
        found = self.services.storage.personal_access_tokens.find(wanted, self.user.id)
        token: PersonalAccessToken = found_or_missing(found, "personal access token", wanted)
        return token

    def question(self) -> str:
        """With its name and whose it is."""
        return say("Remove the token “{token}” of {name}?", token=self.token.name, name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """When it was last used."""
        return [say("Programs that use it lose access at once."), last_used(self.token.last_used_at)]

    def label(self) -> str:
        """The button."""
        return say("Remove token")

    def back(self) -> str:
        """To the service user."""
        return f"{self.href}#tokens"

    def act(self) -> str:
        """Remove it."""
        self.services.service_users.remove_token(self.user.id, self.token.id, by=self.principal)
        return self.href


_ONE = "/service-users/{service_user}"

PLACES = (
    Place(f"{_ONE}/secrets/new", NewSecret, "service_user.write", targets.service_user),
    Place(f"{_ONE}/secrets/{{secret}}/delete", EndSecret, "service_user.write", targets.service_user),
    Place(f"{_ONE}/personal-access-tokens", TokenList, "service_user.read", targets.service_user),
    Place(f"{_ONE}/personal-access-tokens/new", NewToken, "service_user.write", targets.service_user),
    Place(f"{_ONE}/personal-access-tokens/{{token}}/delete", RemoveToken, "service_user.write", targets.service_user),
)

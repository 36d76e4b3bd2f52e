"""Keys of a service user: all of them, a new one with its key file shown once, and the end of one."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.expirations import NEVER
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.users import ServiceUser
from identity.domain.words import say
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import ConsoleForm, matched
from identity.plugins.console.list_page import ListPage
from identity.plugins.console.pages.service_users import OfServiceUser, key_rows
from identity.plugins.console.places import Place
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey
from identity.services.service_users import ServiceUsers
from identity.storage.paging import Page, PageRequest

EXPIRATION, FOR_EVER, SOURCE, PUBLIC_KEY, SIZE = "expiration_date", "no_expiration", "source", "public_key", "key_size"
#: Commands say when, forms say until which day.
EXPIRES_AT = {"expires_at": EXPIRATION}
_GENERATE, _UPLOAD = "generate", "upload"
_SIZES = ("2048", "3072", "4096")

#: The longest that a form suggests; what the service allows is its own affair.
_TEN_YEARS = timedelta(days=3652)
_YEAR = timedelta(days=365)


class KeyList(OfServiceUser, ListPage):
    """All keys, newest first."""

    template = "console/service_user_keys.html"
    columns = (say("Key id"), say("Expiration date"), say("State"), say("Last used"))
    actions = True
    searchable = False
    heading = say("Keys")
    empty_title = say("No keys yet")
    empty_text = say("A program signs its assertion with the private key; we keep the public key only.")

    def fetch(self, asked: PageRequest) -> Page[ServiceUserKey]:
        """The keys."""
        found: Page[ServiceUserKey] = self.services.service_users.keys(self.user.id, asked)
        return found

    def rows(self, found: Sequence[ServiceUserKey]) -> Sequence[object]:
        """With their state."""
        return key_rows(self, Page(tuple(found)), self.href)


class NewKey(OfServiceUser, ConsoleForm):
    """Expiration date → Add, which shows the key file once (service description §2.2)."""

    template = "console/service_user_key_form.html"
    fields = (EXPIRATION, FOR_EVER, SOURCE, PUBLIC_KEY, SIZE)
    renamed = EXPIRES_AT
    creates = True

    def title(self) -> str:
        """The heading."""
        return say("New key for {name}", name=self.user.display_name)

    def values(self) -> Mapping[str, str]:
        """What is usual."""
        return {EXPIRATION: usual_day(self.services.service_users), SOURCE: _GENERATE, SIZE: _SIZES[0]}

    def show(self) -> Mapping[str, object]:
        """What the date may be, and what is usual."""
        today = self._today
        latest = self.services.service_users.latest_expiration
        t = self.words.t
        return {
            "first": str(today + timedelta(days=1)),
            "last": str(min(last_day(latest), today + _TEN_YEARS) if latest else today + _TEN_YEARS),
            "may_be_for_ever": latest is None,
            "suggestions": [
                (str(today + timedelta(days=30)), t("in 30 days")),
                (str(today + timedelta(days=90)), t("in 90 days")),
                (str(today + _YEAR), t("in 1 year")),
            ],
            "sizes": [(one, one) for one in _SIZES],
            "back": self.href,
        }

    def submit(self, form: Form) -> Response:
        """Add it. The answer is the only one that ever holds the private key: there is nothing to redirect to."""
        expires_at = expiration(form)
        self.use_once(form, ALREADY)
        if form.one(SOURCE) == _UPLOAD:
            self._upload(form, expires_at)
            return self.redirect(self.done(f"{self.href}#keys"))
        size = form.one(SIZE) or _SIZES[0]
        command = self.decoded(AddServiceUserKey, {"expires_at": expires_at, "key_size": _number(size)})
        file = self.services.service_users.add_key(self.user.id, command, by=self.principal)
        shown = {**key_file_box(file, self.user), "back": self.href}
        return self.draw(shown, template="console/service_user_key_added.html")

    def _upload(self, form: Form, expires_at: datetime) -> None:
        text = form.one(PUBLIC_KEY)
        if not text:
            raise Invalid({PUBLIC_KEY: say("Paste the public key: PEM, or a JWK.")})
        command = self.decoded(UploadServiceUserKey, {"public_key": text, "expires_at": expires_at})
        self.services.service_users.upload_key(self.user.id, command, by=self.principal)

    @property
    def _today(self) -> date:
        now: datetime = self.services.now
        return now.date()


ALREADY = say("This was already added; its secret was shown then. Add a new one if you did not save it.")


def expiration(form: Form) -> datetime:
    """The end of the day that was chosen (UTC); NEVER for none. Raises Invalid."""
    text = form.one(EXPIRATION)
    if form.one(FOR_EVER):
        return NEVER
    if not text:
        raise Invalid({EXPIRATION: say("Choose an expiration date, or tick “No expiration date”.")})
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid({EXPIRATION: say("Enter a date such as 2027-12-31.")}) from None
    return datetime.combine(day, time(23, 59, 59), UTC)


def last_day(latest: datetime) -> date:
    """The last day that ends no later (UTC)."""
    return (latest + timedelta(seconds=1)).date() - timedelta(days=1)


def usual_day(users: ServiceUsers) -> str:
    """The day that a form suggests."""
    usual, latest = users.usual_expiration.date(), users.latest_expiration
    return str(usual if latest is None else min(usual, last_day(latest)))


def _number(text: str) -> object:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else text


def key_file_box(file: KeyFile, user: ServiceUser) -> dict[str, object]:
    """The key file as its page shows it: name, content, and the address that downloads it without script."""
    content = file.to_json()
    return {
        "content": content,
        "filename": f"{user.user_name}-{file.key_id[:8]}.json",
        "file": "data:application/json;base64," + base64.b64encode(content.encode()).decode(),
    }


def last_used(moment: datetime | None) -> str:
    """When a key or secret was last used, as a sentence."""
    if moment is None:
        return say("It was never used.")
    return say("Last used {when} UTC.", when=moment.strftime("%Y-%m-%d %H:%M"))


class RemoveKey(OfServiceUser, ConfirmPage):
    """Asks before programs lose access."""

    fields = ()

    @property
    def key(self) -> ServiceUserKey:
        """Which one. Raises NotFound."""
        found: ServiceUserKey = self.services.service_users.key(self.user.id, matched(self, "key"))
        return found

    def question(self) -> str:
        """With its id and whose it is."""
        return say("Remove the key {id} of {name}?", id=self.key.id, name=self.user.display_name)

    def effects(self) -> Sequence[str]:
        """Its live tokens, and when it was last used."""
        key, words = self.key, self.words
        live = self.services.effects.of_key(key.id).live_tokens
        lost: str = say("Programs that use it lose access at once.")
        if live:
            lost = words.tn(
                "Programs that use it lose access at once: its {n} live token stops working.",
                "Programs that use it lose access at once: its {n} live tokens stop working.",
                live,
            )
        return [lost, last_used(key.last_used_at)]

    def label(self) -> str:
        """The button."""
        return say("Remove key")

    def back(self) -> str:
        """To the service user."""
        return f"{self.href}#keys"

    def act(self) -> str:
        """Remove it."""
        self.services.service_users.remove_key(self.user.id, self.key.id, by=self.principal)
        return self.href


_ALL = "/service-users/{service_user}/keys"

PLACES = (
    Place(_ALL, KeyList, "service_user.read", targets.service_user),
    Place(f"{_ALL}/new", NewKey, "service_user.write", targets.service_user),
    Place(f"{_ALL}/{{key}}/delete", RemoveKey, "service_user.write", targets.service_user),
)

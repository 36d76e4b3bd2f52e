"""Keys of a service user: all of them, a new one with its key file shown once, and the end of one."""

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyramid.response import Response

from identity.domain.effects import Removed
from identity.domain.errors import Invalid
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.users import ServiceUser
from identity.domain.words import say, say_many
from identity.http import targets
from identity.pages.forms import Form
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import ConsolePage, matched
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
from identity.plugins.console.fields import Choice, Radio, Text
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.things import OfServiceUser
from identity.services.commands.service_users import AddServiceUserKey, UploadServiceUserKey
from identity.storage.paging import Page, PageRequest

_SOURCE, _PUBLIC_KEY, _SIZE = "source", "public_key", "key_size"
_GENERATE, _UPLOAD = "generate", "upload"
_SIZES = ("2048", "3072", "4096")
_MORE = say("More")
_SIGNS = say("A program signs its assertion with the private key; we keep the public key only.")


class KeyList(OfServiceUser, ListPage):
    """All keys, newest first."""

    below = "/keys"

    columns = (say("Key id"), *COLUMNS)
    actions = True
    searchable = False
    title = say("Keys")
    empty_title = say("No keys yet")
    empty_text = _SIGNS
    section_lead = _SIGNS
    writing, what = "service_user.write", say("key")
    id, all_of_them, comes_first, made_there = "keys", say("All keys …"), True, True

    def fetch(self, asked: PageRequest) -> Page[ServiceUserKey]:
        return self.services.service_users.keys(self.thing.id, asked)

    def cells(self, one: ServiceUserKey) -> Cells:
        href = f"{self.list_href}/{one.id}"
        remove = self.buttons(href, one.id, remove=say("Remove …"), change=False)
        return self.ui.identifier(one.id), *expiration_cells(self, one), remove if self.may(self.writing) else ""


def _sources(page: ConsolePage) -> Sequence[Sequence[object]]:
    t = page.words.t
    return [
        (_GENERATE, t("Generate a key pair and download the key file once"), ""),
        (_UPLOAD, t("Use my own public key"), t("Paste it below. The private key stays with you.")),
    ]


class NewKey(ExpiringForm):
    """Expiration date → Add, which shows the key file once (service description §2.2)."""

    inputs = (
        DateField(
            EXPIRATION,
            say("Expiration date"),
            say("The key works until the end of this day (UTC)."),
            longest=timedelta(days=3652),
            autofocus=True,
        ),
        for_ever_tick(say("Only for keys that you replace by other means.")),
        Radio(_SOURCE, say("Key pair"), options=_sources),
        Text(
            _PUBLIC_KEY,
            say("Public key"),
            say("PEM, or a JWK. RSA with 2048 bits or more."),
            required=False,
            part=_MORE,
            attributes={"rows": 6, "spellcheck": "false", "autocomplete": "off"},
        ),
        Choice(
            _SIZE,
            say("Bits of a generated key"),
            options=lambda _: [(one, one) for one in _SIZES],
            part=_MORE,
        ),
    )
    opened_by = (_SOURCE, _UPLOAD)
    title = say("New key for {name}")
    label = say("Add")

    def values(self) -> Mapping[str, str]:
        return {**super().values(), _SOURCE: _GENERATE, _SIZE: _SIZES[0]}

    def submit(self, form: Form) -> Response:
        """Add it. The answer is the only one that ever holds the private key: there is nothing to redirect to."""
        expires_at = expiration(form)
        self.use_once(form, ALREADY)
        if form.one(_SOURCE) == _UPLOAD:
            self._upload(form, expires_at)
            return self.redirect(self.done(f"{self.href}#keys"))
        size = form.one(_SIZE) or _SIZES[0]
        command = self.decoded(AddServiceUserKey, {"expires_at": expires_at, "key_size": _number(size)})
        file = self.services.service_users.add_key(self.thing.id, command, by=self.principal)
        shown = {**_key_file_box(file, self.thing), "back": self.href}
        return self.draw(shown, template="console/service_user_key_added.html")

    def _upload(self, form: Form, expires_at: datetime) -> None:
        text = form.one(_PUBLIC_KEY)
        if not text:
            raise Invalid({_PUBLIC_KEY: say("Paste the public key: PEM, or a JWK.")})
        command = self.decoded(UploadServiceUserKey, {"public_key": text, "expires_at": expires_at})
        self.services.service_users.upload_key(self.thing.id, command, by=self.principal)


def _number(text: str) -> object:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else text


def _key_file_box(file: KeyFile, user: ServiceUser) -> dict[str, object]:
    """The key file as its page shows it: name, content, and the address that downloads it without script."""
    content = file.to_json()
    return {
        "content": content,
        "filename": f"{user.user_name}-{file.key_id[:8]}.json",
        "file": "data:application/json;base64," + base64.b64encode(content.encode()).decode(),
    }


class RemoveKey(OfServiceUser, ConfirmPage):
    """Asks before programs lose access."""

    below = "#keys"

    title = say("Remove the key {id} of {name}?")
    label = say("Remove key")

    @property
    def key(self) -> ServiceUserKey:
        """Which one. Raises NotFound."""
        return self.services.service_users.key(self.thing.id, matched(self, "key"))

    @property
    def names(self) -> Mapping[str, object]:
        return {"id": self.key.id, "name": self.name}

    @property
    def effects(self) -> Sequence[str]:
        live = self.services.effects(Removed.KEY, self.key.id).live_tokens
        lost = say("Programs that use it lose access at once.")
        if live:
            lost = say_many(
                "Programs that use it lose access at once: its {n} live token stops working.",
                "Programs that use it lose access at once: its {n} live tokens stop working.",
                live,
            )
        return [lost, last_used(self.key.last_used_at)]

    def act(self) -> str:
        self.services.service_users.remove_key(self.thing.id, self.key.id, by=self.principal)
        return self.href


_ALL = "/service-users/{service_user}/keys"

PLACES = (
    Place(_ALL, KeyList, "service_user.read", targets.service_user),
    Place(f"{_ALL}/new", NewKey, "service_user.write", targets.service_user),
    Place(f"{_ALL}/{{key}}/delete", RemoveKey, "service_user.write", targets.service_user),
)

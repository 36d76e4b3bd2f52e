"""A test case for each factor: enrolment without its page, and correct and wrong input for its page."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any

import pyotp
import pytest

from identity import plugin_host
from identity.password_hashing import PasswordHasher
from identity.plugins.passkeys.verification import verify_registration
from identity.plugins.recovery_codes.factor import code_prefix, generate_codes, normalize_code
from identity.testing.browser import Browser
from identity.testing.fixtures import DatabaseFactory
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser
from tests.plugins.passkeys.conftest import options_of
from tests.plugins.passkeys.software_authenticator import SoftwareAuthenticator
from tests.spec import sample_factor_plugin

#: The plugin of an additional factor.
SAMPLE_ENTRY_POINT = EntryPoint(
    "word", "tests.spec.sample_factor_plugin:SampleFactorPlugin", plugin_host.ENTRY_POINT_GROUP
)


class FactorCase:
    """A factor of one user."""

    #: True for a factor that only replaces others, such as recovery codes.
    spare = False
    #: True if it can replace the password.
    alone = False

    def __init__(self, world: World, person: LoginUser) -> None:
        self.world, self.person = world, person
        self.name = next(name for name, item in ROWS.items() if item is type(self))
        value, key = self.set_up()
        with world.transaction_services() as services:
            subject = services.storage.users.find_subject(person.user.id)
            assert subject is not None
            services.factors.enrol(subject, self.name, value, key=key)

    def set_up(self) -> tuple[Mapping[str, Any], str | None]:
        """Its stored data, and its lookup key if it has one."""
        return {}, None

    def right(self, page: Browser) -> dict[str, str]:
        """Form input that proves the factor."""
        raise NotImplementedError

    def wrong(self, page: Browser) -> dict[str, str]:
        """Similar form input that proves nothing."""
        raise NotImplementedError


class TotpFactorCase(FactorCase):
    def set_up(self) -> tuple[Mapping[str, Any], str | None]:
        self.app = pyotp.TOTP(pyotp.random_base32())
        return {"secret": self.app.secret, "step": 0}, None

    def right(self, page: Browser) -> dict[str, str]:
        return {"code": self.app.at(self.world.clock())}

    def wrong(self, page: Browser) -> dict[str, str]:
        near = {self.app.at(self.world.clock(), counter_offset=steps) for steps in (-1, 0, 1)}
        return {"code": next(item for item in ("000000", "111111", "222222", "333333") if item not in near)}


class EmailCodeFactorCase(FactorCase):
    def set_up(self) -> tuple[Mapping[str, Any], str | None]:
        self.address = f"{self.person.user.id}@navy.example"
        with self.world.transaction_services() as services:
            link = services.users.issue_email_link(self.person.user.id, self.address)
            services.users.verify_email(link.rsplit("/", 1)[1], self.person.user.id)
        return {}, None

    def right(self, page: Browser) -> dict[str, str]:
        with self.world.read_only_services() as services:
            queued = services.storage.outbox.list_pending("mail", self.world.clock(), 10_000)
            mails = [json.loads(services.outbox.unseal(message)) for message in queued]
        texts = [mail.get("text", "") for mail in mails if mail["to"] == self.address]
        found = [code for text in texts for code in re.findall(r"^(\d{6})$", text, re.MULTILINE)]
        return {"code": found[-1]}

    def wrong(self, page: Browser) -> dict[str, str]:
        right = self.right(page)["code"]
        return {"code": f"{(int(right) + 1) % 10**6:06}"}


class RecoveryCodeFactorCase(FactorCase):
    spare = True

    def set_up(self) -> tuple[Mapping[str, Any], str | None]:
        self.codes = list(generate_codes())
        hasher: PasswordHasher = self.world.identity.process_state.hasher
        return {"codes": {code_prefix(code): hasher.hash(normalize_code(code)) for code in self.codes}}, None

    def right(self, page: Browser) -> dict[str, str]:
        return {"code": self.codes.pop()}

    def wrong(self, page: Browser) -> dict[str, str]:
        return {"code": self.codes[0][:2] + "00-0000-0000"}


class PasskeyFactorCase(FactorCase):
    alone = True

    def set_up(self) -> tuple[Mapping[str, Any], str | None]:
        self.device = SoftwareAuthenticator()
        party = self.world.app.registry.passkeys
        with self.world.read_only_services() as services:
            subject = services.storage.users.find_subject(self.person.user.id)
            assert subject is not None
        handle, challenge = os.urandom(32), os.urandom(32)
        options = party.creation_options(challenge, subject, handle, (), name="Acme")
        passkey = verify_registration(self.device.create(options), party, challenge, handle)
        return passkey.to_json(), passkey.id_text

    def right(self, page: Browser) -> dict[str, str]:
        return {"answer": self.device.get(options_of(page))}

    def wrong(self, page: Browser) -> dict[str, str]:
        return {"answer": self.device.get(options_of(page), origin="https://evil.example")}


class SampleFactorCase(FactorCase):
    def set_up(self) -> tuple[Mapping[str, Any], str | None]:
        return {"word": sample_factor_plugin.RIGHT}, None

    def right(self, page: Browser) -> dict[str, str]:
        return {"word": sample_factor_plugin.RIGHT}

    def wrong(self, page: Browser) -> dict[str, str]:
        return {"word": "plugh"}


#: Factors by name; a test compares them with those that plugins offer.
ROWS: Mapping[str, type[FactorCase]] = {
    "totp": TotpFactorCase,
    "email_code": EmailCodeFactorCase,
    "recovery_codes": RecoveryCodeFactorCase,
    "passkeys": PasskeyFactorCase,
    "word": SampleFactorCase,
}


@contextmanager
def word_installed() -> Iterator[None]:
    """Installs the plugin of the additional factor."""
    real = plugin_host.entry_points
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugin_host, "entry_points", lambda *, group: [*real(group=group), SAMPLE_ENTRY_POINT])
        yield


def settings_of(databases: DatabaseFactory, storage: str) -> dict[str, str]:
    """Settings of a service with every factor and outgoing mail."""
    return {
        "identity.plugins": f"{databases.new_database_settings(storage)['identity.plugins']} word",
        "identity.smtp.host": "mail.example",
        "identity.smtp.sender": "no-reply@id.example.com",
    }

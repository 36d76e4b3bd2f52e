"""A device that signs its person in by a code, as a client of RFC 8628 behaves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from secrets import randbits
from typing import Any

from identity.domain.users import HumanUser
from identity.testing.browser import Browser
from identity.testing.service_test_client import FORM_CONTENT_TYPE, Credentials, encode_form
from identity.testing.world import World

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
GRANT_TYPES = frozenset({DEVICE_CODE, "refresh_token"})


@dataclass
class Device:
    """It polls no faster than it may, unless a test says otherwise; the clock of the world stands still meanwhile."""

    world: World
    client: Credentials | str
    answer: dict[str, Any] = field(default_factory=dict)
    address: str = field(default_factory=lambda: str(IPv6Address((0x20010DB8 << 96) | randbits(96))))

    def request(self, scope: str | None = "openid", resources: Sequence[str] = ()) -> Any:
        form, headers = self.world.client_credentials(self.client)
        sent = [
            *form.items(),
            *([] if scope is None else [("scope", scope)]),
            *(("resource", item) for item in resources),
        ]
        response = self.world.client.request(
            "POST",
            self.world.client.discovery["device_authorization_endpoint"],
            headers={"Content-Type": FORM_CONTENT_TYPE, **headers},
            body=encode_form(sent),
            environ={"REMOTE_ADDR": self.address},
        )
        if response.status_int == 200:
            self.answer = response.json
            self.world.client.secrets.add(self.answer["device_code"])
        return response

    def start(self, scope: str | None = "openid", resources: Sequence[str] = ()) -> "Device":
        assert self.request(scope, resources).status_int == 200
        return self

    def poll(self, client: Credentials | str | None = None, **changed: str) -> Any:
        form = {"grant_type": DEVICE_CODE, "device_code": self.answer["device_code"], **changed}
        return self.world.post_token_request(client or self.client, form)


def signed_in_browser(world: World, person: HumanUser | None = None) -> Browser:
    browser = Browser(world)
    browser.start_session(person or world.make_human_user())
    return browser


def enter_code(browser: Browser, code: str) -> Any:
    """Type the code on the page for it."""
    browser.open("/device")
    return browser.submit({"user_code": code})


def decide(browser: Browser, device: Device, decision: str = "approve") -> Any:
    """Enter the device's code, and press a button of the page that follows."""
    enter_code(browser, device.answer["user_code"])
    return browser.submit(button=("decision", decision))

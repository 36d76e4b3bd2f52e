"""Device authorization (RFC 8628): people sign in on a television, a printer or a command line by a code that they
enter in a browser of another device.

What could an attacker gain? Three things, and what stands against each:

- *Guess the code of another's device* and connect it to the attacker's account, or read what it requests: a code has
  20^8 values and lives ten minutes. Only signed-in accounts can enter one, and wrong codes are counted for the network
  address, for the account and over all accounts, before the code is looked up.
- *Send their own code to a victim*, who then signs in the attacker's device (RFC 8628 §5.4). No address skips the page
  that names the application, its organization, the code, and where and when the request began. The page warns, and
  nothing happens without its button, whatever the person consented to before.
- *Poll with a stolen device code*: it has 256 random bits, only its digest is stored, and only the client that it was
  issued to can redeem it, once.

What the device gets is decided by the same functions as at the authorization endpoint: roles, scopes, organization,
consent and second factors. A manager who is signed in as a person can approve nothing.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.endpoints import Endpoint
    from identity.api.grants import GrantType
    from identity.api.services import RecordNamespace


class DeviceAuthorizationPlugin:
    """Sign-in on devices without a browser or keyboard (RFC 8628), by a code that people enter under /device."""

    hookspecs = 1

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Requests of devices, by device code, by user code and by the id of their page."""
        self._name_space = namespace

    @hookimpl
    def identity_endpoints(self) -> "Iterable[Endpoint]":
        """The device authorization endpoint."""
        from identity.plugins.device_authorization.endpoint import build_endpoint

        return [build_endpoint(self._name_space)]

    @hookimpl
    def identity_grant_types(self) -> "Iterable[GrantType]":
        """The device code grant."""
        from identity.plugins.device_authorization.grant import DeviceCodeGrant

        return [DeviceCodeGrant(self._name_space)]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Pages to enter the code, to confirm, and for the outcome."""
        from identity.plugins.device_authorization import pages

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.device_authorization:templates")
        pages.add_device_pages(config, self._name_space)

"""Front-channel logout (OpenID Connect Front-Channel Logout 1.0): the browser that signs out notifies the applications.

After a sign-out, one page loads each application's address in a frame, with issuer and session, and then goes on to
where the sign-out leads. Browsers that separate the storage of frames withhold the application's cookies there, so the
back channel is the safer way; a frame proves nothing to the service, and nothing depends on it.

An address in a frame is chosen by managers of the application: the page allows frames of these origins alone, has no
data but the session ids that the applications got before, and cannot be framed itself.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from identity.api.plugins import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.sign_in import LogoutHandler


class FrontChannelLogoutPlugin:
    """Tells applications of a sign-out in the browser, by frames (OpenID Connect Front-Channel Logout)."""

    hookspecs = 1

    @hookimpl
    def identity_logout_handlers(self) -> "Iterable[LogoutHandler]":
        """The page with the frames, before the browser goes on."""
        from identity.plugins.front_channel_logout.pages import FrontChannelLogoutHandler

        return [FrontChannelLogoutHandler()]

    @hookimpl
    def identity_discovery(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """Both members of the specification: each request has issuer and session."""
        return {"frontchannel_logout_supported": True, "frontchannel_logout_session_supported": True}

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """The page with the frames."""
        from identity.plugins.front_channel_logout import pages

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.front_channel_logout:templates")
        pages.add_frames_page(config)

"""/signed-out/applications/{request}: the frames of a sign-out, and the way on."""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode, urlsplit

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.endpoints import Context, Cookie
from identity.api.pages import Page
from identity.api.services import Services
from identity.api.sign_in import LogoutHandler, SignedInAccount, SignInUnavailable

_PATH = f"{Page.SIGNED_OUT_PATH}/applications"
#: The names under which the page's request is stored.
_FRAMES, _TARGET = "frames", "return_to"
#: How long the page waits for the frames.
_SECONDS = 3
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " frame-ancestors 'none'; form-action 'self'; frame-src {origins}"
)


class FrontChannelLogoutHandler(LogoutHandler):
    """Sends the browser to the page with the frames, if an application of the ended sessions has an address for it."""

    name = "front_channel"

    def handles(self, account: SignedInAccount, services: Services) -> bool:
        return False

    def begin_logout(self, account: SignedInAccount, request_id: str, services: Services) -> str:
        raise ValueError("no session of this handler is signed out elsewhere")

    def precede_return(
        self, accounts: Sequence[SignedInAccount], return_to: str, context: Context
    ) -> tuple[str, tuple[Cookie, ...]]:
        """The page for the applications of these sessions, which have ended in this transaction."""
        sessions = {account.session.id: account.subject.user.id for account in accounts}
        user_ids = tuple(dict.fromkeys(sessions.values()))
        frames = [
            _frame_url(client.application.frontchannel_logout_uri, context.issuer, session_id)
            for _, session_id, client in context.services.storage.tokens.list_logout_clients(user_ids, context.now)
            if session_id in sessions and client.is_active and client.application.frontchannel_logout_uri
        ]
        if not frames:
            return return_to, ()
        request_id, cookie = context.store_request({_FRAMES: json.dumps(frames), _TARGET: return_to})
        return f"{context.settings.login_url}{_PATH}/{request_id}", (cookie,)


def _frame_url(uri: str, issuer: str, session_id: str) -> str:
    """The address with issuer and session (§2)."""
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode({'iss': issuer, 'sid': session_id})}"


class LogoutFramesPage(Page):
    """Works without a script: the browser goes on by itself after three seconds, or by the link."""

    template = "front_channel_logout/frames.html"

    def get(self) -> Response:
        """Only the browser that signed out gets it; to others it is the page that confirms a sign-out."""
        request_id = self.request.matchdict["request"]
        try:
            pending = self.request.services.sign_ins.find(
                request_id, self.request.browser_state.sign_ins.get(request_id)
            )
            frames, return_to = json.loads(pending.parameters[_FRAMES]), pending.parameters[_TARGET]
        except (SignInUnavailable, KeyError):
            return self.redirect(self.SIGNED_OUT_PATH)
        variables: Mapping[str, object] = {
            "frames": frames,
            "return_to": return_to,
            "seconds": _SECONDS,
            "home": self.ACCOUNT_PATH,
        }
        origins = sorted({f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, frames)})
        return self.render(
            variables,
            headers={
                "Content-Security-Policy": _POLICY.format(origins=" ".join(origins)),
                "Refresh": f"{_SECONDS}; url={return_to}",
            },
        )


def add_frames_page(config: Configurator) -> None:
    config.add_page(
        "signed_out.applications", f"{_PATH}/{{request}}", LogoutFramesPage, permission=NO_PERMISSION_REQUIRED
    )

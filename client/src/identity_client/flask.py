"""Sign-in and token checks for Flask."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import Blueprint, Flask, Response, abort, g, make_response, redirect, request, session, url_for
from werkzeug.wrappers import Response as BaseResponse

from identity_client.bearer import bearer_token
from identity_client.client import IdentityClient
from identity_client.errors import IdentityError
from identity_client.sign_in import SignedIn, User, local_path, store_user, stored_id_token, stored_user
from identity_client.tokens import AccessToken

P = ParamSpec("P")
R = TypeVar("R")


class Api:
    """``@api.require()`` and ``@api.require("reader")`` check the bearer token; ``api.token`` is the token then."""

    def __init__(self, client: IdentityClient) -> None:
        self._client = client

    @property
    def token(self) -> AccessToken:
        """The token of the current request, in views behind ``require``."""
        token: AccessToken = g.identity_token
        return token

    def require(self, *roles: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Respond 401 without a valid token, 403 without one of the roles, 503 if the service cannot be reached."""

        def decorate(view: Callable[P, R]) -> Callable[P, R]:
            @wraps(view)
            def checked(*args: P.args, **kwargs: P.kwargs) -> R:
                try:
                    token = self._client.check_access_token(bearer_token(request.headers.get("Authorization")))
                    if roles:
                        token.require_role(*roles)
                except IdentityError as error:
                    abort(_response(error))
                g.identity_token = token
                return view(*args, **kwargs)

            return checked

        return decorate


class SignIn:
    """Pages ``/sign-in``, ``/callback`` and ``/sign-out``. The application needs a ``secret_key``.

    ``redirect_uri`` is the public address of the callback, where it differs from the one that the application sees.
    After signing out, users come to ``home``, a path whose address is registered as post-logout redirect URI.
    """

    def __init__(
        self,
        client: IdentityClient,
        app: Flask | None = None,
        *,
        home: str = "/",
        redirect_uri: str | None = None,
        on_sign_in: Callable[[SignedIn], None] | None = None,
    ) -> None:
        self._client, self._home, self._redirect_uri, self._on_sign_in = client, home, redirect_uri, on_sign_in
        self.blueprint = Blueprint("identity", __name__)
        self.blueprint.add_url_rule("/sign-in", "sign_in", self._begin)
        self.blueprint.add_url_rule("/callback", "callback", self._finish)
        self.blueprint.add_url_rule("/sign-out", "sign_out", self._sign_out)
        if app is not None:
            app.register_blueprint(self.blueprint)

    @property
    def user(self) -> User | None:
        """Who is signed in; None if nobody is."""
        return stored_user(session, self._client.project_id)

    def require(self, view: Callable[P, R]) -> Callable[P, R]:
        """Without a signed-in user, redirect pages to the sign-in, and respond 401 to other requests."""

        @wraps(view)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if self.user is None:
                if request.method != "GET" or "text/html" not in request.headers.get("Accept", ""):
                    abort(401)
                here = request.full_path if request.query_string else request.path
                abort(redirect(url_for("identity.sign_in", next=local_path(request.script_root + here)), 303))
            return view(*args, **kwargs)

        return checked

    def _begin(self) -> BaseResponse:
        callback = self._redirect_uri or url_for("identity.callback", _external=True)
        try:
            address = self._client.begin_sign_in(session, callback, request.args.get("next", self._home))
        except IdentityError as error:
            return _response(error)
        return redirect(address, 303)

    def _finish(self) -> BaseResponse:
        try:
            signed_in = self._client.finish_sign_in(session, request.args)
        except IdentityError as error:
            return _response(error)
        session.clear()
        store_user(session, signed_in)
        if self._on_sign_in is not None:
            self._on_sign_in(signed_in)
        return redirect(signed_in.return_to, 303)

    def _sign_out(self) -> BaseResponse:
        id_token, user = stored_id_token(session), self.user
        session.clear()
        if user is None:
            return redirect(self._home, 303)
        try:
            return redirect(self._client.sign_out_url(request.host_url.rstrip("/") + self._home, id_token), 303)
        except IdentityError as error:
            return _response(error)


def _response(error: IdentityError) -> Response:
    response = make_response(error.detail, error.status)
    response.headers.update(error.headers)
    response.mimetype = "text/plain"
    return response

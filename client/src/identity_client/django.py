"""Sign-in and token checks for Django, configured by the setting ``IDENTITY``.

``path("", include("identity_client.django"))`` adds the pages ``sign-in``, ``callback`` and ``sign-out``. The subject
of the ID token becomes the user name in Django's table, so that ``@login_required`` and permissions work as usual.

``IDENTITY`` is a dict with the parameters of ``IdentityClient``, such as ``issuer``, ``client_id``, ``client_secret``
and ``project_id``, and optionally:

- ``home``: the path to come to after signing out, whose address is registered as post-logout redirect URI;
- ``redirect_uri``: the public address of the callback, where it differs from the one that the site sees;
- ``on_sign_in``: the dotted path of a function that is called with request, user and ``SignedIn``, for example to set
  ``is_staff`` by a role.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model, login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.module_loading import import_string

from identity_client.bearer import bearer_token
from identity_client.client import IdentityClient
from identity_client.errors import IdentityError, SignInFailed
from identity_client.sign_in import SignedIn, store_user, stored_id_token

_OWN_SETTINGS = ("home", "redirect_uri", "on_sign_in")


@cache
def client() -> IdentityClient:
    """The client of this site."""
    return IdentityClient(**{name: value for name, value in settings.IDENTITY.items() if name not in _OWN_SETTINGS})


def require_token(*roles: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for views of an API, which respond 401 without a valid token, 403 without one of the roles, and 503
    if the service cannot be reached. ``request.identity_token`` is the token.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            try:
                token = client().check_access_token(bearer_token(request.headers.get("Authorization")))
                if roles:
                    token.require_role(*roles)
            except IdentityError as error:
                return _response(error)
            request.identity_token = token
            return view(request, *args, **kwargs)

        # A page of another site cannot send the header, so that there is nothing to protect against.
        checked.csrf_exempt = True  # type: ignore[attr-defined]
        return checked

    return decorate


def sign_in(request: HttpRequest) -> HttpResponse:
    callback_url = settings.IDENTITY.get("redirect_uri") or request.build_absolute_uri(reverse("callback"))
    try:
        address = client().begin_sign_in(request.session, callback_url, request.GET.get("next", _home()))
    except IdentityError as error:
        return _response(error)
    return HttpResponseRedirect(address)


def callback(request: HttpRequest) -> HttpResponse:
    try:
        signed_in = client().finish_sign_in(request.session, request.GET)
        user = _update_user(request, signed_in)
    except IdentityError as error:
        return _response(error)
    # A new session, even if the same user was signed in before.
    request.session.flush()
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    store_user(request.session, signed_in)
    return HttpResponseRedirect(signed_in.return_to)


def sign_out(request: HttpRequest) -> HttpResponse:
    id_token, is_signed_in = stored_id_token(request.session), request.user.is_authenticated
    logout(request)
    if not is_signed_in:
        return HttpResponseRedirect(_home())
    try:
        return HttpResponseRedirect(client().sign_out_url(request.build_absolute_uri(_home()), id_token))
    except IdentityError as error:
        return _response(error)


def _home() -> str:
    return str(settings.IDENTITY.get("home", "/"))


def _update_user(request: HttpRequest, signed_in: SignedIn) -> Any:
    """The user in Django's table. Raises SignInFailed if it was deactivated there."""
    claims, model = signed_in.user.claims, get_user_model()
    members = {
        "first_name": str(claims.get("given_name", ""))[:150],
        "last_name": str(claims.get("family_name", ""))[:150],
        "email": (signed_in.user.email or "")[:254],
    }
    known = {member.name for member in model._meta.get_fields()}
    user, created = model.objects.update_or_create(
        **{model.USERNAME_FIELD: signed_in.user.id},
        defaults={name: value for name, value in members.items() if name in known},
    )
    if created:
        user.set_unusable_password()
        user.save()
    if not user.is_active:
        raise SignInFailed("the user is deactivated in Django's table", "access_denied")
    on_sign_in = settings.IDENTITY.get("on_sign_in")
    if on_sign_in:
        import_string(on_sign_in)(request, user, signed_in)
    return user


def _response(error: IdentityError) -> HttpResponse:
    return HttpResponse(error.detail, status=error.status, headers=dict(error.headers), content_type="text/plain")


urlpatterns = [
    path("sign-in", sign_in, name="sign-in"),
    path("callback", callback, name="callback"),
    path("sign-out", sign_out, name="sign-out"),
]

"""Pages of the site."""

from authlib.integrations.django_client import OAuth, OAuthError
from django.contrib.auth import get_user_model, login, logout
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

oauth = OAuth()
oauth.register("identity")


def home(request):
    if not request.user.is_authenticated:
        return HttpResponse("<p>You are not signed in.</p><a href='/sign-in'>Sign in</a>")
    return HttpResponse(format_html("<p>Hello {}.</p><a href='/sign-out'>Sign out</a>", request.user.get_full_name()))


@login_required
def notes(request):
    return HttpResponse(format_html("<p>Notes of {}.</p>", request.user.get_full_name()))


def sign_in(request):
    return oauth.identity.authorize_redirect(request, request.build_absolute_uri(reverse("callback")))


def callback(request):
    try:
        token = oauth.identity.authorize_access_token(request)
    except OAuthError as error:
        return HttpResponse(format_html("<p>You are not signed in: {}.</p>", error.error), status=400)
    claims = oauth.identity.userinfo(token=token)
    # The subject never changes; names and email addresses do.
    user, _ = get_user_model().objects.update_or_create(
        username=claims["sub"],
        defaults={"first_name": claims.get("given_name", ""), "last_name": claims.get("family_name", "")},
    )
    login(request, user)
    request.session["id_token"] = token["id_token"]
    return redirect("home")


def sign_out(request):
    id_token = request.session.get("id_token")
    logout(request)
    if id_token is None:
        return redirect("home")
    return oauth.identity.logout_redirect(request, request.build_absolute_uri(reverse("home")), id_token_hint=id_token)

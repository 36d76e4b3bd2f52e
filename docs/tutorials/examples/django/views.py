"""Pages of the site."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.utils.html import format_html


def home(request):
    if not request.user.is_authenticated:
        return HttpResponse("<p>You are not signed in.</p><a href='/sign-in'>Sign in</a>")
    return HttpResponse(format_html("<p>Hello {}.</p><a href='/sign-out'>Sign out</a>", request.user.get_full_name()))


@login_required
def notes(request):
    return HttpResponse(format_html("<p>Notes of {}.</p>", request.user.get_full_name()))

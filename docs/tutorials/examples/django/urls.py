"""URLs of the site."""

import views
from django.urls import path

urlpatterns = [
    path("", views.home, name="home"),
    path("notes", views.notes, name="notes"),
    path("sign-in", views.sign_in, name="sign-in"),
    path("callback", views.callback, name="callback"),
    path("sign-out", views.sign_out, name="sign-out"),
]

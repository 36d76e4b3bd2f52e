"""URLs of the site."""

import views
from django.urls import include, path

urlpatterns = [
    path("", views.home, name="home"),
    path("notes", views.notes, name="notes"),
    # sign-in, callback and sign-out
    path("", include("identity_client.django")),
]

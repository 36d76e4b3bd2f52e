"""Settings of a Django site whose users sign in with identity."""

import os
import secrets
from pathlib import Path

DEBUG = True
SECRET_KEY = os.environ.get("SESSION_SECRET", secrets.token_hex(32))
ROOT_URLCONF = "urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", Path(__file__).parent / "site.sqlite"),
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Views behind @login_required redirect users to identity.
LOGIN_URL = "sign-in"

IDENTITY = {
    "issuer": os.environ["ISSUER"],
    "client_id": os.environ["CLIENT_ID"],
    "client_secret": os.environ["CLIENT_SECRET"],
}

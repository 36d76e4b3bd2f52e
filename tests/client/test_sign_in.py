"""identity_client signs users in with FastAPI, Starlette, Flask and Django, and protects their APIs, all alike."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Annotated, Any, Protocol
from urllib.parse import parse_qs, urlsplit

import django
import fastapi
import flask
import httpx
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.decorators import login_required
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client as DjangoClient
from django.urls import include
from django.urls import path as django_path
from hypothesis import given
from hypothesis import strategies as st
from identity_client import AccessToken, AsyncIdentityClient, IdentityClient, User
from identity_client import fastapi as for_fastapi
from identity_client import flask as for_flask
from identity_client import starlette as for_starlette
from identity_client.sign_in import local_path
from identity_client.testing import TestIssuer, role_claim
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

PROJECT = "0198-project"
MEMBERS: dict[str, Any] = {
    "issuer": "https://identity.test",
    "client_id": "shop",
    "client_secret": "secret",
    "project_id": PROJECT,
}
SECRET = "0123456789abcdef0123456789abcdef"


class ClientPage(Protocol):
    status_code: int
    headers: Any
    text: str


#: Sends a GET request of one browser: path and headers.
Get = Callable[..., ClientPage]


def fastapi_application() -> Get:
    client = AsyncIdentityClient(**MEMBERS)
    sign_in, api, app = for_fastapi.SignIn(client), for_fastapi.Api(client), fastapi.FastAPI()
    app.add_middleware(SessionMiddleware, secret_key=SECRET)
    app.include_router(sign_in.router)

    @app.get("/")
    def home(user: Annotated[User | None, fastapi.Depends(sign_in.optional_user)]) -> str:
        return "nobody" if user is None else f"{user.name} {user.email} {sorted(user.roles)}"

    @app.get("/notes")
    def notes(user: Annotated[User, fastapi.Depends(sign_in.user)]) -> str:
        return f"notes of {user.id}"

    @app.get("/api")
    def read(token: Annotated[AccessToken, fastapi.Depends(api.token)]) -> str:
        return token.subject

    @app.get("/api/admin")
    def administer(token: Annotated[AccessToken, fastapi.Depends(api.require("admin"))]) -> str:
        return token.subject

    return starlette_browser(app)


def starlette_application() -> Get:
    client = AsyncIdentityClient(**MEMBERS)
    sign_in, api = for_starlette.SignIn(client), for_starlette.Api(client)

    async def home(request: Request) -> Response:
        user = sign_in.optional_user(request)
        return PlainTextResponse("nobody" if user is None else f"{user.name} {user.email} {sorted(user.roles)}")

    async def notes(request: Request) -> Response:
        return PlainTextResponse(f"notes of {sign_in.user(request).id}")

    async def read(request: Request) -> Response:
        return JSONResponse((await api.token(request)).subject)

    async def administer(request: Request) -> Response:
        return JSONResponse((await api.token(request, "admin")).subject)

    routes = [Route("/", home), Route("/notes", notes), Route("/api", read), Route("/api/admin", administer)]
    middleware = [Middleware(SessionMiddleware, secret_key=SECRET)]
    return starlette_browser(Starlette(routes=[*routes, *sign_in.routes], middleware=middleware))


def starlette_browser(app: Any) -> Get:
    browser = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    return lambda path, **headers: asyncio.run(browser.get(path, headers=headers))


def flask_application() -> Get:
    app = flask.Flask(__name__)
    app.secret_key = SECRET
    client = IdentityClient(**MEMBERS)
    sign_in, api = for_flask.SignIn(client, app), for_flask.Api(client)

    @app.get("/")
    def home() -> str:
        user = sign_in.user
        return "nobody" if user is None else f"{user.name} {user.email} {sorted(user.roles)}"

    @app.get("/notes")
    @sign_in.require
    def notes() -> str:
        assert sign_in.user is not None
        return f"notes of {sign_in.user.id}"

    @app.get("/api")
    @api.require()
    def read() -> str:
        return api.token.subject

    @app.get("/api/admin")
    @api.require("admin")
    def administer() -> str:
        return api.token.subject

    browser = app.test_client()
    return lambda path, **headers: browser.get(path, headers=headers)  # type: ignore[return-value]


def django_home(request: Any) -> HttpResponse:
    return HttpResponse(
        f"{request.user.first_name} {request.user.email}" if request.user.is_authenticated else "nobody"
    )


@login_required
def django_notes(request: Any) -> HttpResponse:
    return HttpResponse(f"notes of {request.user.username}")


def django_read(request: Any) -> HttpResponse:
    return HttpResponse(request.identity_token.subject)


urlpatterns: list[Any] = []


def on_django_sign_in(request: Any, user: Any, signed_in: Any) -> None:
    user.is_staff = "admin" in signed_in.user.roles
    user.save()


@pytest.fixture(scope="module")
def django_site() -> None:
    """Django can be configured once for the process."""
    django_settings.configure(
        ALLOWED_HOSTS=["localhost"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        IDENTITY={**MEMBERS, "on_sign_in": f"{__name__}.on_django_sign_in"},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
        LOGIN_URL="sign-in",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        ROOT_URLCONF=__name__,
        SECRET_KEY=SECRET,
    )
    django.setup()
    call_command("migrate", verbosity=0)
    from identity_client import django as for_django

    urlpatterns[:] = [
        django_path("", django_home),
        django_path("notes", django_notes),
        django_path("api", for_django.require_token()(django_read)),
        django_path("api/admin", for_django.require_token("admin")(django_read)),
        django_path("", include("identity_client.django")),
    ]


def django_application() -> Get:
    from identity_client import django as for_django

    for_django.client.cache_clear()
    browser = DjangoClient(SERVER_NAME="localhost")

    def get(path: str, **headers: str) -> Any:
        response = browser.get(path, headers=headers)
        response.text = response.content.decode()
        return response

    return get


FRAMEWORKS = {
    "fastapi": fastapi_application,
    "starlette": starlette_application,
    "flask": flask_application,
    "django": django_application,
}


@pytest.fixture(params=FRAMEWORKS)
def get(request: pytest.FixtureRequest, identity_issuer: TestIssuer) -> Get:
    if request.param == "django":
        request.getfixturevalue("django_site")
    return FRAMEWORKS[request.param]()


def path_of(page: ClientPage) -> str:
    """Where a redirect leads within the application."""
    parts = urlsplit(page.headers["Location"])
    assert page.status_code in (302, 303)
    assert parts.netloc in ("", "localhost")
    return parts._replace(scheme="", netloc="").geturl()


def path_and_query(url: str) -> str:
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


def test_sign_in_and_out(get: Get, identity_issuer: TestIssuer) -> None:
    assert "nobody" in get("/").text
    to_service = get("/sign-in")
    sent = parse_qs(urlsplit(to_service.headers["Location"]).query)
    assert sent["redirect_uri"] == ["http://localhost/callback"]
    assert sent["client_id"] == ["shop"]
    assert sent["code_challenge_method"] == ["S256"]
    claims = {"name": "Anna Example", "given_name": "Anna", "email": "anna@example.com", "email_verified": True}
    claims |= role_claim(PROJECT, ["reader"])
    callback = identity_issuer.approve(to_service.headers["Location"], subject="anna", **claims)
    assert path_of(get(path_and_query(callback))) == "/"
    assert "Anna" in get("/").text
    assert "anna@example.com" in get("/").text
    assert get(path_and_query(callback)).status_code == 400, "a callback works once"
    signed_out = urlsplit(get("/sign-out").headers["Location"])
    assert signed_out.path == "/oidc/v1/end_session"
    assert parse_qs(signed_out.query)["post_logout_redirect_uri"] == ["http://localhost/"]
    assert "id_token_hint" in parse_qs(signed_out.query)
    assert "nobody" in get("/").text
    assert path_of(get("/sign-out")) == "/"


def test_protected_page_leads_through_the_sign_in_and_back(get: Get, identity_issuer: TestIssuer) -> None:
    sign_in = path_of(get("/notes?page=2", Accept="text/html"))
    assert sign_in.startswith("/sign-in?next=")
    callback = identity_issuer.approve(get(sign_in).headers["Location"], subject="anna")
    assert path_of(get(path_and_query(callback))) == "/notes?page=2"
    assert "notes of anna" in get("/notes?page=2", Accept="text/html").text


@pytest.mark.parametrize("target", ["https://evil.test/", "//evil.test/", "/\\evil.test", "/\t/evil.test", "evil"])
def test_return_address_stays_in_the_application(get: Get, identity_issuer: TestIssuer, target: str) -> None:
    to_service = get(f"/sign-in?next={target.replace(chr(9), '%09')}").headers["Location"]
    assert path_of(get(path_and_query(identity_issuer.approve(to_service)))) == "/"


def test_unverified_email_is_not_used(get: Get, identity_issuer: TestIssuer) -> None:
    to_service = get("/sign-in").headers["Location"]
    callback = identity_issuer.approve(to_service, email="other@example.com", email_verified=False)
    get(path_and_query(callback))
    assert "nobody" not in get("/").text
    assert "other@example.com" not in get("/").text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "foreign"),
        ("state", None),
        ("iss", "https://other.test"),
        ("iss", None),
        ("code", "stolen"),
        ("code", None),
    ],
)
def test_callback_that_is_refused(get: Get, identity_issuer: TestIssuer, name: str, value: str | None) -> None:
    callback = urlsplit(identity_issuer.approve(get("/sign-in").headers["Location"]))
    parameters = {key: values[0] for key, values in parse_qs(callback.query).items()} | {name: value}
    query = "&".join(f"{key}={item}" for key, item in parameters.items() if item is not None)
    assert get(f"/callback?{query}").status_code == 400
    assert "nobody" in get("/").text


def test_callback_without_a_sign_in_of_this_browser_is_refused(get: Get, identity_issuer: TestIssuer) -> None:
    other_browser = IdentityClient(**MEMBERS)
    callback = identity_issuer.approve(other_browser.begin_sign_in({}, "http://localhost/callback"))
    assert get(path_and_query(callback)).status_code == 400
    assert "nobody" in get("/").text


def test_denied_sign_in_names_the_error(get: Get, identity_issuer: TestIssuer) -> None:
    denied = get(path_and_query(identity_issuer.deny(get("/sign-in").headers["Location"])))
    assert denied.status_code == 400
    assert "access_denied" in denied.text


def test_several_tabs_sign_in(get: Get, identity_issuer: TestIssuer) -> None:
    locations = [get(f"/sign-in?next=/{number}").headers["Location"] for number in range(3)]
    assert path_of(get(path_and_query(identity_issuer.approve(locations[0])))) == "/0"


def test_sign_in_while_the_service_is_down(get: Get, identity_issuer: TestIssuer) -> None:
    identity_issuer.is_available = False
    response = get("/sign-in")
    assert response.status_code == 503
    assert response.headers["Retry-After"]


def test_api_checks_token_and_role(get: Get, identity_issuer: TestIssuer) -> None:
    def bearer(**members: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {identity_issuer.access_token(**{'project_id': PROJECT} | members)}"}

    missing = get("/api")
    assert (missing.status_code, missing.headers["WWW-Authenticate"]) == (401, "Bearer")
    for refused in (bearer(project_id="0199"), bearer(lifetime=-60), {"Authorization": "Bearer a b"}):
        response = get("/api", **refused)
        assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
    assert get("/api", Authorization="Basic YTpi").status_code == 401
    allowed = get("/api", **bearer(subject="anna"))
    assert (allowed.status_code, allowed.text.strip('"')) == (200, "anna")
    assert get("/api/admin", **bearer(roles=["reader"])).status_code == 403
    assert get("/api/admin", **bearer(roles=["admin"])).status_code == 200
    identity_issuer.is_available = False
    assert get("/api", **bearer()).status_code == 503


def test_deactivated_django_user_stays_out(django_site: None, identity_issuer: TestIssuer) -> None:
    from django.contrib.auth import get_user_model

    get = django_application()
    callback = identity_issuer.approve(
        get("/sign-in").headers["Location"], subject="u1", **role_claim(PROJECT, ["admin"])
    )
    get(path_and_query(callback))
    user = get_user_model().objects.get(username="u1")
    assert user.is_staff
    assert not user.has_usable_password()
    get("/sign-out")
    user.is_active = False
    user.save()
    assert (
        get(path_and_query(identity_issuer.approve(get("/sign-in").headers["Location"], subject="u1"))).status_code
        == 400
    )
    assert "nobody" in get("/").text


class TestIdToken:
    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "other"},
            {"aud": ["shop", "other"]},
            {"azp": "other"},
            {"nonce": "other"},
            {"nonce": None},
            {"iss": "https://other.test"},
            {"exp": 1_700_000_000},
            {"sub": "other"},
            {"at_hash": "other"},
            {"iat": None},
        ],
        ids=str,
    )
    def test_id_token_that_is_refused(self, identity_issuer: TestIssuer, claims: dict[str, Any]) -> None:
        client, session = IdentityClient(**MEMBERS), {}
        callback = identity_issuer.approve(client.begin_sign_in(session, "http://localhost/callback"))
        identity_issuer.id_token_claims = claims
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(callback).query).items()}
        with pytest.raises(Exception, match=r"ID token|userinfo") as refused:
            client.finish_sign_in(session, parameters)
        assert type(refused.value).__name__ == "SignInFailed"

    def test_access_token_is_no_id_token(self, identity_issuer: TestIssuer) -> None:
        client, session = IdentityClient(**MEMBERS), {}
        callback = identity_issuer.approve(client.begin_sign_in(session, "http://localhost/callback"))
        identity_issuer.id_token_type = "at+jwt"
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(callback).query).items()}
        with pytest.raises(Exception, match="not an ID token"):
            client.finish_sign_in(session, parameters)


def test_session_cookie_stays_small_with_large_claims(identity_issuer: TestIssuer) -> None:
    get = starlette_application()
    claims = {"name": "Anna", "address": {"street": "x" * 5000}}
    response = get(path_and_query(identity_issuer.approve(get("/sign-in").headers["Location"], **claims)))
    (cookie,) = response.headers.get_list("set-cookie")
    assert len(cookie) < 4000
    stored = json.loads(base64.b64decode(cookie.partition("=")[2].split(".")[0] + "=="))
    assert set(stored) == {"identity"}
    assert "access_token" not in json.dumps(stored)


@given(st.text(max_size=20) | st.text("/\\.:@?#\t\n e", max_size=12).map("/".__add__))
def test_local_path_never_leaves_the_host(path: str) -> None:
    # As browsers read a URL: without tabs and line feeds, and with backslashes as slashes.
    path_seen = local_path(path).translate({9: None, 10: None, 13: None}).replace("\\", "/")
    assert path_seen.startswith("/")
    assert not path_seen.startswith("//")

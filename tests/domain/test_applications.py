from datetime import UTC, datetime

import pytest

from identity.domain.applications import Application, ApplicationType, redirect_uri_error, web_origin


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/cb",
        "https://app.example:8443/cb?x=1",
        "http://localhost:3000/cb",
        "http://127.0.0.1/cb",
        "http://[::1]:9/cb",
    ],
)
def test_addresses_of_web_applications(uri: str) -> None:
    assert redirect_uri_error(uri, type=ApplicationType.WEB) is None


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/cb",
        "app.example/cb",
        "https://app.example/cb#x",
        "https://app.example/cb#",
        "https://user@app.example/cb",
        "https://*.app.example/cb",
        "https://app.example\\@evil.example/",
        "https://app.example/c b",
        "https://app.example/\x00",
        "https://app.example/ü",
        "http://app.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "com.example.app:/cb",
        "https://[::1/cb",
        "https://app.example:99999/cb",
        "https://" + "x" * 2000,
    ],
)
def test_unsafe_redirect_uris_are_refused(uri: str) -> None:
    assert redirect_uri_error(uri, type=ApplicationType.WEB)


def test_native_application_may_own_a_scheme() -> None:
    assert redirect_uri_error("com.example.app:/cb", type=ApplicationType.NATIVE) is None
    assert redirect_uri_error("example:/cb", type=ApplicationType.NATIVE)


def test_development_switch_allows_plain_http() -> None:
    assert redirect_uri_error("http://app.test/cb", type=ApplicationType.WEB, development=True) is None


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_application(*uris: str, type: ApplicationType = ApplicationType.WEB) -> Application:
    return Application(
        id="c", project_id="p", name="App", type=type, created_at=NOW, changed_at=NOW, redirect_uris=uris
    )


@pytest.mark.parametrize(
    ("uri", "origin"),
    [
        ("https://app.example/cb?x", "https://app.example"),
        ("https://APP.example:443/cb", "https://app.example"),
        ("https://app.example:8443", "https://app.example:8443"),
        ("http://localhost:80/cb", "http://localhost"),
        ("http://[::1]:3000/cb", "http://[::1]:3000"),
        ("com.example.app:/cb", None),
    ],
)
def test_web_origins(uri: str, origin: str | None) -> None:
    assert web_origin(uri) == origin
    assert make_application(uri).web_origins == (frozenset() if origin is None else {origin})

"""All endpoints over TLS, as the certification suite reaches a provider, with a third-party client."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
from bs4 import BeautifulSoup

from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import PASSWORD, set_password
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import World
from tests.http_server import loopback_socket, running_https_server, self_signed_certificate

pytestmark = pytest.mark.storages("sqlite")  # the suite is independent of the storage


@pytest.fixture
def served(
    database_factory: DatabaseFactory, key_pool: RsaKeyPool, storage_name: str, tmp_path: Path
) -> Iterator[tuple[World, requests.Session]]:
    """A service behind TLS, as in production, and a client that trusts its certificate."""
    certificate = self_signed_certificate(tmp_path)
    bound = loopback_socket()
    issuer = f"https://localhost:{bound.getsockname()[1]}"
    settings = database_factory.new_database_settings(storage_name) | {"identity.issuer_url": issuer}
    world = World(settings, clock=TickingClock(), key_pool=key_pool)
    world.bootstrap()
    with running_https_server(world.app, bound, certificate), requests.Session() as session:
        session.verify = str(certificate)
        # Otherwise a CA bundle from the environment would take precedence.
        session.trust_env = False
        yield world, session
    world.close()
    database_factory.drop(settings)


def fields(page: requests.Response) -> dict[str, str]:
    """Initial field values of the page's form."""
    form = BeautifulSoup(page.text, "html.parser").find("form", id="page-form")
    return {item["name"]: item.get("value", "") for item in form.find_all("input") if item.get("name")}


def submit(session: requests.Session, page: requests.Response, typed: dict[str, str], *, leave: bool) -> Any:
    """Fill in the form; ``leave`` stops at the redirects after it."""
    form = BeautifulSoup(page.text, "html.parser").find("form", id="page-form")
    address = urljoin(page.url, form.get("action") or page.url)
    headers = {"Origin": "{0.scheme}://{0.netloc}".format(urlsplit(page.url)), "Sec-Fetch-Site": "same-origin"}
    return session.post(address, data=fields(page) | typed, headers=headers, allow_redirects=not leave, timeout=30)


@pytest.mark.thorough
@pytest.mark.shows("1.1")
def test_flows_work_over_tls(served: tuple[World, requests.Session]) -> None:
    world, session = served
    party = RelyingParty.register(world, redirect_uri="https://localhost:1/cb")
    login_name = set_password(world, world.make_human_user())

    # Discovery and keys.
    answer = session.get(f"{world.issuer}/.well-known/openid-configuration", timeout=30)
    discovery = answer.json()
    assert discovery["issuer"] == world.issuer
    assert "max-age=" in answer.headers["Strict-Transport-Security"]
    assert session.get(discovery["jwks_uri"], timeout=30).json()["keys"]

    # The user signs in on the pages; cookies are restricted to https and this host.
    authorization = party.new_request(scope="openid profile offline_access", response_mode="query")
    page = session.get(authorization.url, timeout=30)
    assert page.url.startswith(f"{world.issuer}/login/")
    page = submit(session, page, {"login_name": login_name}, leave=False)
    done = submit(session, page, {"password": PASSWORD}, leave=True)
    answer = session.get(urljoin(page.url, done.headers["Location"]), allow_redirects=False, timeout=30)
    assert answer.headers["Location"].startswith(f"{party.redirect_uri}?")
    assert [cookie.name for cookie in session.cookies if cookie.name.startswith("__Host-session-")]
    for cookie in session.cookies:
        assert cookie.name.startswith("__Host-")
        assert cookie.secure
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "Lax"

    # The application redeems the code and fetches userinfo.
    members = {name: value for name, [value] in parse_qs(urlsplit(answer.headers["Location"]).query).items()}
    assert (members["state"], members["iss"]) == (authorization.parameters["state"], world.issuer)
    form = {
        "grant_type": "authorization_code",
        "code": members["code"],
        "redirect_uri": party.redirect_uri,
        "code_verifier": authorization.verifier,
    }
    headers = {"Authorization": party.credentials.header}
    tokens = session.post(discovery["token_endpoint"], data=form, headers=headers, timeout=30).json()
    claims = party.check_id_token(tokens["id_token"], authorization, access_token=tokens["access_token"])
    userinfo = session.get(
        discovery["userinfo_endpoint"], headers=bearer_headers(tokens["access_token"]), timeout=30
    ).json()
    assert userinfo["sub"] == claims["sub"]
    assert userinfo["preferred_username"]

    # Renew the sign-in without a page, then log out: the session ends, but the refresh token stays valid.
    authorization = party.new_request(prompt="none")
    answer = session.get(authorization.url, allow_redirects=False, timeout=30)
    assert "code=" in answer.headers["Location"]
    answer = session.get(party.logout_url(tokens["id_token"], state="s"), allow_redirects=False, timeout=30)
    assert answer.headers["Location"] == f"{party.post_logout_redirect_uri}?state=s"
    assert not [cookie.name for cookie in session.cookies if cookie.name.startswith("__Host-session-")]
    answer = session.get(authorization.url, allow_redirects=False, timeout=30)
    assert "error=login_required" in answer.headers["Location"]
    answer = session.get(discovery["userinfo_endpoint"], headers=bearer_headers(tokens["access_token"]), timeout=30)
    assert answer.status_code == 401
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    answer = session.post(discovery["token_endpoint"], data=form, headers=headers, timeout=30)
    assert answer.status_code == 200


def test_plain_http_is_refused(served: tuple[World, requests.Session]) -> None:
    world, _ = served
    with pytest.raises(requests.ConnectionError):
        requests.get(world.issuer.replace("https:", "http:"), timeout=30)

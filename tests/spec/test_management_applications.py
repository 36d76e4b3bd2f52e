"""Management API: applications and their client secrets."""

import pytest

from identity.testing.response_checks import check_api_error, check_inactive_token, check_oauth_error
from identity.testing.service_test_client import Credentials
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

CALLBACK = "https://app.example/cb"


@pytest.fixture
def applications(world: World, owner: ServiceUserProgram) -> str:
    return f"/projects/{world.make_project(owner.organization).id}/applications"


def test_application_life_cycle(world: World, api: ApiClient, applications: str) -> None:
    created = api.post(applications, {"name": "Shop", "type": "web", "redirect_uris": [CALLBACK]})
    path = f"/applications/{created['id']}"
    assert created.pop("client_secret")
    assert api.get(path) == created
    assert api.list(applications) == [created]
    assert (created["response_types"], created["grant_types"]) == (["code"], ["authorization_code"])
    assert (created["authentication_method"], created["access_token_lifetime"]) == ("client_secret_basic", None)
    changed = api.patch(
        path,
        {
            "grant_types": ["refresh_token", "authorization_code"],
            "redirect_uris": [CALLBACK, "https://app.example/other"],
            "access_token_lifetime": 600,
            "access_token_type": "jwt",
            "id_token_userinfo_assertion": True,
        },
    )
    assert changed["grant_types"] == ["authorization_code", "refresh_token"]
    assert changed["redirect_uris"] == [CALLBACK, "https://app.example/other"]
    assert (changed["access_token_lifetime"], changed["access_token_type"]) == (600, "jwt")
    assert api.patch(path, {"access_token_lifetime": None})["access_token_lifetime"] is None
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events >= {f"application.{verb}" for verb in ("created", "changed", "deactivated", "reactivated", "removed")}


@pytest.mark.shows("4.2.23")
@pytest.mark.parametrize(
    "grant_types", [None, ["authorization_code"], ["implicit"], ["implicit", "authorization_code"]]
)
def test_implicit_grant_type_follows_response_types(
    api: ApiClient, applications: str, grant_types: list[str] | None
) -> None:
    """RFC 7591 §2.1: it is derived from the response types, even if the request omits it."""
    members = {"name": "Shop", "type": "web", "redirect_uris": [CALLBACK], "response_types": ["id_token"]}
    created = api.post(applications, members if grant_types is None else {**members, "grant_types": grant_types})
    assert created["grant_types"] == sorted({*(grant_types or ["authorization_code"]), "implicit"})
    changed = api.patch(f"/applications/{created['id']}", {"response_types": ["code"]})
    assert changed["grant_types"] == sorted({*created["grant_types"]} - {"implicit"})


def test_invalid_application_settings_are_named(api: ApiClient, applications: str) -> None:
    for members, fields in (
        ({"type": "web"}, {"redirect_uris"}),
        ({"type": "web", "redirect_uris": ["http://app.example/cb"]}, {"redirect_uris"}),
        ({"type": "web", "redirect_uris": [CALLBACK, 7]}, {"redirect_uris"}),
        ({"type": "web", "redirect_uris": CALLBACK}, {"redirect_uris"}),
        (
            {"type": "web", "redirect_uris": [CALLBACK], "post_logout_redirect_uris": ["app"]},
            {"post_logout_redirect_uris"},
        ),
        ({"type": "mainframe"}, {"type"}),
        ({"type": "api", "redirect_uris": [CALLBACK]}, {"redirect_uris"}),
        ({"type": "api", "response_types": ["code"]}, {"response_types"}),
        ({"type": "api", "grant_types": ["magic"]}, {"grant_types"}),
        ({"type": "web", "redirect_uris": ["https://app.example/cb"], "grant_types": ["implicit"]}, {"grant_types"}),
        ({"type": "api", "grant_types": ["refresh_token"]}, {"grant_types"}),
        ({"type": "api", "authentication_method": "none", "grant_types": ["client_credentials"]}, {"grant_types"}),
        ({"type": "api", "authentication_method": "magic"}, {"authentication_method"}),
        ({"type": "api", "access_token_lifetime": 0}, {"access_token_lifetime"}),
        ({"type": "api", "access_token_lifetime": 43201}, {"access_token_lifetime"}),
        ({"type": "api", "access_token_lifetime": "PT1H"}, {"access_token_lifetime"}),
        ({"type": "api", "access_token_lifetime": 1.5}, {"access_token_lifetime"}),
        ({"type": "api", "access_token_lifetime": True}, {"access_token_lifetime"}),
        ({"type": "api", "access_token_lifetime": 10**30}, {"access_token_lifetime"}),
        ({"type": "api", "access_token_type": "paper"}, {"access_token_type"}),
        ({"type": "api", "client_secret": "mine"}, {"client_secret"}),
    ):
        answer = api.ask("POST", applications, {"name": "Shop", **members})
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == fields
        assert api.list(applications) == []


def test_public_applications_have_no_secret(api: ApiClient, applications: str) -> None:
    for kind in ("native", "browser"):
        created = api.post(applications, {"name": "App", "type": kind, "redirect_uris": ["https://app.example/cb"]})
        assert (created["authentication_method"], created["client_secret"]) == ("none", None)
        check_api_error(api.ask("POST", f"/applications/{created['id']}/secrets"), 409, "conflict")


def test_secret_rotation_has_no_gap(world: World, api: ApiClient, applications: str) -> None:
    created = api.post(applications, {"name": "Api", "type": "api"})
    secrets = f"/applications/{created['id']}/secrets"
    [first] = api.list(secrets)
    second = api.post(secrets)
    assert api.list(secrets) == [first, {name: second[name] for name in first}]
    check_api_error(api.ask("POST", secrets), 409, "conflict")
    for text in (created["client_secret"], second["client_secret"]):
        check_inactive_token(world.client.introspect("unknown", Credentials(created["id"], text)))
    api.delete(f"{secrets}/{first['id']}")
    check_api_error(api.ask("GET", f"{secrets}/{first['id']}"), 404, "not_found")
    assert api.get(f"{secrets}/{second['id']}")["id"] == second["id"]
    old = Credentials(created["id"], created["client_secret"])
    check_oauth_error(world.client.introspect("unknown", old), "invalid_client", status=401)
    check_inactive_token(world.client.introspect("unknown", Credentials(created["id"], second["client_secret"])))


def test_secret_of_other_application_is_not_found(api: ApiClient, applications: str) -> None:
    created = [api.post(applications, {"name": name, "type": "api"}) for name in ("A", "B")]
    [secret] = api.list(f"/applications/{created[0]['id']}/secrets")
    for method in ("GET", "DELETE"):
        answer = api.ask(method, f"/applications/{created[1]['id']}/secrets/{secret['id']}")
        check_api_error(answer, 404, "not_found")
    assert api.list(f"/applications/{created[0]['id']}/secrets") == [secret]

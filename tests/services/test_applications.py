"""Applications can be registered and changed only with settings that the service offers and that fit together."""

from datetime import timedelta
from typing import Any

import pytest

from identity.domain.applications import Application
from identity.domain.errors import Conflict, Invalid
from identity.domain.projects import Project
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.commands.projects import CreateProject
from identity.services.container import Services
from identity.testing.assembled_service import DEFAULT_PLUGINS
from tests.services.factories import make_organization

_URI = "https://app.example/callback"
_WEB: dict[str, Any] = {"name": "Shop", "type": "web", "redirect_uris": [_URI]}


@pytest.fixture
def plugins() -> str:
    return DEFAULT_PLUGINS


@pytest.fixture
def project(services: Services) -> Project:
    organization = make_organization(services)
    return services.projects.create(organization.id, CreateProject(name="Project"), principal=Principal.OPERATOR)


def register(services: Services, project: Project, **values: Any) -> tuple[Application, str | None]:
    return services.applications.register_with_secret(
        project.id, RegisterApplication.decode(values), principal=Principal.OPERATOR
    )


def change(services: Services, application: Application, **values: Any) -> Application:
    return services.applications.change(application.id, ChangeApplication.decode(values), principal=Principal.OPERATOR)


def refused(services: Services, project: Project, **values: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as refusal:
        register(services, project, **values)
    return refusal.value.fields


@pytest.mark.parametrize(("type_", "method"), [("web", "client_secret_basic"), ("native", "none"), ("browser", "none")])
def test_default_response_type_is_code(services: Services, project: Project, type_: str, method: str) -> None:
    application, secret = register(services, project, **{**_WEB, "type": type_})
    assert application.response_types == {"code"}
    assert application.grant_types == {"authorization_code"}
    assert application.authentication_method == method
    assert (secret is None) is application.is_public


def test_api_application_has_no_sign_in(services: Services, project: Project) -> None:
    application, secret = register(services, project, name="API", type="api")
    assert application.response_types == application.grant_types == frozenset()
    assert application.authentication_method == "client_secret_basic"
    assert secret is not None
    values = {"response_types": ["code"], "redirect_uris": [_URI], "post_logout_redirect_uris": [_URI]}
    assert refused(services, project, name="API", type="api", **values) == {
        "response_types": "An API has no sign-in, so it has no response types.",
        "redirect_uris": "An API has no sign-in, so it has no redirect URIs.",
        "post_logout_redirect_uris": "An API has no sign-in, so it has no redirect URIs.",
    }


def test_unsupported_option_error_lists_supported_ones(services: Services, project: Project) -> None:
    values = {"authentication_method": "magic", "grant_types": ["password"], "response_types": ["code", "coda"]}
    problems = refused(services, project, **_WEB, **values)
    assert set(problems) == set(values)
    assert problems["grant_types"].startswith("password is not offered here. Choose from authorization_code, ")
    assert "client_secret_basic" in problems["authentication_method"]
    assert problems["response_types"].startswith("coda is not offered")


def test_response_type_order_does_not_matter(services: Services, project: Project) -> None:
    application, _ = register(services, project, **_WEB, response_types=["token id_token", "code"])
    assert application.response_types == {"id_token token", "code"}


def test_response_types_need_a_redirect_uri(services: Services, project: Project) -> None:
    sentence = "Enter the address that people return to after signing in."
    assert refused(services, project, name="Shop", type="web") == {"redirect_uris": sentence}
    application, _ = register(services, project, name="Shop", type="web", response_types=[])
    assert application.redirect_uris == ()


def test_invalid_uris_are_reported_by_field(services: Services, project: Project) -> None:
    values = {**_WEB, "redirect_uris": [_URI, "http://app.example/cb"], "post_logout_redirect_uris": ["/bye"]}
    problems = refused(services, project, **values)
    assert problems["redirect_uris"].startswith("http://app.example/cb must start with https://")
    assert problems["post_logout_redirect_uris"].startswith("/bye must be an absolute address")
    application, _ = register(services, project, **{**values, "post_logout_redirect_uris": []}, development=True)
    assert len(application.redirect_uris) == 2


def test_duplicate_redirect_uris_are_merged(services: Services, project: Project) -> None:
    application, _ = register(services, project, **{**_WEB, "redirect_uris": [_URI, _URI]})
    assert application.redirect_uris == (_URI,)


def test_grants_that_cannot_work_are_refused(services: Services, project: Project) -> None:
    problems = refused(services, project, **_WEB, grant_types=["refresh_token"])
    device_code = "urn:ietf:params:oauth:grant-type:device_code"
    assert problems == {
        "grant_types": f"Choose authorization_code / {device_code} too: refresh tokens come with it alone."
    }
    public = {**_WEB, "type": "native", "grant_types": ["authorization_code", "client_credentials"]}
    assert refused(services, project, **public) == {
        "grant_types": "A public client has no credentials, so it cannot use client_credentials."
    }


def test_change_keeps_omitted_fields(services: Services, project: Project) -> None:
    before, _ = register(services, project, **_WEB, access_token_lifetime=600)
    after = change(services, before, name="Store", post_logout_redirect_uris=["https://app.example/bye"])
    assert (after.name, after.redirect_uris, after.version) == ("Store", (_URI,), 2)
    assert after.access_token_lifetime == timedelta(minutes=10)
    assert services.applications.get(before.id) == after
    event = services.audit.recorded_events[-1]
    assert (event.event, event.detail["name"]) == ("application.changed", {"before": "Shop", "after": "Store"})


def test_lifetime_can_be_reset(services: Services, project: Project) -> None:
    before, _ = register(services, project, **_WEB, access_token_lifetime=600, id_token_lifetime=600)
    after = change(services, before, access_token_lifetime=None)
    assert (after.access_token_lifetime, after.id_token_lifetime) == (None, timedelta(minutes=10))


def test_change_must_fit_current_settings(services: Services, project: Project) -> None:
    web, _ = register(services, project, **_WEB)
    api, _ = register(services, project, name="API", type="api")
    for application, values, field in (
        (web, {"redirect_uris": []}, "redirect_uris"),
        (web, {"grant_types": ["refresh_token"]}, "grant_types"),
        (api, {"redirect_uris": [_URI]}, "redirect_uris"),
        (web, {"authentication_method": "magic"}, "authentication_method"),
    ):
        with pytest.raises(Invalid) as refusal:
            change(services, application, **values)
        assert set(refusal.value.fields) == {field}
        assert services.applications.get(application.id) == application


def test_application_type_is_immutable() -> None:
    with pytest.raises(Invalid, match="not known here"):
        ChangeApplication.decode({"type": "api"})


def test_becoming_public_removes_secrets(services: Services, project: Project) -> None:
    application, first = register(services, project, **_WEB)
    services.applications.add_secret(application.id, principal=Principal.OPERATOR)
    change(services, application, authentication_method="none")
    assert services.applications.list_secrets(application.id) == ()
    assert first is not None
    assert services.applications.authenticate(application.id, first) is None
    with pytest.raises(Conflict, match="public"):
        services.applications.add_secret(application.id, principal=Principal.OPERATOR)


def test_former_public_application_gets_secret_on_request(services: Services, project: Project) -> None:
    application, _ = register(services, project, **{**_WEB, "type": "browser"})
    change(services, application, authentication_method="client_secret_post")
    assert services.applications.list_secrets(application.id) == ()
    _, secret = services.applications.add_secret(application.id, principal=Principal.OPERATOR)
    assert services.applications.authenticate(application.id, secret) is not None

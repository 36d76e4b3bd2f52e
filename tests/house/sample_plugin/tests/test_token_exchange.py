"""Token exchange: an application acts for a user with a token no broader and no longer-lived than the user's token."""

from collections.abc import Callable
from typing import Any

import pytest
from sample_plugin.token_exchange import ACCESS_TOKEN, GRANT_TYPE

from identity.api.testing import GrantTypeContract, ValidTokenRequest, World, check_oauth_error, check_token_response

TYPE = {"subject_token_type": ACCESS_TOKEN}


@pytest.fixture
def project(world: World) -> Any:
    """A project with a page for users and an application behind it."""
    return world.make_project()


@pytest.fixture
def session(world: World, project: Any) -> Any:
    """A session of a user of the project's organization."""
    with world.read_only_services() as services:
        organization = services.organizations.get(project.organization_id)
    return world.make_browser_session(world.make_human_user(organization))


@pytest.fixture
def page(world: World, project: Any) -> Any:
    """The application that users sign in to."""
    return world.make_web_application(project.id)


@pytest.fixture
def gateway(world: World, project: Any) -> Any:
    """The application behind it, which exchanges tokens."""
    return world.make_application(project.id, grant_types=frozenset({GRANT_TYPE}))


def exchange(world: World, gateway: Any, token: str, *more: tuple[str, str]) -> Any:
    form = [("grant_type", GRANT_TYPE), ("subject_token", token), *TYPE.items(), *more]
    return world.client.request_token(form, {"Authorization": gateway.header})


class TestTokenExchange(GrantTypeContract):
    grant_type = GRANT_TYPE
    required = frozenset({"subject_token", "subject_token_type"})
    drops_unknown_scopes = False

    @pytest.fixture
    def valid_request(self, world: World, page: Any, gateway: Any, session: Any) -> Callable[[], ValidTokenRequest]:
        """A user's token, and the application that it is meant for."""

        def make_request() -> ValidTokenRequest:
            token = world.obtain_tokens(page, session, scope="openid")["access_token"]
            return ValidTokenRequest({"subject_token": token, **TYPE}, {"Authorization": gateway.header})

        return make_request


def test_exchanged_token_names_actor_and_subject(world: World, page: Any, gateway: Any, session: Any) -> None:
    first = world.obtain_tokens(page, session, scope="openid")
    answer = check_token_response(exchange(world, gateway, first["access_token"]))
    assert answer["issued_token_type"] == ACCESS_TOKEN
    known = world.client.introspect(first["access_token"], gateway).json
    introspection = world.client.introspect(answer["access_token"], gateway).json
    assert (introspection["sub"], introspection["act"]) == (known["sub"], {"sub": gateway.client_id})
    again = check_token_response(exchange(world, gateway, answer["access_token"]))
    chain = world.client.introspect(again["access_token"], gateway).json["act"]
    assert chain == {"sub": gateway.client_id, "act": {"sub": gateway.client_id}}


def test_exchanged_token_expires_no_later_than_subject_token(
    world: World, page: Any, gateway: Any, session: Any
) -> None:
    first = world.obtain_tokens(page, session, scope="openid")
    world.clock.advance(seconds=first["expires_in"] - 60)
    answer = check_token_response(exchange(world, gateway, first["access_token"]))
    assert answer["expires_in"] == 60


def test_exchanged_token_has_the_requested_audience(
    world: World, page: Any, gateway: Any, session: Any, project: Any
) -> None:
    token = world.obtain_tokens(page, session, scope="openid")["access_token"]
    targets = (gateway.client_id, project.id)
    for named in (targets[:1], targets):
        more = [("audience", item) for item in named]
        answer = check_token_response(exchange(world, gateway, token, *more))
        assert world.client.introspect(answer["access_token"], gateway).json["aud"] == list(named)
    check_oauth_error(exchange(world, gateway, token, ("audience", page.client_id)), "invalid_target")
    check_oauth_error(exchange(world, gateway, token, ("resource", "https://a.example")), "invalid_target")


def test_exchanged_token_is_revoked_with_subject_token(world: World, page: Any, gateway: Any, session: Any) -> None:
    tokens = world.obtain_tokens(page, session)
    answer = check_token_response(exchange(world, gateway, tokens["access_token"], ("scope", "openid")))
    world.client.revoke(tokens["refresh_token"], page)
    assert not world.client.introspect(answer["access_token"], gateway).json["active"]

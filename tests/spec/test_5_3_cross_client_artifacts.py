"""Security 3.4: client B with every artefact of client A is refused, and A's artefact still works afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.testing.response_checks import check_inactive_token, check_oauth_error, check_token_response
from identity.testing.world import CredentialsOrClientId, PresentableCode, World

Kind = Callable[[World], CredentialsOrClientId]
KINDS: dict[str, Kind] = {
    "with a secret": lambda world: world.make_web_application(),
    "secret in the form": lambda world: world.make_web_application(authentication_method="client_secret_post"),
    "public": lambda world: world.make_public_application(),
}


@dataclass(frozen=True)
class CrossClientScenario:
    """Artifacts that client A holds for a user: a code, and the tokens of another code."""

    world: World
    owner: CredentialsOrClientId
    code: PresentableCode
    members: dict[str, Any]

    def revoke(self, token: str, client: CredentialsOrClientId) -> Any:
        """The response of the revocation endpoint to the client."""
        return self._ask("revocation_endpoint", token, client)

    def introspect(self, token: str, client: CredentialsOrClientId) -> Any:
        """The response of the introspection endpoint to the client."""
        return self._ask("introspection_endpoint", token, client)

    def _ask(self, endpoint: str, token: str, client: CredentialsOrClientId) -> Any:
        form, headers = self.world.client_credentials(client)
        return self.world.client.post(self.world.client.discovery[endpoint], {"token": token, **form}, headers)


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def scene(world: World, request: pytest.FixtureRequest) -> CrossClientScenario:
    owner = request.param(world)
    session = world.make_browser_session()
    return CrossClientScenario(world, owner, world.make_code(owner, session), world.obtain_tokens(owner, session))


@pytest.fixture
def strangers(world: World) -> list[CredentialsOrClientId]:
    """Clients B of every kind, with the same permissions as A."""
    return [make(world) for make in KINDS.values()]


def test_code_of_other_client_is_refused(scene: CrossClientScenario, strangers: list[CredentialsOrClientId]) -> None:
    """Security 5.3: B does not consume it, with a correct or a wrong verifier."""
    for stranger in strangers:
        check_oauth_error(scene.world.redeem(scene.code, stranger), "invalid_grant")
        check_oauth_error(scene.world.redeem(scene.code, stranger, code_verifier="x" * 43), "invalid_grant")
    check_token_response(scene.world.redeem(scene.code, scene.owner))


def test_used_code_of_other_client_keeps_tokens(
    scene: CrossClientScenario, strangers: list[CredentialsOrClientId]
) -> None:
    """Another client cannot end A's tokens by replaying its code."""
    members = check_token_response(scene.world.redeem(scene.code, scene.owner))
    for stranger in strangers:
        check_oauth_error(scene.world.redeem(scene.code, stranger), "invalid_grant")
    assert scene.world.client.fetch_userinfo(members["access_token"]).status_int == 200


def test_refresh_token_of_other_client_is_refused(
    scene: CrossClientScenario, strangers: list[CredentialsOrClientId]
) -> None:
    """Both before and after its rotation."""
    first = scene.members["refresh_token"]
    for stranger in strangers:
        check_oauth_error(scene.world.refresh(first, stranger), "invalid_grant")
    after = check_token_response(scene.world.refresh(first, scene.owner))
    for stranger in strangers:
        check_oauth_error(scene.world.refresh(first, stranger), "invalid_grant")
    check_token_response(scene.world.refresh(after["refresh_token"], scene.owner))


def test_token_of_other_client_is_not_revoked(
    scene: CrossClientScenario, strangers: list[CredentialsOrClientId]
) -> None:
    """Security 7.7."""
    for stranger in strangers:
        for name in ("access_token", "refresh_token"):
            check_oauth_error(scene.revoke(scene.members[name], stranger), "invalid_grant")
    assert scene.world.client.fetch_userinfo(scene.members["access_token"]).status_int == 200
    check_token_response(scene.world.refresh(scene.members["refresh_token"], scene.owner))


def test_owner_revokes_token(scene: CrossClientScenario) -> None:
    """RFC 7009 §2.1: public clients can revoke their tokens, too."""
    assert scene.revoke(scene.members["refresh_token"], scene.owner).status_int == 200
    assert scene.world.client.fetch_userinfo(scene.members["access_token"]).status_int == 401


def test_token_of_other_client_is_not_introspected(
    scene: CrossClientScenario, strangers: list[CredentialsOrClientId]
) -> None:
    """Security 7.6; a public client cannot introspect even its own tokens (RFC 7662 §2.1)."""
    for client in (*strangers, scene.owner):
        answer = scene.introspect(scene.members["access_token"], client)
        if isinstance(client, str):
            check_oauth_error(answer, "invalid_client", status=401)
        elif client is scene.owner:
            assert answer.json["active"] is True
        else:
            check_inactive_token(answer)


@pytest.mark.parametrize("stranger", KINDS)
def test_client_id_of_other_client_is_refused(scene: CrossClientScenario, stranger: str) -> None:
    """B's credentials with A's client_id authenticate neither."""
    client = KINDS[stranger](scene.world)
    form, headers = scene.world.client_credentials(client)
    form = {**form, "grant_type": "authorization_code", **scene.code.form()}
    owner = scene.owner if isinstance(scene.owner, str) else scene.owner.client_id
    answer = scene.world.client.request_token({**form, "client_id": owner}, headers)
    if isinstance(client, str) and isinstance(scene.owner, str):
        # The id of a public client is no secret; the verifier proves that the client started the flow.
        check_token_response(answer)
        return
    assert answer.json["error"] in ("invalid_request", "invalid_client")
    check_token_response(scene.world.redeem(scene.code, scene.owner))


def test_service_user_secret_opens_no_client_artifact(scene: CrossClientScenario) -> None:
    """The other client is a service user: it can use the client credentials grant only, and cannot introspect."""
    stranger = scene.world.make_service_user_secret(scene.world.make_service_user_program())
    check_oauth_error(scene.world.redeem(scene.code, stranger), "unauthorized_client")
    check_oauth_error(scene.world.refresh(scene.members["refresh_token"], stranger), "unauthorized_client")
    for name in ("access_token", "refresh_token"):
        check_oauth_error(scene.revoke(scene.members[name], stranger), "invalid_grant")
        check_oauth_error(scene.introspect(scene.members[name], stranger), "invalid_client", status=401)
    assert scene.world.client.fetch_userinfo(scene.members["access_token"]).status_int == 200
    check_token_response(scene.world.redeem(scene.code, scene.owner))
    check_token_response(scene.world.refresh(scene.members["refresh_token"], scene.owner))

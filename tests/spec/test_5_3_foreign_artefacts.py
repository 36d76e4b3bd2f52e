"""Security 3.4: client B with every artefact of client A is refused, and A's artefact still works afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from identity.testing.responses import check_granted, check_inactive, check_refused
from identity.testing.world import AnyClient, Code, World

Kind = Callable[[World], AnyClient]
KINDS: dict[str, Kind] = {
    "with a secret": lambda world: world.a_web_application(),
    "secret in the form": lambda world: world.a_web_application(authentication_method="client_secret_post"),
    "public": lambda world: world.a_public_application(),
}


@dataclass(frozen=True)
class Scene:
    """All that client A has of a person: a code, and the tokens of another code."""

    world: World
    owner: AnyClient
    code: Code
    members: dict[str, Any]

    def revoke(self, token: str, client: AnyClient) -> Any:
        """The revocation endpoint's answer to the client."""
        return self._ask("revocation_endpoint", token, client)

    def introspect(self, token: str, client: AnyClient) -> Any:
        """The introspection endpoint's answer to the client."""
        return self._ask("introspection_endpoint", token, client)

    def _ask(self, endpoint: str, token: str, client: AnyClient) -> Any:
        form, headers = self.world.credentials_of(client)
        return self.world.client.post(self.world.client.discovery[endpoint], {"token": token, **form}, headers)


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def scene(world: World, request: pytest.FixtureRequest) -> Scene:
    owner = request.param(world)
    session = world.a_session()
    return Scene(world, owner, world.a_code(owner, session), world.tokens(owner, session))


@pytest.fixture
def strangers(world: World) -> list[AnyClient]:
    """Clients B of every kind, each of which may do all that A may."""
    return [make(world) for make in KINDS.values()]


def test_a_code(scene: Scene, strangers: list[AnyClient]) -> None:
    """Security 5.3: nor does B use it up, with the right verifier or a wrong one."""
    for stranger in strangers:
        check_refused(scene.world.redeem(scene.code, stranger), "invalid_grant")
        check_refused(scene.world.redeem(scene.code, stranger, code_verifier="x" * 43), "invalid_grant")
    check_granted(scene.world.redeem(scene.code, scene.owner))


def test_a_used_code(scene: Scene, strangers: list[AnyClient]) -> None:
    """Whoever is not its client cannot end A's tokens with it."""
    members = check_granted(scene.world.redeem(scene.code, scene.owner))
    for stranger in strangers:
        check_refused(scene.world.redeem(scene.code, stranger), "invalid_grant")
    assert scene.world.client.userinfo(members["access_token"]).status_int == 200


def test_a_refresh_token(scene: Scene, strangers: list[AnyClient]) -> None:
    """Neither while it is good nor once it was rotated."""
    first = scene.members["refresh_token"]
    for stranger in strangers:
        check_refused(scene.world.refresh(first, stranger), "invalid_grant")
    after = check_granted(scene.world.refresh(first, scene.owner))
    for stranger in strangers:
        check_refused(scene.world.refresh(first, stranger), "invalid_grant")
    check_granted(scene.world.refresh(after["refresh_token"], scene.owner))


def test_revocation(scene: Scene, strangers: list[AnyClient]) -> None:
    """Security 7.7."""
    for stranger in strangers:
        for name in ("access_token", "refresh_token"):
            check_refused(scene.revoke(scene.members[name], stranger), "invalid_grant")
    assert scene.world.client.userinfo(scene.members["access_token"]).status_int == 200
    check_granted(scene.world.refresh(scene.members["refresh_token"], scene.owner))


def test_revocation_by_its_owner(scene: Scene) -> None:
    """RFC 7009 §2.1: public clients revoke what they got, as others do."""
    assert scene.revoke(scene.members["refresh_token"], scene.owner).status_int == 200
    assert scene.world.client.userinfo(scene.members["access_token"]).status_int == 401


def test_introspection(scene: Scene, strangers: list[AnyClient]) -> None:
    """Security 7.6; and a public client learns nothing, not even of its own tokens (RFC 7662 §2.1)."""
    for client in (*strangers, scene.owner):
        answer = scene.introspect(scene.members["access_token"], client)
        if isinstance(client, str):
            check_refused(answer, "invalid_client", status=401)
        elif client is scene.owner:
            assert answer.json["active"] is True
        else:
            check_inactive(answer)


@pytest.mark.parametrize("stranger", KINDS)
def test_the_name_of_another_client(scene: Scene, stranger: str) -> None:
    """B's credentials with A's client_id are neither's."""
    client = KINDS[stranger](scene.world)
    form, headers = scene.world.credentials_of(client)
    form = {**form, "grant_type": "authorization_code", **scene.code.form()}
    owner = scene.owner if isinstance(scene.owner, str) else scene.owner.client_id
    answer = scene.world.client.token({**form, "client_id": owner}, headers)
    if isinstance(client, str) and isinstance(scene.owner, str):
        # A public client is whoever says its name: that it is the one is proved by the verifier.
        check_granted(answer)
        return
    assert answer.json["error"] in ("invalid_request", "invalid_client")
    check_granted(scene.world.redeem(scene.code, scene.owner))


def test_a_service_user_with_a_secret_can_do_nothing_with_any_of_it(scene: Scene) -> None:
    """The stranger is a service user: it may use another grant alone, and asks about no tokens."""
    stranger = scene.world.a_secret(scene.world.a_robot())
    check_refused(scene.world.redeem(scene.code, stranger), "unauthorized_client")
    check_refused(scene.world.refresh(scene.members["refresh_token"], stranger), "unauthorized_client")
    for name in ("access_token", "refresh_token"):
        check_refused(scene.revoke(scene.members[name], stranger), "invalid_grant")
        check_refused(scene.introspect(scene.members[name], stranger), "invalid_client", status=401)
    assert scene.world.client.userinfo(scene.members["access_token"]).status_int == 200
    check_granted(scene.world.redeem(scene.code, scene.owner))
    check_granted(scene.world.refresh(scene.members["refresh_token"], scene.owner))

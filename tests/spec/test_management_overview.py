"""Overview and token preview of the management API."""

from identity.domain.permissions import Resource
from identity.testing.response_checks import check_api_error, check_token_response
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient


def test_overview_lists_expiring_refused_and_missing(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    robot = world.make_service_user_program(owner.organization)
    key = api.post(
        f"/service-users/{robot.id}/keys", {"expires_at": (world.clock().isoformat()[:4]) + "-12-31T23:59:59Z"}
    )
    world.clock.reset()
    found = api.get(f"/organizations/{owner.organization.id}/overview")
    assert set(found) == {"expiring", "ending", "refused", "first_steps"}
    assert found["first_steps"] == {
        "project": False,
        "application": False,
        "service_user": True,
        "key": True,
        "manager": True,
    }
    assert {item["kind"] for item in found["expiring"]} <= {"service_user_key"}
    assert key["id"]


def test_first_steps_are_hidden_for_the_caller_alone(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    path = f"/organizations/{owner.organization.id}/first-steps"
    viewer = world.make_service_user_program(owner.organization)
    world.assign_manager_role(viewer.user, "ORG_OWNER_VIEWER")
    steps = api.get(path)
    assert (steps["manager"], steps["project"], steps["hidden"]) == (True, False, False)
    for _ in range(2):
        assert api.post(f"{path}/hide", status=200)["hidden"]
    assert api.get(path)["hidden"]
    assert not ApiClient.for_user(viewer).get(path)["hidden"]
    for _ in range(2):
        assert not api.post(f"{path}/restore", status=200)["hidden"]
    for action in ("hide", "restore"):
        assert api.ask("POST", f"/organizations/{world.make_organization().id}/first-steps/{action}").status_int == 404


def test_overview_counts_refusals(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    viewer = ApiClient.for_user(world.make_service_user_program(owner.organization))
    check_api_error(viewer.ask("GET", f"/organizations/{owner.organization.id}"), 403, "forbidden")
    [refused] = api.get(f"/organizations/{owner.organization.id}/overview")["refused"]
    assert (refused["event"], refused["count"]) == ("access.refused", 1)


def test_instance_overview(world: World) -> None:
    found = ApiClient.for_user(world.make_manager_program("IAM_OWNER_VIEWER", resource=Resource.INSTANCE)).get(
        "/instance/overview"
    )
    assert set(found) == {"expiring", "ending", "refused"}


def test_token_preview_matches_service_user_token(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    path = f"/organizations/{owner.organization.id}/token-preview?user_id={owner.id}&scope=openid+profile"
    by_secret, found = api.get(path)["ways"]
    assert (by_secret["grant_type"], by_secret["refusal"]) == ("client_credentials", None)
    assert found["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert found["refusal"] is None
    assert found["scope"] == check_token_response(owner.request_token("openid profile"))["scope"].split()
    assert {item["carrier"] for item in found["carried"]} >= {"access_token", "id_token", "userinfo"}
    [userinfo] = [item for item in found["carried"] if item["carrier"] == "userinfo"]
    claims = {claim["name"]: claim["value"] for claim in userinfo["claims"]}
    assert claims == world.client.fetch_userinfo(owner.access_token("openid profile")).json


def test_token_preview_explains_refusal(owner: ServiceUserProgram, api: ApiClient) -> None:
    path = f"/organizations/{owner.organization.id}/token-preview?user_id={owner.id}&scope=profile"
    refusal = api.get(path)["ways"][1]["refusal"]
    assert (refusal["error"], refusal["error_description"]) == ("invalid_scope", "scope must include openid")


def test_token_preview_refuses_unknown_resources(owner: ServiceUserProgram, api: ApiClient) -> None:
    path = f"/organizations/{owner.organization.id}/token-preview?user_id={owner.id}&resource=urn:example:unknown"
    found = api.get(path)["ways"]
    assert {preview["refusal"]["error"] for preview in found} == {"invalid_target"}


def test_token_preview_needs_read_permission(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    root = f"/organizations/{owner.organization.id}/token-preview"
    for query, fields in (
        ("", {"user_id"}),
        (f"?user_id={world.make_service_user_program().id}", {"user_id"}),
        (f"?user_id={owner.id}&application_id=nothing", {"application_id"}),
        (f"?user_id={world.make_human_user(owner.organization).id}", {"application_id"}),
    ):
        answer = api.ask("GET", root + query)
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == fields

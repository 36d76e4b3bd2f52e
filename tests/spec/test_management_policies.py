"""Sign-in policies in the management API, state files and exports."""

import pytest

from identity.domain.permissions import Resource
from identity.domain.policies import Policy, SecondFactorRule
from identity.services.access_control import Principal
from identity.services.commands.policies import ChangePolicy
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.services.policies import INSTANCE_OWNER_ID as INSTANCE_POLICY
from identity.testing.response_checks import check_api_error
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.test_management_transfer import IMPORT, exported, from_other_instance

_LOOSER = "The instance does not allow this much."


@pytest.fixture
def api(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


def test_policy_shows_own_and_effective_rules(isolated_world: World) -> None:
    """On a separate instance without rules."""
    world, api = (
        isolated_world,
        ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)),
    )
    path = f"/organizations/{world.make_organization().id}/policy"
    before = api.get(path)
    assert (before["version"], before["changed_at"], before["own"]["second_factor"]) == (0, None, None)
    assert before["effective"]["second_factor"] == "offered"
    after = api.patch(path, {"second_factor": "required_for_iam"})
    assert (after["own"]["second_factor"], after["effective"]["second_factor"]) == ("required_for_iam",) * 2
    sources = {item["rule"]: item for item in after["sources"]}
    assert sources["second_factor"]["source"] == "organization"
    assert sources["second_factor"]["set_by"] == world.audit_events(object_id=path.split("/")[2])[0].actor.id
    assert sources["remember_browser"]["source"] == "settings"
    [event] = [
        audit_event
        for audit_event in world.audit_events(object_id=path.split("/")[2])
        if audit_event.event == "policy.changed"
    ]
    assert event.detail == {"second_factor": {"before": None, "after": "required_for_iam"}}
    assert api.patch(path, {"second_factor": None})["own"]["second_factor"] is None


def test_organization_policy_can_only_tighten(world: World, api: ApiClient) -> None:
    path = f"/organizations/{world.make_organization().id}/policy"
    for members in ({"second_factor": "off"}, {"remember_browser": 1}):
        answer = api.ask("PATCH", path, members)
        assert check_api_error(answer, 422, "invalid")["fields"] == dict.fromkeys(members, _LOOSER)
    api.patch("/instance/policy", {"remember_browser": 7})
    assert api.patch(path, {"remember_browser": 7})["effective"]["remember_browser"] == 7
    api.patch("/instance/policy", {"remember_browser": 3})
    after = api.get(path)
    assert (after["own"]["remember_browser"], after["effective"]["remember_browser"]) == (7, 3)
    # A rule that is no longer allowed does not block other changes.
    assert api.patch(path, {"second_factor": "required_for_iam"})["own"]["remember_browser"] == 7
    api.patch("/instance/policy", {"remember_browser": None})


def test_stale_policy_change_is_refused(world: World, api: ApiClient) -> None:
    path = f"/organizations/{world.make_organization().id}/policy"
    tag = api.ask("GET", path).headers["ETag"]
    api.patch(path, {"second_factor": "required_for_iam"})
    answer = api.ask("PATCH", path, {"second_factor": None}, If_Match=tag)
    check_api_error(answer, 412, "precondition_failed")


@pytest.mark.parametrize(
    "members",
    [
        {"second_factor": "sometimes"},
        {"factors": []},
        {"factors": ["telepathy"]},
        {"remember_browser": 31},
        {"remember_browser": -1},
        {"remember_browser": "7"},
        {"second_factor": True},
        {"no_such_rule": 1},
    ],
)
def test_invalid_policy_rule_is_named(world: World, api: ApiClient, members: dict[str, object]) -> None:
    answer = api.ask("PATCH", "/instance/policy", members)
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == set(members)


def test_organization_manager_cannot_read_instance_policy(world: World) -> None:
    organization = world.make_organization()
    api = ApiClient.for_user(
        world.make_manager_program("ORG_OWNER", resource=Resource.of_organization(organization.id))
    )
    assert api.patch(f"/organizations/{organization.id}/policy", {"second_factor": "required_for_iam"})["version"] == 1
    assert api.ask("GET", "/instance/policy").status_int == 403
    assert api.ask("PATCH", f"/organizations/{world.make_organization().id}/policy", {}).status_int == 404


def test_policy_follows_organization_transfer_and_deletion(world: World, api: ApiClient) -> None:
    """Security 18.3: a deleted organization leaves no rules behind for its id or name."""
    organization = world.make_organization()
    api.patch(f"/organizations/{organization.id}/policy", {"second_factor": "required_for_managers"})
    document = exported(api, organization.id)
    assert document["organization"]["policy"] == {"second_factor": "required_for_managers"}
    copy = api.post(IMPORT, from_other_instance(document, f"copy-of-{organization.primary_domain}"))
    assert api.get(f"/organizations/{copy['id']}/policy")["own"]["second_factor"] == "required_for_managers"
    api.delete(f"/organizations/{organization.id}")
    del document["organization"]["policy"]
    again = api.post(f"{IMPORT}?keep_ids=true", document)
    assert again["id"] == organization.id
    assert api.get(f"/organizations/{again['id']}/policy")["own"]["second_factor"] is None


def test_state_file_sets_policy_rules_once(world: World) -> None:
    organization = world.make_organization()

    def state(**rules: object) -> dict[str, object]:
        described = {"id": organization.id, "name": organization.name, "policy": rules}
        return {"version": 1, "instance": {"policy": {"remember_browser": 14}}, "organizations": [described]}

    def applied(**rules: object) -> list[str]:
        with world.identity.transaction() as services:
            return [
                state_change.detail
                for state_change in apply_desired_state(
                    services, parse_desired_state(state(**rules)), principal=Principal.OPERATOR
                ).state_changes
            ]

    assert applied(remember_browser=7, second_factor="required_for_iam") == [
        "remember_browser: null → 14",
        'remember_browser: null → 7; second_factor: null → "required_for_iam"',
    ]
    assert applied(remember_browser=7, second_factor="required_for_iam") == []
    assert applied(second_factor=None) == ['second_factor: "required_for_iam" → null']
    with world.read_only_services() as services:
        assert services.policies.get_stored_policy(organization.id).policy == Policy(remember_browser=7)
        assert services.policies.organization_policy(organization.id).second_factor is SecondFactorRule.OFFERED
        assert services.policies.get_stored_policy(INSTANCE_POLICY).policy == Policy(remember_browser=14)
        assert '"policy": {"remember_browser": 7}' in "".join(
            OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR)
        )
    with world.transaction_services() as services:
        services.policies.change(INSTANCE_POLICY, ChangePolicy.build(remember_browser=None))


def test_policy_factors_include_upstream(world: World, api: ApiClient) -> None:
    path = f"/organizations/{world.make_organization().id}/policy"
    assert api.patch(path, {"factors": ["upstream", "passkeys"]})["effective"]["factors"] == ["upstream", "passkeys"]
    answer = api.ask("PATCH", path, {"factors": ["telepathy"]})
    assert "upstream" in check_api_error(answer, 422, "invalid")["fields"]["factors"]

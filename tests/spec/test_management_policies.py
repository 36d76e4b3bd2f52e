"""Management API, state files and exports: the rules of signing in, of the instance and of organizations."""

import pytest

from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.policies import Policy, SecondFactor
from identity.services.access import THE_OPERATOR
from identity.services.apply import apply, read_state
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE as INSTANCE_POLICY
from identity.services.transfer import Transfer
from identity.testing.responses import check_api_error
from identity.testing.world import World
from tests.plugins.management.estate import Api
from tests.spec.test_management_transfer import IMPORT, elsewhere, exported

_LOOSER = "The instance does not allow that much."


@pytest.fixture
def api(world: World) -> Api:
    return Api.of(world.a_manager("IAM_OWNER", resource=INSTANCE))


def test_an_organization_sets_rules_and_is_told_what_holds(own_world: World) -> None:
    """At an instance of its own, which has set no rule."""
    world, api = own_world, Api.of(own_world.a_manager("IAM_OWNER", resource=INSTANCE))
    path = f"/organizations/{world.an_organization().id}/policy"
    before = api.get(path)
    assert (before["version"], before["changed_at"], before["own"]["second_factor"]) == (0, None, None)
    assert before["effective"]["second_factor"] == "offered"
    after = api.patch(path, {"second_factor": "required_for_iam"})
    assert (after["own"]["second_factor"], after["effective"]["second_factor"]) == ("required_for_iam",) * 2
    sources = {one["rule"]: one for one in after["sources"]}
    assert sources["second_factor"]["source"] == "organization"
    assert sources["second_factor"]["set_by"] == world.audit_events(object_id=path.split("/")[2])[0].actor.id
    assert sources["remember_browser"]["source"] == "settings"
    [told] = [one for one in world.audit_events(object_id=path.split("/")[2]) if one.event == "policy.changed"]
    assert told.detail == {"second_factor": {"before": None, "after": "required_for_iam"}}
    assert api.patch(path, {"second_factor": None})["own"]["second_factor"] is None


def test_an_organization_can_only_tighten(world: World, api: Api) -> None:
    path = f"/organizations/{world.an_organization().id}/policy"
    for members in ({"second_factor": "off"}, {"remember_browser": 1}):
        answer = api.ask("PATCH", path, members)
        assert check_api_error(answer, 422, "invalid")["fields"] == dict.fromkeys(members, _LOOSER)
    api.patch("/instance/policy", {"remember_browser": 7})
    assert api.patch(path, {"remember_browser": 7})["effective"]["remember_browser"] == 7
    api.patch("/instance/policy", {"remember_browser": 3})
    after = api.get(path)
    assert (after["own"]["remember_browser"], after["effective"]["remember_browser"]) == (7, 3)
    # What was allowed once does not stand in the way of other changes.
    assert api.patch(path, {"second_factor": "required_for_iam"})["own"]["remember_browser"] == 7
    api.patch("/instance/policy", {"remember_browser": None})


def test_a_change_of_another_version_than_the_present_one_is_refused(world: World, api: Api) -> None:
    path = f"/organizations/{world.an_organization().id}/policy"
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
def test_what_no_rule_can_be_is_refused_at_its_name(world: World, api: Api, members: dict[str, object]) -> None:
    answer = api.ask("PATCH", "/instance/policy", members)
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == set(members)


def test_who_manages_an_organization_reads_no_policy_of_the_instance(world: World) -> None:
    organization = world.an_organization()
    api = Api.of(world.a_manager("ORG_OWNER", resource=organization_resource(organization.id)))
    assert api.patch(f"/organizations/{organization.id}/policy", {"second_factor": "required_for_iam"})["version"] == 1
    assert api.ask("GET", "/instance/policy").status_int == 403
    assert api.ask("PATCH", f"/organizations/{world.an_organization().id}/policy", {}).status_int == 404


def test_a_policy_goes_with_its_organization_out_in_and_away(world: World, api: Api) -> None:
    """Security 18.3: under the id and the name of one that is gone nothing is left of its rules."""
    organization = world.an_organization()
    api.patch(f"/organizations/{organization.id}/policy", {"second_factor": "required_for_managers"})
    document = exported(api, organization.id)
    assert document["organization"]["policy"] == {"second_factor": "required_for_managers"}
    copy = api.post(IMPORT, elsewhere(document, f"copy-of-{organization.primary_domain}"))
    assert api.get(f"/organizations/{copy['id']}/policy")["own"]["second_factor"] == "required_for_managers"
    api.delete(f"/organizations/{organization.id}")
    del document["organization"]["policy"]
    again = api.post(f"{IMPORT}?keep_ids=true", document)
    assert again["id"] == organization.id
    assert api.get(f"/organizations/{again['id']}/policy")["own"]["second_factor"] is None


def test_a_state_file_sets_rules_once(world: World) -> None:
    organization = world.an_organization()

    def state(**rules: object) -> dict[str, object]:
        described = {"id": organization.id, "name": organization.name, "policy": rules}
        return {"version": 1, "instance": {"policy": {"remember_browser": 14}}, "organizations": [described]}

    def applied(**rules: object) -> list[str]:
        with world.identity.transaction() as services:
            return [one.detail for one in apply(services, read_state(state(**rules)), by=THE_OPERATOR).changes]

    assert applied(remember_browser=7, second_factor="required_for_iam") == [
        "remember_browser: null → 14",
        'remember_browser: null → 7; second_factor: null → "required_for_iam"',
    ]
    assert applied(remember_browser=7, second_factor="required_for_iam") == []
    assert applied(second_factor=None) == ['second_factor: "required_for_iam" → null']
    with world.reading() as services:
        assert services.policies.set_at(organization.id).policy == Policy(remember_browser=7)
        assert services.policies.of(organization.id).second_factor is SecondFactor.OFFERED
        assert services.policies.set_at(INSTANCE_POLICY).policy == Policy(remember_browser=14)
        assert '"policy": {"remember_browser": 7}' in "".join(
            Transfer(services).document(organization.id, by=THE_OPERATOR)
        )
    with world.transaction() as services:
        services.policies.change(INSTANCE_POLICY, ChangePolicy.of(remember_browser=None))


def test_accounts_elsewhere_are_a_way_that_a_policy_can_leave(world: World, api: Api) -> None:
    path = f"/organizations/{world.an_organization().id}/policy"
    assert api.patch(path, {"factors": ["upstream", "passkeys"]})["effective"]["factors"] == ["upstream", "passkeys"]
    answer = api.ask("PATCH", path, {"factors": ["telepathy"]})
    assert "upstream" in check_api_error(answer, 422, "invalid")["fields"]["factors"]

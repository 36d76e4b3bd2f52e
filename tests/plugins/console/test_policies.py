"""The sign-in policy in the console: effective rules, their source, and editing."""

from identity.domain.applications import ConsentRule
from identity.domain.organizations import Organization
from identity.domain.policies import Policy, SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def _set(world: World, owner: str) -> Policy:
    with world.read_only_services() as services:
        return services.policies.get_stored_policy(owner).policy


def _page(organization: Organization, below: str = "") -> str:
    return f"/console/organizations/{organization.id}/policy{below}"


def _row(page: object, rule: str) -> str:
    rows = page.html.select("tbody tr")  # type: ignore[attr-defined]
    return next(" ".join(row.text.split()) for row in rows if row.th.text.startswith(rule))


def test_policy_page_shows_stricter_rule_and_its_author(
    world: World, owner: Browser, organization: Organization
) -> None:
    page = owner.open(_page(organization))
    assert "The settings of the service" in _row(page, "Second factor")
    owner.click("Change")
    page = owner.submit({"second_factor": "required_for_iam", "remember_browser": "0"}, form="page-form")
    assert "The policy is saved." in page
    row = _row(page, "Second factor")
    assert "Required for instance managers" in row
    assert "This organization" in row
    assert "by " in row
    assert _set(world, organization.id) == Policy(second_factor=SecondFactorRule.REQUIRED_FOR_IAM, remember_browser=0)


def test_looser_rule_than_instance_is_refused(owner: Browser, organization: Organization) -> None:
    owner.open(_page(organization, "/edit"))
    form = owner.find_form("page-form")
    assert "off" not in [value for value, _, _ in form["second_factor"].options]
    page = owner.submit({"remember_browser": "7"}, form="page-form")
    assert page.status_int == 422
    assert "The instance does not allow this much." in page.html.find(id="error-remember_browser").text


def test_rule_is_reset_to_inherited(world: World, owner: Browser, organization: Organization) -> None:
    world.operator_services.policies.change(
        organization.id, ChangePolicy.build(second_factor=SecondFactorRule.REQUIRED_FOR_IAM)
    )
    owner.open(_page(organization, "/edit"))
    owner.submit({"second_factor": ""}, form="page-form")
    assert _set(world, organization.id) == Policy()


def test_concurrent_policy_change_is_refused(world: World, owner: Browser, organization: Organization) -> None:
    owner.open(_page(organization, "/edit"))
    world.operator_services.policies.change(
        organization.id, ChangePolicy.build(second_factor=SecondFactorRule.REQUIRED_FOR_IAM)
    )
    page = owner.submit({"second_factor": "required_for_managers"}, form="page-form")
    assert page.status_int == 409
    assert _set(world, organization.id).second_factor is SecondFactorRule.REQUIRED_FOR_IAM


def test_viewer_sees_policy_without_button(sign_in: SignIn, organization: Organization) -> None:
    viewer = sign_in("ORG_OWNER_VIEWER")
    page = viewer.open(_page(organization))
    assert "Second factor" in page
    assert "/policy/edit" not in page
    assert viewer.open(_page(organization, "/edit")).status_int == 403
    assert viewer.open("/console/instance/policy").status_int == 403


def test_instance_policy_applies_to_organizations(
    world: World, instance_owner: Browser, organization: Organization
) -> None:
    instance_owner.open("/console/instance/policy/edit")
    page = instance_owner.submit({"remember_browser": "30"}, form="page-form")
    assert "For 30 days, if the person chooses to" in _row(page, "Remember browsers for")
    page = instance_owner.open(_page(organization))
    assert "The instance" in _row(page, "Remember browsers for")
    assert _set(world, INSTANCE_OWNER_ID) == Policy(remember_browser=30)
    # Restore the rule: all tests share the instance.
    instance_owner.open("/console/instance/policy/edit")
    instance_owner.submit({"remember_browser": ""}, form="page-form")
    assert _set(world, INSTANCE_OWNER_ID) == Policy()


def _facts(page: object) -> dict[str, str]:
    rows = page.html.select("dl.facts > div")  # type: ignore[attr-defined]
    return {row.dt.text.strip(): " ".join(row.dd.text.split()) for row in rows}


def test_sign_in_preview_shows_steps(world: World, owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    path = _page(organization, "/preview")
    assert owner.open(path).status_int == 200
    facts = _facts(owner.open(f"{path}?user_id={person.id}"))
    assert (facts["Signs in with"], facts["Second factor"]) == ("Password", "Not requested")
    assert facts["End unused sessions after"] == "12 hours"
    assert "Consent" not in facts
    client = world.make_web_application(world.make_project(organization).id, consent=ConsentRule.WHEN_FOREIGN)
    at_application = f"{path}?user_id={person.id}&application_id={client.client_id}"
    assert _facts(owner.open(at_application))["Consent"] == "Is not asked"


def test_sign_in_preview_with_unsaved_rules(world: World, owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    client = world.make_web_application(world.make_project(organization).id, consent=ConsentRule.WHEN_FOREIGN)
    owner.open(_page(organization, "/edit"))
    typed = {"second_factor": "required", "session_idle_age": "30m", "consent": "always"}
    page = owner.submit(typed, form="page-form", button=("preview", "yes"))
    assert "They are not saved yet." in page
    hidden = {item["name"]: item["value"] for item in page.html.select("main form input[type=hidden]")}
    assert hidden == {"second_factor": "required", "session_idle_age": "30m", "consent": "always"}
    page = owner.open(f"{owner.url}&user_id={person.id}&application_id={client.client_id}")
    facts = _facts(page)
    assert facts["Second factor"].startswith("Must set up: ")
    assert "Authenticator app" in facts["Second factor"]
    assert (facts["End unused sessions after"], facts["Consent"]) == ("30 minutes", "Is asked for consent")
    assert _set(world, organization.id) == Policy()
    page = owner.open(_page(organization, f"/preview?user_id={person.id}&remember_browser=30"))
    assert page.status_int == 422
    assert "The instance does not allow this much." in page


def test_sign_in_preview_refuses_users_of_other_organizations(
    world: World, owner: Browser, organization: Organization
) -> None:
    stranger = world.make_human_user()
    page = owner.open(_page(organization, f"/preview?user_id={stranger.id}"))
    assert page.status_int == 422
    assert "Choose a person." in page


def test_registration_closed_by_instance_is_shown_in_preview(
    world: World, owner: Browser, organization: Organization
) -> None:
    person = world.make_human_user(organization)
    assert "People can create an account" in owner.open(f"/console/organizations/{organization.id}")
    assert "Anyone, if the organization allows" in _row(owner.open(_page(organization)), "Who can register")
    facts = _facts(owner.open(_page(organization, f"/preview?user_id={person.id}")))
    assert facts["Registration"] == "Anyone, if the organization allows registration"
    for rule in ("by_domain", "off"):
        facts = _facts(owner.open(_page(organization, f"/preview?user_id={person.id}&registration={rule}")))
        assert facts["Registration"] == "Nobody can register now", rule
    owner.open(_page(organization, "/edit"))
    page = owner.submit({"registration": "off"}, form="page-form")
    assert "Nobody, regardless of the organization's settings" in _row(page, "Who can register")
    assert "This organization" in _row(page, "Who can register")
    message = "Enabled here, but the sign-in policy lets nobody register"
    assert message in owner.open(f"/console/organizations/{organization.id}")


def test_pages_show_whether_reset_password_must_change(
    world: World, instance_owner: Browser, organization: Organization
) -> None:
    person = world.make_human_user(organization)
    path = f"/console/users/{person.id}/one-time-password"
    assert "The new one must be changed at the next sign-in." in instance_owner.open(path)
    assert "It must be changed at the next sign-in." in instance_owner.submit(form="page-form")
    world.operator_services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(password_change_after_reset=False))
    try:
        assert "It stays valid until the person changes it." in instance_owner.open(path)
        page = instance_owner.submit(form="page-form")
        assert "It stays valid until the person changes it." in page
        new = instance_owner.open(f"/console/organizations/{organization.id}/users/new")
        assert "It stays valid until the person changes it." in new
    finally:
        world.operator_services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(password_change_after_reset=None))

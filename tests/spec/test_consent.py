"""Decisions, consent: people agree before an application of others gets anything of them, once, and take it back."""

import json
from typing import Any

import pytest

from identity.domain.applications import ConsentRule
from identity.domain.audit import AuditEvent
from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.users import HumanUser
from identity.services.access import THE_OPERATOR
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.projects import AddProjectRole, ChangeProject
from identity.services.commands.users import ChangeProfile
from identity.testing.assertions import decoded
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import Asked, RelyingParty, Tokens
from identity.testing.responses import check_api_error, check_inactive, check_refused
from identity.testing.service import PLUGINS
from identity.testing.world import World
from tests.plugins.management.estate import Api

CONSENT = "consent"
RESPONSE_TYPES = ("code", "id_token", "id_token token")
MANAGES = "can do in your name everything that you may do as a manager"


class Scene:
    """A person at a browser, and an application of another organization."""

    def __init__(self, world: World, *, organization: Organization | None = None, **members: Any) -> None:
        self.world = world
        self.home = world.an_organization()
        self.owner = organization or world.an_organization()
        self.person: HumanUser = world.a_person(self.home)
        self.project = world.a_project(self.owner)
        members = {"consent": ConsentRule.WHEN_FOREIGN, "name": "Invoices & more"} | members
        self.party = RelyingParty.of(world, project_id=self.project.id, **members)
        self.browser = Browser(world)
        self.browser.start_session(self.person)

    def ask(self, scope: str = "openid email", response_type: str = "code", **parameters: Any) -> Asked:
        """The person follows the application's link."""
        asked = self.party.ask(response_type, scope=scope, **parameters)
        self.browser.open(asked.url, by=self.party.origin)
        return asked

    @property
    def asks(self) -> bool:
        """True if the page stands before the answer."""
        return self.browser.step == CONSENT

    def decide(self, decision: str = "allow") -> None:
        """Press the button."""
        self.browser.submit(press=("decision", decision), form="page-form")

    def agreed(self, scope: str = "openid email", **parameters: Any) -> Tokens:
        """What a sign-in brings to which the person agrees on the page."""
        asked = self.ask(scope, **parameters)
        assert self.asks
        self.decide()
        return self.party.tokens(self.browser.page, asked)

    def silently(self, scope: str = "openid email", **parameters: Any) -> Tokens:
        """What a sign-in brings without a page."""
        asked = self.ask(scope, **parameters)
        assert not self.asks
        return self.party.tokens(self.browser.page, asked)

    def change(self, **members: Any) -> None:
        """Change the application."""
        with self.world.transaction() as services:
            services.applications.change(self.party.client_id, ChangeApplication(**members), by=THE_OPERATOR)

    def events(self) -> list[AuditEvent]:
        """What is told of consents to the application, newest first."""
        found = self.world.audit_events(event="consent", object_id=self.party.client_id)
        for one in found:
            assert one.actor.id == one.detail["user_id"] == self.person.id
            assert one.organization_id == self.home.id
        return list(found)


@pytest.fixture
def scene(world: World) -> Scene:
    return Scene(world)


def test_who_asks_and_what_for_is_told_once(scene: Scene) -> None:
    ours = "urn:service:iam:user:resourceowner urn:service:iam:org:projects:roles"
    asked = scene.ask(f"openid email offline_access {ours}")
    assert scene.asks
    text = " ".join(scene.browser.page.html.main.get_text().split())
    for told in (
        "Invoices & more asks for access to your account.",
        f"Invoices & more belongs to {scene.owner.name}, {scene.owner.primary_domain}.",
        f"Invoices & more receives your email address, your organization, your roles in {scene.project.name}.",
        "Invoices & more stays connected until you disconnect it on your account page.",
    ):
        assert told in text
    assert "urn:" not in text
    assert MANAGES not in text
    scene.decide()
    assert scene.party.tokens(scene.browser.page, asked).claims["sub"] == scene.person.id
    for _ in range(2):
        scene.silently("openid email", prompt="none")
        scene.silently("openid email offline_access")


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
def test_nothing_goes_out_before(scene: Scene, response_type: str) -> None:
    """OpenID Connect Core §3.1.2.6: consent_required, where no page is allowed."""
    asked = scene.ask(response_type=response_type, prompt="none")
    scene.party.refused(scene.browser.page, asked, "consent_required")
    asked = scene.ask(response_type=response_type)
    assert scene.asks
    request_id = scene.browser.path.split("/")[2]
    scene.browser.open(f"/oauth/v2/authorize/{request_id}")
    assert scene.asks
    scene.decide()
    assert scene.party.tokens(scene.browser.page, asked).claims["sub"] == scene.person.id


def test_the_person_s_own_organization_asks_nothing(world: World) -> None:
    scene = Scene(world)
    at_home = RelyingParty.of(
        world, project_id=world.a_project(scene.home).id, consent=ConsentRule.WHEN_FOREIGN, name="At home"
    )
    scene.party = at_home
    scene.silently("openid profile email offline_access")
    assert scene.events() == []


def test_nor_does_a_project_that_is_granted_to_it(scene: Scene) -> None:
    grant = scene.world.a_grant(scene.project, scene.home)
    tokens = scene.silently("openid offline_access")
    with scene.world.transaction() as services:
        services.project_grants.deactivate(grant.id, by=THE_OPERATOR)
    # It is the application of others now.
    check_refused(scene.party.refresh(tokens.refresh_token), "invalid_grant")
    scene.agreed("openid offline_access")
    again = scene.party.refresh(tokens.refresh_token)
    assert again.status_int == 200


#: Who grants the project to the person's organization, or gives a role from the grant: the manager roles that they hold
#: there, beside all that one may with the project → whether that organization takes part.
TAKING_PART: dict[tuple[str, ...], bool] = {
    (): False,
    ("ORG_OWNER_VIEWER",): False,
    ("ORG_PROJECT_CREATOR",): False,
    ("ORG_USER_MANAGER",): True,
    ("ORG_OWNER",): True,
}


@pytest.mark.parametrize("roles", TAKING_PART)
def test_a_grant_by_the_application_s_side_waives_nothing(world: World, roles: tuple[str, ...]) -> None:
    """Nobody asks an organization before a project is granted to it, and a grant can come from anybody."""
    scene = Scene(world)
    api = _with_the_project(scene, roles)
    members = {"organization_id": scene.home.id, "roles": []}
    grant = api.ask("POST", f"/projects/{scene.project.id}/grants", members).json
    assert grant["accepted"] == TAKING_PART[roles]
    if grant["accepted"]:
        scene.silently(prompt="none")
    else:
        asked = scene.ask(prompt="none")
        scene.party.refused(scene.browser.page, asked, "consent_required")
        scene.agreed()


@pytest.mark.parametrize("roles", [roles for roles in TAKING_PART if roles not in ((), ("ORG_PROJECT_CREATOR",))])
def test_a_grant_that_its_holder_uses_asks_nobody(world: World, roles: tuple[str, ...]) -> None:
    scene = Scene(world)
    with world.transaction() as services:
        services.projects.add_role(scene.project.id, AddProjectRole(key="reader", display_name="Reader"))
    by_owner = _with_the_project(scene, ())
    members = {"organization_id": scene.home.id, "roles": ["reader"]}
    grant = by_owner.ask("POST", f"/projects/{scene.project.id}/grants", members).json
    colleague = world.a_person(scene.home)
    given = {"user_id": colleague.id, "roles": ["reader"]}
    api = _with_the_project(scene, roles)
    assert api.ask("POST", f"/project-grants/{grant['id']}/user-grants", given).status_int == 201
    assert by_owner.ask("GET", f"/project-grants/{grant['id']}").json["accepted"] == TAKING_PART[roles]
    events = world.audit_events(event="project_grant.accepted", object_id=grant["id"])
    assert [one.organization_id for one in events] == [scene.home.id] * TAKING_PART[roles]
    scene.ask()
    assert scene.asks != TAKING_PART[roles]


def _with_the_project(scene: Scene, roles: tuple[str, ...]) -> Api:
    """The API for an owner of the application's organization, with these roles in the person's."""
    robot = scene.world.a_robot(scene.owner)
    scene.world.make_manager(robot, "ORG_OWNER")
    for role in roles:
        scene.world.make_manager(robot, role, resource=organization_resource(scene.home.id))
    return Api.of(robot)


def test_more_scopes_ask_again_and_fewer_do_not(scene: Scene) -> None:
    scene.agreed("openid email profile")
    for scope in ("openid", "openid profile", "openid email profile"):
        scene.silently(scope)
    scene.agreed("openid phone")
    scene.silently("openid email profile phone")
    scene.agreed("openid offline_access")
    other = RelyingParty.of(scene.world, project_id=scene.project.id, consent=ConsentRule.WHEN_FOREIGN)
    scene.party = other
    scene.agreed("openid")


#: Scope → what the application may know the person by then, beside the number of the account.
KNOWN_BY: dict[str, set[str]] = {
    "openid": set(),
    "openid offline_access": set(),
    "openid phone address": set(),
    "openid email": {"email"},
    "openid profile": {"user name", "login name", "name"},
    "openid urn:service:iam:user:resourceowner": {"organization", "domain"},
    "openid email profile urn:service:iam:user:resourceowner": {
        "email", "user name", "login name", "name", "organization", "domain",
    },
}  # fmt: skip


@pytest.mark.parametrize("format", ["opaque", "jwt"])
@pytest.mark.parametrize("scope", KNOWN_BY)
def test_no_more_is_told_than_was_agreed_to(world: World, scope: str, format: str) -> None:  # noqa: A002
    """By whatever answer or token: "receives only the number of your account" is meant."""
    scene = Scene(world, access_token_type=format, id_token_userinfo_assertion=True)
    with world.transaction() as services:
        services.users.change_profile(scene.person.id, ChangeProfile(email="countess@ada.example"))
    asked = scene.ask(scope)
    only_a_number = "receives only the number of your account" in scene.browser.page.text
    assert only_a_number == (scope in ("openid", "openid offline_access"))
    scene.decide()
    tokens = scene.party.tokens(scene.browser.page, asked)
    api = world.an_application(scene.project.id)
    told = [
        json.dumps(tokens.claims),
        json.dumps(world.client.userinfo(tokens.access_token).json),
        *(json.dumps(world.client.introspect(tokens.access_token, one).json) for one in (scene.party.credentials, api)),
        json.dumps(decoded(tokens.access_token)[1]) if format == "jwt" else "",
    ]
    person, home = scene.person, scene.home
    names = {
        "email": "countess@ada.example",
        "user name": person.user_name,
        "login name": f"{person.user_name}@{home.primary_domain}",
        "name": "Lovelace",
        "organization": home.id,
        "domain": home.primary_domain,
    }
    found = {name for name, value in names.items() if value in "".join(told).replace(scene.person.id, "")}
    by_login_name = {"domain"} if "login name" in found else set()
    assert found - by_login_name == KNOWN_BY[scope] - by_login_name


def test_words_that_are_dropped_ask_nothing(scene: Scene) -> None:
    scene.agreed("openid")
    scene.silently("openid unheard_of")


@pytest.mark.parametrize(
    ("rule", "at_home", "asks"),
    [
        (ConsentRule.WHEN_FOREIGN, True, False),
        (ConsentRule.WHEN_FOREIGN, False, True),
        (ConsentRule.ALWAYS, True, True),
        (ConsentRule.ALWAYS, False, True),
        (ConsentRule.NEVER, True, False),
        (ConsentRule.NEVER, False, False),
    ],
)
def test_an_application_says_who_is_asked(world: World, rule: ConsentRule, at_home: bool, asks: bool) -> None:
    scene = Scene(world)
    owner = scene.home if at_home else scene.owner
    scene.party = RelyingParty.of(world, project_id=world.a_project(owner).id, consent=rule)
    if asks:
        scene.agreed()
    for _ in range(2):
        scene.silently()


def test_a_refusal_ends_the_request_and_is_not_remembered(scene: Scene) -> None:
    for _ in range(2):
        asked = scene.ask()
        assert scene.asks
        scene.decide("refuse")
        scene.party.refused(scene.browser.page, asked, "access_denied")
    scene.agreed()
    assert [one.event for one in scene.events()] == ["consent.given", "consent.refused", "consent.refused"]


def test_what_was_agreed_to_stays_when_more_is_refused(scene: Scene) -> None:
    scene.agreed("openid")
    asked = scene.ask("openid phone")
    scene.decide("refuse")
    scene.party.refused(scene.browser.page, asked, "access_denied")
    scene.silently("openid")


@pytest.mark.parametrize("decision", [{}, {"decision": ""}, {"decision": "maybe"}])
def test_a_form_without_a_decision_decides_nothing(scene: Scene, decision: dict[str, str]) -> None:
    scene.ask()
    form = dict(scene.browser.form("page-form").submit_fields())
    scene.browser.send(scene.browser.path, {**form, **decision}, by=scene.browser.login_url)
    assert scene.asks
    assert scene.events() == []


def test_nobody_agrees_for_somebody_else(scene: Scene) -> None:
    """Who was chosen in another window meanwhile was not asked."""
    stranger = scene.world.a_person()
    scene.ask(prompt="consent")
    form = dict(scene.browser.form("page-form").submit_fields()) | {"account": stranger.id, "decision": "allow"}
    scene.browser.send(scene.browser.path, form, by=scene.browser.login_url)
    assert scene.asks
    assert scene.events() == []


def test_nobody_agrees_to_more_than_was_shown(scene: Scene) -> None:
    """The application is changed while the page stands there: what it gets now is shown, and asked again."""
    scene.change(grant_types=frozenset({"authorization_code"}))
    asked = scene.ask("openid offline_access")
    assert "stays connected" not in scene.browser.page.text
    scene.change(grant_types=frozenset({"authorization_code", "refresh_token"}))
    scene.decide()
    assert scene.asks
    assert "stays connected" in scene.browser.page.text
    assert scene.events() == []
    scene.decide()
    assert scene.party.tokens(scene.browser.page, asked).scope == ["openid", "offline_access"]


def test_it_is_asked_after_the_password_of_whoever_signs_in(world: World) -> None:
    scene = Scene(world)
    scene.browser = Browser(world)
    login_name = give_password(world, scene.person)
    asked = scene.ask()
    scene.browser.sign_in(login_name, PASSWORD)
    assert scene.asks
    assert login_name in scene.browser.page.text
    scene.decide()
    assert scene.party.tokens(scene.browser.page, asked).claims["sub"] == scene.person.id
    [event] = scene.events()
    assert event.actor.id == scene.person.id


def test_prompt_consent_asks_again_whatever_was_given(world: World) -> None:
    """Also in one's own organization, and where nobody is asked."""
    for members in ({}, {"consent": ConsentRule.NEVER}):
        scene = Scene(world, **members)
        for _ in range(2):
            scene.agreed(prompt="consent")
        scene.silently()
        assert [one.event for one in scene.events()] == ["consent.given"] * 2


def test_who_is_refused_anyhow_is_not_asked(scene: Scene) -> None:
    """By the project's own check of roles, or for a scope that cannot be honoured."""
    asked = scene.ask(f"openid {scene.world.audience_scope(scene.world.a_project().id)}")
    scene.party.refused(scene.browser.page, asked, "invalid_scope")
    with scene.world.transaction() as services:
        services.projects.change(scene.project.id, ChangeProject(check_roles=True), by=THE_OPERATOR)
    asked = scene.ask()
    scene.party.refused(scene.browser.page, asked, "access_denied")
    assert scene.events() == []


def test_it_is_listed_in_the_account_and_taken_back_there(scene: Scene) -> None:
    """Security 7.4: access and refresh tokens and codes end at once, and the next sign-in asks."""
    tokens = scene.agreed("openid email offline_access")
    asked = scene.ask("openid email")
    code = scene.party.code(scene.browser.page, asked)
    listed = scene.browser.open("/account/applications").html.main.get_text()
    assert "Invoices & more" in listed
    assert "Your email address" in listed
    scene.browser.open(f"/account/applications/{scene.party.client_id}/disconnect")
    scene.browser.submit(form="page-form")
    assert "Invoices & more" not in scene.browser.open("/account/applications").html.main.get_text()
    assert scene.world.client.userinfo(tokens.access_token).status_int == 401
    check_inactive(scene.world.client.introspect(tokens.access_token, scene.party.credentials))
    check_refused(scene.party.refresh(tokens.refresh_token), "invalid_grant")
    check_refused(scene.party.redeem(code, asked), "invalid_grant")
    assert [one.event for one in scene.events()] == ["consent.withdrawn", "consent.given"]
    assert scene.events()[0].detail["scope"] == ["openid", "email", "offline_access"]
    scene.agreed("openid")


def test_it_is_listed_when_the_tokens_are_over(scene: Scene) -> None:
    scene.agreed("openid email")
    scene.world.clock.advance(days=100)
    scene.browser.start_session(scene.person)
    listed = scene.browser.open("/account/applications").html.main.get_text()
    assert "Invoices & more" in listed
    scene.browser.open(f"/account/applications/{scene.party.client_id}/disconnect")
    scene.browser.submit(form="page-form")
    assert "Invoices & more" not in scene.browser.open("/account/applications").html.main.get_text()
    scene.agreed("openid")


def test_managers_of_the_person_see_it_and_take_it_back(scene: Scene) -> None:
    """With the permission that they have for sessions. The event tells who did it."""
    world = scene.world
    tokens = scene.agreed("openid email offline_access")
    robot = world.a_robot(scene.home)
    world.make_manager(robot, "ORG_USER_MANAGER")
    api = Api.of(robot)
    path = f"/users/{scene.person.id}/connections"
    [row] = api.list(path)
    shown = {name: row[name] for name in ("id", "application", "organization", "scope", "offline")}
    assert shown == {
        "id": scene.party.client_id,
        "application": "Invoices & more",
        "organization": scene.owner.name,
        "scope": ["openid", "email", "offline_access"],
        "offline": True,
    }
    higher = world.make_manager(scene.person, "ORG_OWNER")
    check_api_error(api.ask("DELETE", f"{path}/{row['id']}"), 403, "forbidden")
    with world.transaction() as services:
        services.managers.remove(higher.id, by=THE_OPERATOR)
    api.delete(f"{path}/{row['id']}")
    assert api.list(path) == []
    check_inactive(world.client.introspect(tokens.access_token, scene.party.credentials))
    check_refused(scene.party.refresh(tokens.refresh_token), "invalid_grant")
    scene.ask()
    assert scene.asks
    check_api_error(api.ask("DELETE", f"{path}/{row['id']}"), 404, "not_found")
    assert world.audit_events(event="consent.withdrawn")[0].actor.id == robot.id


def test_in_the_console_too(scene: Scene) -> None:
    scene.agreed("openid email")
    manager = scene.world.a_person(scene.home)
    scene.world.make_manager(manager, "ORG_USER_MANAGER")
    console = Browser(scene.world)
    console.start_session(manager)
    console.open(f"/console/users/{scene.person.id}")
    assert scene.owner.name in console.page.html.select_one("#connections").get_text()
    console.click("Disconnect … Invoices & more")
    page = console.submit(form="page-form")
    assert "The application is disconnected." in page
    assert "No application has access to the account." in page
    scene.ask()
    assert scene.asks


def test_of_one_person_it_says_nothing_for_another(scene: Scene) -> None:
    scene.agreed()
    scene.person = scene.world.a_person(scene.home)
    scene.browser = Browser(scene.world)
    scene.browser.start_session(scene.person)
    scene.agreed()


# --- managing in somebody's name --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ConsentRule)
@pytest.mark.parametrize("at_home", [True, False])
def test_managing_asks_everybody_in_plain_words(world: World, rule: ConsentRule, at_home: bool) -> None:
    scene = Scene(world)
    owner = scene.home if at_home else scene.owner
    scene.party = RelyingParty.of(world, project_id=world.a_project(owner).id, consent=rule, may_manage=True)
    world.make_manager(scene.person, "ORG_OWNER")
    scope = f"openid {world.audience_scope()}"
    asked = scene.ask(scope, prompt="none")
    scene.party.refused(scene.browser.page, asked, "consent_required")
    scene.ask(scope)
    assert scene.asks
    assert MANAGES in scene.browser.page.html.main.get_text()
    tokens = scene.agreed(scope)
    assert world.client.management("/me", tokens.access_token).status_int == 200
    assert world.client.introspect(tokens.access_token, world.introspector).json["active"] is True
    scene.silently(scope, prompt="none")
    assert MANAGES in scene.browser.open("/account/applications").text
    # Without the scope there is nothing of the kind to agree to, nor in the audience.
    if at_home and rule is not ConsentRule.ALWAYS:
        scene.browser.open(f"/account/applications/{scene.party.client_id}/disconnect")
        scene.browser.submit(form="page-form")
        tokens = scene.silently("openid")
        assert world.client.management("/me", tokens.access_token).status_int == 401


def test_the_right_to_manage_ends_at_once(world: World) -> None:
    """Security 7.4: with the mark, and with the consent."""
    scene = Scene(world, may_manage=True)
    world.make_manager(scene.person, "ORG_OWNER")
    scope = f"openid offline_access {world.audience_scope()}"
    tokens = scene.agreed(scope)
    scene.change(may_manage=False)
    assert world.client.management("/me", tokens.access_token).status_int == 401
    check_inactive(world.client.introspect(tokens.access_token, world.introspector))
    check_refused(scene.party.refresh(tokens.refresh_token), "invalid_scope")
    asked = scene.ask(scope)
    scene.party.refused(scene.browser.page, asked, "invalid_scope")
    scene.change(may_manage=True)
    assert world.client.management("/me", tokens.access_token).status_int == 200
    scene.browser.open(f"/account/applications/{scene.party.client_id}/disconnect")
    scene.browser.submit(form="page-form")
    assert world.client.management("/me", tokens.access_token).status_int == 401


def test_an_application_of_the_own_project_manages_only_when_asked_to(world: World) -> None:
    """Its own project is in no audience unasked: nobody would have agreed to it."""
    with world.reading() as services:
        own = services.organizations.get(world.instance.organization_id)
    scene = Scene(world, organization=own)
    scene.party = RelyingParty.of(
        world, project_id=world.instance.project_id, consent=ConsentRule.WHEN_FOREIGN, may_manage=True
    )
    world.make_manager(scene.person, "ORG_OWNER")
    tokens = scene.agreed("openid")
    assert world.client.management("/me", tokens.access_token).status_int == 401
    tokens = scene.agreed("openid urn:service:iam:org:project:id:service:aud")
    assert world.client.management("/me", tokens.access_token).status_int == 200


@pytest.mark.storages("memory")  # a choice of plugins
@pytest.mark.parametrize("parameters", [{}, {"prompt": "consent"}])
def test_without_a_page_for_it_nobody_has_agreed(make_world: MakeWorld, parameters: dict[str, str]) -> None:
    """As with signing in: what no plugin asks is not taken for granted."""
    plugins = " ".join(one for one in PLUGINS.split() if one not in ("login", "account", "console"))
    scene = Scene(make_world(**{"identity.plugins": f"memory {plugins}"}))
    asked = scene.ask(**parameters)
    scene.party.refused(scene.browser.page, asked, "consent_required")

"""Account pages, each with a function that opens it."""

from datetime import timedelta

from identity.services.access_control import Principal
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from tests.browser.page_scenarios import LONG_WORD, BrowserScenario, page


@page("/account/profile", main=True, chinese=True, names=True)
def profile(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/profile")


@page("/account/profile")
def profile_saved(scene: BrowserScenario) -> None:
    profile(scene)
    scene.tab.send(nickname="Änne")


@page("/account/profile", main=True, status=422)
def profile_errors(scene: BrowserScenario) -> None:
    profile(scene)
    wrong = {"email": "anna", "phone": "none", "zoneinfo": "Berlin"}
    scene.tab.run("for (const one of document.querySelectorAll('details')) if (!one.dataset.menu) one.open = true")
    scene.tab.send(given_name="", family_name="", **wrong, birthdate="yesterday", website="acme")


@page("/account/profile", names=True, status=409)
def profile_conflict(scene: BrowserScenario) -> None:
    profile(scene)
    tab = scene.profile.tab()
    tab.open(scene.tab.url)
    tab.send(nickname="Änne")
    scene.tab.send(nickname="Anni")


@page("/account/security", main=True)
def security(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/security")


def _factor(scene: BrowserScenario) -> str:
    """Enrol a factor and remember this browser; returns the factor's id."""
    user_id = scene.person.user.id
    with scene.site.world.transaction_services() as services:
        subject = services.storage.users.find_subject(user_id)
        assert subject is not None
        enrolment = services.factors.enrol(subject, "pager", {}, name=LONG_WORD if scene.long else "Phone")
        services.remembered_browsers.remember(subject, "Firefox/1 Windows", timedelta(days=30))
    return enrolment.id


@page("/account/security", main=True, names=True)
def security_with_factors(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    _factor(scene)
    scene.open("/account/security")


@page("/account/factors/1/rename", names=True)
def factor_rename(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    scene.open(f"/account/factors/{_factor(scene)}/rename")


@page("/account/factors/1/remove", names=True)
def factor_remove(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    scene.open(f"/account/factors/{_factor(scene)}/remove")


def _provider(scene: BrowserScenario) -> str:
    """Create an identity provider of the user's organization; returns its id."""
    world, organization = scene.site.world, scene.organization
    with world.read_only_services() as services:
        providers = [
            provider
            for provider in services.upstream_providers.list_available(organization.id)
            if not provider.everywhere
        ]
    name = LONG_WORD if scene.long else "Elsewhere"
    return (providers or [world.make_upstream_provider(organization, name=name)])[0].id


@page("/account/identities/new/1", names=True)
def identity_link(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    scene.open(f"/account/identities/new/{_provider(scene)}")


@page("/account/identities/1/remove", main=True, names=True)
def identity_unlink(scene: BrowserScenario) -> None:
    from identity.plugins.upstream.linked_identities import LinkedIdentities
    from identity.plugins.upstream.provider_clients import ExternalUser

    _sign_in_for(scene, "/account/profile")
    world, provider_id = scene.site.world, _provider(scene)
    with world.transaction_services() as services:
        links = LinkedIdentities(services.record_service(world.app.registry.upstream.name_space), services.now)
        external_user = ExternalUser(issuer="https://login.elsewhere.example", subject=scene.person.user.id, claims={})
        link = links.add(services.upstream_providers.get(provider_id), external_user, scene.person.user.id)
    scene.open(f"/account/identities/{link.id}/remove")


@page("/account/browsers")
def browsers(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    _factor(scene)
    scene.open("/account/browsers")


@page("/account/browsers")
def browsers_empty(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/browsers")


@page("/account/password", main=True)
def account_password(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/password")


@page("/account/password", status=422)
def account_password_errors(scene: BrowserScenario) -> None:
    account_password(scene)
    scene.tab.send(current_password="", new_password="short", new_password_again="other")


def _sign_in_for(scene: BrowserScenario, path: str) -> None:
    scene.open(path)
    scene.tab.send(login_name=scene.person.login_name)
    scene.tab.send(password=scene.person.password)


@page("/account/sessions", main=True, names=True)
def sessions(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/sessions")
    for _ in range(2):
        scene.site.world.make_browser_session(scene.person.user)
    scene.tab.reload()


@page("/account/applications", main=True, names=True)
def applications(scene: BrowserScenario) -> None:
    _connect(scene)
    scene.open("/account/applications")


def _connect(scene: BrowserScenario) -> None:
    scene.sign_in()
    shop = scene.site.make_application("Shop", scene.organization)
    for party, scope in ((scene.party, "openid profile email offline_access"), (shop, "openid")):
        authorization = scene.site.ask(scene.tab, party, scope=scope)
        if "/consent" in scene.tab.url:
            scene.tab.send()
        code = scene.site.application.received[-1].members["code"]
        assert party.redeem(code, authorization).status_int == 200


@page("/account/applications")
def applications_empty(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/applications")


def _open_agents(scene: BrowserScenario) -> str:
    """Create two agents, the first of which is stopped; returns its id."""
    _sign_in_for(scene, "/account/profile")
    world = scene.site.world
    agent = world.make_agent(scene.person.user)
    with world.transaction_services() as services:
        services.agents.stop_all_of(scene.person.user.id, principal=Principal.OPERATOR)
    world.make_agent(scene.person.user)
    return agent.id


@page("/account/agents", main=True, names=True)
def agents(scene: BrowserScenario) -> None:
    _open_agents(scene)
    scene.open("/account/agents")


@page("/account/agents")
def agents_empty(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/agents")


@page("/account/agents/1", main=True, names=True)
def agent(scene: BrowserScenario) -> None:
    agent_id = _open_agents(scene)
    scene.open(f"/account/agents/{agent_id}")


@page("/account/agents/1/remove", main=True, names=True)
def agent_remove(scene: BrowserScenario) -> None:
    agent_id = _open_agents(scene)
    scene.open(f"/account/agents/{agent_id}/remove")


@page("/account/agents/new", main=True)
def agent_new(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    scene.open("/account/agents/new")


@page("/account/agents/new", main=True, names=True)
def agent_created(scene: BrowserScenario) -> None:
    agent_new(scene)
    scene.tab.send(display_name="Assistant")


@page("/account/applications/1/disconnect", names=True)
def application_disconnect(scene: BrowserScenario) -> None:
    _connect(scene)
    scene.open(f"/account/applications/{scene.party.client_id}/disconnect")


@page("/account/activity", main=True, names=True)
def activity(scene: BrowserScenario) -> None:
    _sign_in_for(scene, "/account/profile")
    scene.tab.send(nickname="Änne")
    scene.open("/account/activity")


@page("/account/activity/not-me")
def not_me(scene: BrowserScenario) -> None:
    activity(scene)
    scene.tab.all(".table__actions a")[0].click()


@page("/account/data")
def data(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/account/data")


def _leave(scene: BrowserScenario) -> None:
    with scene.site.world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy(account_deletion=True))
    _sign_in_for(scene, "/account/profile")


@page("/account/data")
def data_and_deletion(scene: BrowserScenario) -> None:
    _leave(scene)
    scene.open("/account/data")


@page("/account/data/delete", main=True, names=True)
def delete_account(scene: BrowserScenario) -> None:
    _leave(scene)
    scene.open("/account/data/delete")


@page("/leaving")
def leaving(scene: BrowserScenario) -> None:
    delete_account(scene)
    scene.tab.send(confirm_name=scene.person.user.user_name)


@page("/login/1/keep", main=True, names=True)
def keep(scene: BrowserScenario) -> None:
    leaving(scene)
    _sign_in_for(scene, "/account/profile")


@page("/account/profile", names=True)
def account_menu(scene: BrowserScenario) -> None:
    scene.site.start_session(scene.profile, scene.make_user("Bert", "Sommer"))
    profile(scene)
    scene.tab.find(".menu--end > summary").click()

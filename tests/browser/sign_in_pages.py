"""Pages of sign-in, logout, mailed links and errors, each with a function that opens it."""

from urllib.parse import urlencode

from identity.domain.applications import ConsentRule
from identity.domain.attempts import MAX_ATTEMPTS
from identity.domain.permissions import Resource
from identity.domain.upstream_providers import UpstreamKind
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.projects import ChangeProject
from tests.browser.account_pages import profile
from tests.browser.page_scenarios import LONG, LONG_WORD, NEW, BrowserScenario, page
from tests.plugins.device_authorization.device import GRANT_TYPES, Device
from tests.plugins.metadata_host import install_url_client

# --- sign-in ----------------------------------------------------------------------------------------------------------


@page("/login/1", main=True, chinese=True, names=True)
def login_name(scene: BrowserScenario) -> None:
    scene.ask(scope="openid profile email")


@page("/login/1", status=422)
def login_name_empty(scene: BrowserScenario) -> None:
    scene.ask()
    scene.tab.send(login_name="")


@page("/login/1/password", main=True, names=True)
def password(scene: BrowserScenario) -> None:
    scene.ask_with_name(scope="openid profile email phone offline_access")


@page("/login/1/password", main=True, names=True, status=422)
def password_wrong(scene: BrowserScenario) -> None:
    scene.ask_with_name(scope="openid profile email")
    scene.tab.send(password="not hers")


@page("/login/1/password", status=429)
def password_delayed(scene: BrowserScenario) -> None:
    scene.ask_with_name()
    scene.site.try_passwords(scene.person, 10)
    scene.tab.send(password="not hers")


@page("/login/1/password", status=429)
def password_locked(scene: BrowserScenario) -> None:
    scene.site.try_passwords(scene.person, MAX_ATTEMPTS)
    scene.ask_with_name()
    scene.tab.send(password="not hers")


@page("/login/1/password", names=True)
def password_again(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.ask(prompt="login")


@page("/login/1/password", names=True, status=422)
def wrong_organization(scene: BrowserScenario) -> None:
    navy = scene.site.world.make_organization()
    scene.ask_with_name(scope=f"openid urn:service:iam:org:id:{navy.id}")
    scene.tab.send(password=scene.person.password)


@page("/login/1/accounts", main=True, names=True)
def choose_an_account(scene: BrowserScenario) -> None:
    for person in (scene.person, scene.make_user("Bert", "Sommer"), scene.make_user("Chiara", "Neri")):
        scene.site.start_session(scene.profile, person)
    scene.ask(prompt="select_account")


@page("/login/1/accounts", names=True)
def choose_an_account_signed_out_and_foreign(scene: BrowserScenario) -> None:
    navy = scene.site.world.make_organization()
    foreign = scene.site.make_user("Grace", "Hopper", organization=navy)
    for person in (scene.person, foreign):
        scene.site.start_session(scene.profile, person)
    scene.site.world.clock.advance(hours=13)
    scene.site.start_session(scene.profile, scene.make_user("Bert", "Sommer"))
    scene.ask(prompt="select_account", scope=f"openid urn:service:iam:org:id:{scene.organization.id}")


@page("/login/1/register", main=True, names=True)
def register(scene: BrowserScenario) -> None:
    scene.ask(prompt="create")


@page("/login/1/register", main=True, status=422)
def register_errors(scene: BrowserScenario) -> None:
    scene.ask(prompt="create")
    scene.tab.send(user_name="anna berg", given_name="Anna", email="anna", password="short", password_again="other")


@page("/login/1/password/change", main=True, names=True)
def new_password(scene: BrowserScenario) -> None:
    scene.person = scene.make_user(must_change=True)
    scene.ask_with_name()
    scene.tab.send(password=scene.person.password)


@page("/login/1/password/change", status=422)
def new_password_errors(scene: BrowserScenario) -> None:
    new_password(scene)
    scene.tab.send(new_password="short", new_password_again="other")


@page("/login/1/consent", main=True, names=True)
def consent(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.ask(prompt="consent", scope="openid profile email address phone offline_access")


def _request_of_device(scene: BrowserScenario) -> str:
    """The code of a new request of a device."""
    world = scene.site.world
    owner = scene.organization
    project = world.make_project(owner)
    name = LONG_WORD if scene.long else "Living room TV"
    client = world.make_public_application(
        project.id, name=name, grant_types=GRANT_TYPES, response_types=frozenset(), consent=ConsentRule.ALWAYS
    )
    code: str = Device(world, client).start("openid profile email offline_access").answer["user_code"]
    return code


@page("/device", main=True)
def device(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/device?user_code=BCDF-GHJK")


@page("/device", status=422)
def device_errors(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/device")
    scene.tab.send(user_code="BCDF-GHJK")


@page("/device/requests/1", main=True, names=True)
def device_confirm(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/device")
    scene.tab.send(user_code=_request_of_device(scene))


@page("/device/approved")
def device_outcome(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/device/approved")


@page("/login/1/consent")
def consent_to_nothing(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.ask(prompt="consent", scope="openid")


@page("/login/1/consent", main=True, names=True)
def consent_of_others(scene: BrowserScenario) -> None:
    """Consent to a third-party application that requests every scope."""
    scene.sign_in()
    world = scene.site.world
    owner = world.make_organization()
    fleet = world.make_project(owner)
    world.make_project_grant(fleet, scene.organization)
    if scene.long:
        with world.transaction_services() as services:
            services.organizations.change(owner.id, ChangeOrganization(name=LONG))
            services.projects.change(fleet.id, ChangeProject(name=LONG_WORD), principal=Principal.OPERATOR)
    foreign = scene.site.make_application(
        LONG_WORD if scene.long else "Parcels", owner, consent=ConsentRule.WHEN_FOREIGN
    )
    ours = f"urn:service:iam:user:resourceowner urn:service:iam:org:projects:roles {world.audience_scope(fleet.id)}"
    scene.site.ask(scene.tab, foreign, scope=f"openid profile email phone offline_access {ours}")


@page("/login/1/consent", main=True, names=True)
def consent_to_manage(scene: BrowserScenario) -> None:
    scene.sign_in()
    party = scene.site.make_application(
        LONG_WORD if scene.long else "Control room", scene.organization, may_manage=True
    )
    scene.site.ask(scene.tab, party, scope=f"openid profile {scene.site.world.audience_scope()}")


@page("/login/1/consent", main=True, names=True)
def consent_to_program(scene: BrowserScenario) -> None:
    """Consent to a client known by its URL, on this device."""
    scene.sign_in()
    name, uris = LONG_WORD[:150] if scene.long else "Code agent", ["http://127.0.0.1/callback"]
    party, _ = install_url_client(scene.site.world, "*", client_name=name, redirect_uris=uris)
    scene.site.ask(scene.tab, party, scope="openid profile email offline_access")


@page("/oauth/v2/authorize", script=False, names=True)
def form_post(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.ask(response_mode="form_post")


@page("/login/1/password", main=True, names=True)
def sign_in_is_done(scene: BrowserScenario) -> None:
    scene.ask_with_name()
    begun = scene.tab.url
    scene.tab.send(password=scene.person.password)
    scene.tab.open(begun)


@page("/login/1", status=410)
def sign_in_took_too_long(scene: BrowserScenario) -> None:
    scene.ask()
    scene.site.world.clock.advance(minutes=31)
    scene.tab.reload()


@page("/login/1", status=400)
def sign_in_of_another_browser(scene: BrowserScenario) -> None:
    tab = scene.make_profile().tab()
    scene.site.ask(tab)
    scene.tab.open(tab.url)


@page("/login/1", status=404)
def sign_in_unknown(scene: BrowserScenario) -> None:
    scene.open("/login/0192f3a7-0000-7000-8000-000000000000")


@page("/login/1", status=422)
def login_name_stale(scene: BrowserScenario) -> None:
    scene.ask()
    scene.tab.run("document.getElementsByName('csrf_token')[0].value = 'x'")
    scene.tab.send(login_name="anna@acme.example")


# --- mailed links -----------------------------------------------------------------------------------------------------


@page("/password/reset", mailing=True, main=True)
def reset_ask(scene: BrowserScenario) -> None:
    scene.open("/password/reset")


@page("/password/reset")
def reset_without_mail(scene: BrowserScenario) -> None:
    scene.open("/password/reset")


def _ask_for_reset(scene: BrowserScenario) -> None:
    scene.person = scene.make_user(email=scene.site.make_email_address())
    scene.open("/password/reset")
    scene.tab.send(login_name=scene.person.login_name)


@page("/password/reset/sent", mailing=True, main=True)
def reset_sent(scene: BrowserScenario) -> None:
    _ask_for_reset(scene)
    scene.site.link_in_mail()


@page("/password/reset/1", mailing=True, main=True, names=True)
def reset_link(scene: BrowserScenario) -> None:
    _ask_for_reset(scene)
    scene.tab.open(scene.site.link_in_mail())


@page("/password/reset/1", mailing=True, status=422)
def reset_errors(scene: BrowserScenario) -> None:
    reset_link(scene)
    scene.tab.send(new_password="short", new_password_again="other")


@page("/password/changed", mailing=True)
def reset_done(scene: BrowserScenario) -> None:
    reset_link(scene)
    scene.tab.send(new_password=NEW, new_password_again=NEW)
    scene.site.world.identity.senders["mail"].send_due()
    scene.site.post.pop_only_message()


@page("/password/reset/1", status=410)
def link_used(scene: BrowserScenario) -> None:
    scene.open(f"/password/reset/{'x' * 43}")


def _register_by_mail(scene: BrowserScenario) -> tuple[str, str]:
    """Submit the registration form; returns user name and mailed link."""
    user_name = f"grace{len(scene.site.world.audit_events())}"
    names = {"user_name": user_name, "given_name": "Grace", "family_name": "Hopper"}
    scene.ask(prompt="create")
    scene.tab.send(**names, email=f"{user_name}@navy.example", password=NEW, password_again=NEW)
    return user_name, scene.site.link_in_mail()


@page("/login/1/register/sent", mailing=True)
def register_sent(scene: BrowserScenario) -> None:
    _register_by_mail(scene)


@page("/register/1", mailing=True, names=True)
def register_link(scene: BrowserScenario) -> None:
    scene.tab.open(_register_by_mail(scene)[1])


@page("/login/1/registered", mailing=True, names=True)
def registered(scene: BrowserScenario) -> None:
    scene.tab.open(_register_by_mail(scene)[1])
    scene.tab.send()
    scene.site.drop_mail()


@page("/register/1", mailing=True)
def register_link_with_a_taken_name(scene: BrowserScenario) -> None:
    user_name, link = _register_by_mail(scene)
    scene.site.make_user("Grace", "Hopper", user_name=user_name)
    scene.tab.open(link)


@page("/email/1", mailing=True, names=True)
def email_link(scene: BrowserScenario) -> None:
    profile(scene)
    scene.tab.send(email=scene.site.make_email_address(), current_password=scene.person.password)
    scene.tab.open(scene.site.link_in_mail())


@page("/email/confirmed", mailing=True)
def email_confirmed(scene: BrowserScenario) -> None:
    email_link(scene)
    scene.tab.send()


@page("/account/profile/email", mailing=True, names=True)
def email_ask(scene: BrowserScenario) -> None:
    scene.person = scene.make_user(email=scene.site.make_email_address())
    scene.sign_in()
    scene.open("/account/profile/email")


# --- logout -----------------------------------------------------------------------------------------------------------


def _logout(scene: BrowserScenario) -> str:
    parameters = {"client_id": scene.party.client_id, "post_logout_redirect_uri": scene.site.application.goodbye}
    return urlencode(parameters)


@page("/sign-out", main=True, names=True)
def sign_out(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open(f"/oauth/v2/endsession?{_logout(scene)}")


@page("/sign-out", names=True)
def sign_out_asked_by_nobody(scene: BrowserScenario) -> None:
    """Logout without id_token_hint, in a browser with two accounts."""
    scene.site.start_session(scene.profile, scene.make_user("Bert", "Sommer"))
    scene.sign_in()
    scene.open("/oauth/v2/endsession")


@page("/sign-out", names=True)
def sign_out_of_one(scene: BrowserScenario) -> None:
    """The service's own page, in a browser with two accounts."""
    scene.site.start_session(scene.profile, scene.make_user("Bert", "Sommer"))
    scene.sign_in()
    scene.open("/sign-out")


@page("/signed-out", main=True, names=True)
def signed_out(scene: BrowserScenario) -> None:
    scene.open(f"/signed-out?{_logout(scene)}")


# --- errors -----------------------------------------------------------------------------------------------------------


@page("/oauth/v2/authorize", main=True, names=True, status=400)
def error_untrusted_redirect(scene: BrowserScenario) -> None:
    scene.ask(redirect_uri="https://elsewhere.example/cb")


@page("/oauth/v2/authorize", status=400)
def error_unknown_application(scene: BrowserScenario) -> None:
    scene.ask(client_id="nobody")


@page("/nothing", main=True, status=404)
def error_not_found(scene: BrowserScenario) -> None:
    scene.open("/nothing")


@page("/console/instance/signing-keys/rotate", main=True, names=True, status=403)
def error_forbidden(scene: BrowserScenario) -> None:
    """The page offers logout and another account."""
    viewer = scene.make_user()
    scene.site.world.assign_manager_role(viewer.user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    scene.site.start_session(scene.profile, viewer)
    scene.open("/console/instance/signing-keys/rotate")


@page("/nothing", main=True, status=404)
def error_not_found_signed_in(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/nothing")


@page("/oauth/v2/authorize", status=413)
def error_too_large(scene: BrowserScenario) -> None:
    scene.open(f"/oauth/v2/authorize?state={'x' * 17000}")


@page("/password/reset", status=403)
def error_other_site(scene: BrowserScenario) -> None:
    program = scene.site.application
    scene.tab.open(program.form_to(f"{scene.site.url}/password/reset", {"login_name": "anna"}))
    scene.tab.press("Win a prize")


@page("/login/1", main=True, names=True)
def login_name_and_providers(scene: BrowserScenario) -> None:
    world, organization = scene.site.world, scene.site.world.make_organization()
    for name in (LONG_WORD, LONG) if scene.long else ("Elsewhere", "GitHub"):
        # A provider without discovery, because the test follows links.
        world.make_upstream_provider(organization, name=name, kind=UpstreamKind.GITHUB, issuer="")
    scene.site.ask(scene.tab, scene.site.make_application("Invoices", organization))

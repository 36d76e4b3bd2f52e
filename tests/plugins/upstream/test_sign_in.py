"""Signing in at a provider elsewhere: who one is here, and how it is told."""

from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from identity.services.access_control import OPERATOR_PRINCIPAL
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import Browser
from tests.plugins.upstream.conftest import UpstreamScenario

NAMES = {"given_name": "Ada", "family_name": "Lovelace", "email": "ada@people.example", "preferred_username": "ada"}


def test_first_upstream_sign_in_creates_account(
    scene: UpstreamScenario,
) -> None:
    scene.fake_provider.claims = dict(NAMES)
    authorization = scene.ask()
    tokens = scene.party.obtain_tokens(scene.sign_in(), authorization)
    [event] = scene.world.audit_events(event="user.registered", organization_id=scene.organization.id)
    assert tokens.claims["sub"] == event.object_id
    person = scene.world.operator_services.users.get(event.object_id)
    assert (person.user_name, person.profile.name, person.profile.email) == ("ada", "Ada Lovelace", NAMES["email"])
    assert not person.profile.email_verified
    assert "amr" not in tokens.claims
    [linked] = scene.world.audit_events(event="linked_identity.added", object_id=person.id)
    assert linked.detail["provider_id"] == scene.provider.id


def registered(scene: UpstreamScenario) -> int:
    """How many people have got an account by it."""
    return len(scene.world.audit_events(event="user.registered", organization_id=scene.organization.id))


def test_who_comes_again_is_the_same_person_with_the_names_of_now(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = dict(NAMES)
    first = scene.party.obtain_tokens(scene_sign_in(scene, authorization := scene.ask()), authorization)
    scene.fake_provider.claims = {**NAMES, "family_name": "King", "email": "other@people.example"}
    scene.browser = Browser(scene.world)
    second = scene.party.obtain_tokens(scene_sign_in(scene, authorization := scene.ask()), authorization)
    assert first.claims["sub"] == second.claims["sub"]
    assert registered(scene) == 1
    profile = scene.world.operator_services.users.get(first.claims["sub"]).profile
    assert (profile.family_name, profile.email) == ("King", NAMES["email"])


def scene_sign_in(scene: UpstreamScenario, auth_request: object) -> object:
    return scene.sign_in()


def test_other_subject_is_another_user(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {**NAMES, "email_verified": True}
    scene.ask()
    scene.sign_in()
    scene.fake_provider.subject = "another"
    scene.browser = Browser(scene.world)
    scene.ask()
    scene.sign_in()
    assert registered(scene) == 2
    names = {user.user_name for user in people(scene)}
    assert names == {"ada", "ada-2"}


def people(scene: UpstreamScenario) -> list[object]:
    from identity.storage.stores.users import UserKind

    with scene.world.read_only_services() as services:
        return list(services.storage.users.page(scene.organization.id, UserKind.HUMAN))


def test_nobody_is_found_by_an_address(scene: UpstreamScenario) -> None:
    person = make_user_with_email(scene, NAMES["email"])
    scene.fake_provider.claims = {**NAMES, "email_verified": True}
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"] != person.id


def make_user_with_email(scene: UpstreamScenario, email: str) -> object:
    from identity.services.commands.users import CreateHumanUser

    with scene.world.transaction_services() as services:
        command = CreateHumanUser(user_name="known", given_name="Kim", family_name="Known", email=email)
        return services.users.create(scene.organization.id, command)


def domain_of(scene: UpstreamScenario) -> str:
    return f"{scene.organization.id}.example"


def proven(scene: UpstreamScenario, domain: str) -> None:
    from identity.services.commands.organizations import AddDomain

    with scene.world.transaction_services() as services:
        services.domains.add(scene.organization.id, AddDomain(domain=domain))
        services.domains.assert_domain(scene.organization.id, domain, principal=OPERATOR_PRINCIPAL)


def test_a_trusted_provider_finds_who_has_a_verified_address_of_a_proven_domain(scene: UpstreamScenario) -> None:
    person = make_user_with_email(scene, f"kim@{domain_of(scene)}")
    proven(scene, domain_of(scene))
    scene.change(trust_email=True)
    scene.fake_provider.claims = {"email": f"kim@{domain_of(scene)}", "email_verified": True}
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"] == person.id


@pytest.mark.parametrize("lacks", ["trust", "proof of the domain", "verified", "no manager", "vouched for"])
def test_a_trusted_address_finds_nobody_if_anything_is_missing(scene: UpstreamScenario, lacks: str) -> None:
    person = make_user_with_email(scene, f"kim@{domain_of(scene)}")
    if lacks != "proof of the domain":
        proven(scene, domain_of(scene))
    if lacks == "no manager":
        scene.world.assign_manager_role(person, "ORG_OWNER")
    if lacks == "vouched for":
        with scene.world.transaction_services() as services:
            services.storage.users.update(replace(person, registered=True, version=person.version + 1))
    scene.change(trust_email=lacks != "trust")
    scene.fake_provider.claims = {"email": f"kim@{domain_of(scene)}", "email_verified": lacks != "verified"}
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"] != person.id


def test_without_the_setting_nobody_gets_an_account(scene: UpstreamScenario) -> None:
    scene.change(create_accounts=False)
    scene.ask()
    scene.sign_in()
    assert scene.browser.path.endswith("/upstream/unlinked")
    assert not scene.browser.session_cookies
    assert registered(scene) == 0
    [refused] = scene.world.audit_events(event="authentication.refused", object_id=scene.provider.id)
    assert refused.reason == "no account is linked"


def test_an_account_that_is_deactivated_is_of_no_use(scene: UpstreamScenario) -> None:
    authorization = scene.ask()
    tokens = scene.party.obtain_tokens(scene.sign_in(), authorization)
    scene.world.operator_services.users.deactivate(tokens.claims["sub"])
    scene.browser = Browser(scene.world)
    scene.ask()
    answer = scene.sign_in()
    assert answer.status_int == 403
    assert registered(scene) == 1


def test_methods_count_where_the_provider_is_trusted_with_them(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {"amr": ["pwd", "otp", "remembered", 7, "x" * 999]}
    authorization = scene.ask()
    assert "amr" not in scene.party.obtain_tokens(scene.sign_in(), authorization).claims
    scene.change(trust_methods=True)
    scene.browser = Browser(scene.world)
    authorization = scene.ask()
    claims = scene.party.obtain_tokens(scene.sign_in(), authorization).claims
    assert claims["amr"] == ["pwd", "otp", "mfa"]


def test_claims_come_by_the_providers_own_table(scene: UpstreamScenario) -> None:
    scene.change(claims=("family_name = sn", "given_name =", "user_name = uid"))
    scene.fake_provider.claims = {
        **NAMES,
        "sn": "Byron",
        "uid": "a.byron",
        "picture": "javascript:alert(1)",
        "locale": 7,
    }
    scene.ask()
    scene.sign_in()
    [person] = people(scene)
    assert (person.user_name, person.profile.family_name, person.profile.given_name) == ("a.byron", "Byron", "")
    assert person.profile.picture == ""


def test_an_application_names_the_provider_and_nobody_is_asked(scene: UpstreamScenario) -> None:
    scene.ask(idp=scene.provider.id)
    scene.go_straight()
    assert str(scene.browser.external_redirect).startswith(f"{scene.fake_provider.issuer}/authorize?")


def test_a_login_name_of_a_proven_domain_leads_there_also_if_nobody_has_it(scene: UpstreamScenario) -> None:
    proven(scene, domain_of(scene))
    scene.ask()
    scene.browser.submit({"login_name": f"nobody@{domain_of(scene)}"})
    assert scene.browser.sign_in_step == "password"
    scene.change(by_domain=True)
    scene.ask()
    scene.browser.submit({"login_name": f"nobody@{domain_of(scene)}"})
    scene.go_straight()
    sent = dict(parse_qsl(urlsplit(str(scene.browser.external_redirect)).query))
    assert sent["login_hint"] == f"nobody@{domain_of(scene)}"


def test_who_is_to_sign_in_anew_is_asked_to_do_so_there(scene: UpstreamScenario) -> None:
    scene.ask(prompt="login")
    sent = dict(parse_qsl(urlsplit(scene.go()).query))
    assert (sent["prompt"], sent["max_age"]) == ("login", "0")


def test_provider_auth_time_is_enforced(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {"auth_time": scene.world.clock.seconds - 3600}
    scene.ask(prompt="login")
    answer = scene.sign_in()
    assert answer.status_int == 400
    scene.ask()
    assert scene.party.redirect_uri in str(scene.sign_in().location)


def test_buttons_are_those_of_the_organization_and_of_all(scene: UpstreamScenario) -> None:
    foreign = scene.world.make_upstream_provider()
    for_all = scene.world.make_upstream_provider(everywhere=True)
    resting = scene.world.make_upstream_provider(scene.organization)
    scene.world.operator_services.upstream_providers.deactivate(resting.id)
    scene.ask()
    page = scene.browser.page
    assert [item.text for item in page.html.select(".login__options a")] == [
        scene.button,
        f"Sign in with {for_all.name}",
    ]
    answer = scene.browser.open(f"/login/upstream/{foreign.id}/for/{scene.browser.path.split('/')[2]}")
    assert answer.status_int == 404
    scene.world.operator_services.upstream_providers.remove(for_all.id)


def test_who_comes_from_there_needs_no_password_here(scene: UpstreamScenario) -> None:
    authorization = scene.ask()
    subject = scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"]
    with scene.world.read_only_services() as services:
        assert services.storage.users.find_password(subject) is None


def test_who_comes_from_there_is_asked_for_the_factor_that_the_application_wants(scene: UpstreamScenario) -> None:
    scene.ask(acr_values="urn:service:iam:acr:2")
    scene.sign_in()
    assert not scene.browser.session_cookies or "acr" not in str(scene.browser.external_redirect)


def test_an_application_that_asks_for_people_of_the_organization_has_them_sent_there(scene: UpstreamScenario) -> None:
    scene.change(by_domain=True)
    scene.party.open_request(scene.browser, scope=f"openid urn:service:iam:org:id:{scene.organization.id}")
    scene.go_straight()
    assert str(scene.browser.external_redirect).startswith(f"{scene.fake_provider.issuer}/authorize?")


def test_whoever_signs_out_here_signs_out_there_where_the_setting_says_so(scene: UpstreamScenario) -> None:
    scene.ask()
    scene.sign_in()
    scene.browser.open("/sign-out")
    scene.browser.submit(form="page-form")
    assert scene.browser.path == "/signed-out"
    scene.change(sign_out_there=True)
    scene.ask()
    scene.sign_in()
    scene.browser.open("/sign-out")
    scene.browser.submit(form="page-form")
    url = urlsplit(str(scene.browser.external_redirect))
    parameters = dict(parse_qsl(url.query))
    assert url.path == "/logout"
    assert parameters["post_logout_redirect_uri"] == "https://id.example.com/login/upstream/signed-out"
    assert parameters["id_token_hint"].count(".") == 2
    assert not scene.browser.session_cookies
    scene.browser.open(parameters["post_logout_redirect_uri"], initiator=scene.fake_provider.issuer)
    assert scene.browser.path == "/signed-out"


@pytest.mark.parametrize("rule", ["open", "closed", "by domain"])
def test_a_provider_for_all_makes_accounts_where_people_may_register(scene: UpstreamScenario, rule: str) -> None:
    from identity.services.commands.organizations import ChangeOrganization

    with scene.world.transaction_services() as services:
        services.organizations.change(scene.organization.id, ChangeOrganization.build(registration=rule != "closed"))
        if rule == "by domain":
            services.policies.change(scene.organization.id, ChangePolicy.build(registration_domains=("acme.example",)))
    scene.change(everywhere=True)
    scene.fake_provider.claims = {"email": "kim@acme.example", "email_verified": True}
    scene.ask()
    scene.sign_in()
    assert registered(scene) == (1 if rule == "open" else 0)
    assert scene.browser.path.endswith("/upstream/unlinked") is (rule != "open")
    scene.change(everywhere=False)


@pytest.mark.parametrize("owner", ["instance", "organization"])
@pytest.mark.parametrize(
    ("rules", "created"),
    [
        ({"registration": "off"}, 0),
        ({"registration": "by_provider"}, 1),
        ({"registration": "by_domain"}, 0),
        ({"registration_domains": ("acme.example",)}, 0),
        ({"registration": "allowed"}, 1),
    ],
    ids=str,
)
def test_registration_off_stops_a_provider_that_creates_accounts(
    scene: UpstreamScenario, owner: str, rules: dict[str, object], created: int
) -> None:
    """Its own switch lets nobody in whom the policy keeps out."""
    with scene.world.transaction_services() as services:
        services.policies.change(
            INSTANCE_OWNER_ID if owner == "instance" else scene.organization.id, ChangePolicy.build(**rules)
        )
    scene.ask()
    scene.sign_in()
    assert registered(scene) == created
    assert scene.browser.path.endswith("/upstream/unlinked") is (not created)
    with scene.world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(registration=None, registration_domains=None))


def test_domains_of_registration_hold_for_whom_a_provider_brings(scene: UpstreamScenario) -> None:
    domain = scene.organization.primary_domain
    with scene.world.transaction_services() as services:
        services.policies.change(scene.organization.id, ChangePolicy.build(registration_domains=(domain,)))
    scene.change(trust_email=True)
    scene.fake_provider.claims = {"email": f"kim@{domain}", "email_verified": True}
    scene.ask()
    scene.sign_in()
    assert registered(scene) == 1

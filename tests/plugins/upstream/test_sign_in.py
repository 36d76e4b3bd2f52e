"""Sign-in by an upstream provider: matching of users and mapping of claims."""

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from identity.services.access_control import Principal
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


def count_accounts(scene: UpstreamScenario) -> int:
    """The number of accounts that the provider created."""
    return len(scene.world.audit_events(event="user.registered", organization_id=scene.organization.id))


def test_repeated_upstream_sign_in_updates_profile(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = dict(NAMES)
    first = scene.party.obtain_tokens(scene_sign_in(scene, authorization := scene.ask()), authorization)
    scene.fake_provider.claims = {**NAMES, "family_name": "King", "email": "other@people.example"}
    scene.browser = Browser(scene.world)
    second = scene.party.obtain_tokens(scene_sign_in(scene, authorization := scene.ask()), authorization)
    assert first.claims["sub"] == second.claims["sub"]
    assert count_accounts(scene) == 1
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
    assert count_accounts(scene) == 2
    names = {user.user_name for user in people(scene)}
    assert names == {"ada", "ada-2"}


def people(scene: UpstreamScenario) -> list[object]:
    from identity.storage.stores.users import UserKind

    with scene.world.read_only_services() as services:
        return list(services.storage.users.page(scene.organization.id, UserKind.HUMAN))


def test_email_address_does_not_match_users(scene: UpstreamScenario) -> None:
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


def verify_domain(scene: UpstreamScenario, domain: str) -> None:
    from identity.services.commands.organizations import AddDomain

    with scene.world.transaction_services() as services:
        services.domains.add(scene.organization.id, AddDomain(domain=domain))
        services.domains.assert_domain(scene.organization.id, domain, principal=Principal.OPERATOR)


def test_trusted_provider_matches_verified_email_of_verified_domain(scene: UpstreamScenario) -> None:
    person = make_user_with_email(scene, f"kim@{domain_of(scene)}")
    verify_domain(scene, domain_of(scene))
    scene.change(trust_email=True)
    scene.fake_provider.claims = {"email": f"kim@{domain_of(scene)}", "email_verified": True}
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"] == person.id


@pytest.mark.thorough
@pytest.mark.parametrize("lacks", ["trust", "proof of the domain", "verified", "no manager", "vouched for"])
def test_trusted_email_match_requires_every_condition(scene: UpstreamScenario, lacks: str) -> None:
    person = make_user_with_email(scene, f"kim@{domain_of(scene)}")
    if lacks != "proof of the domain":
        verify_domain(scene, domain_of(scene))
    if lacks == "no manager":
        scene.world.assign_manager_role(person, "ORG_OWNER")
    if lacks == "vouched for":
        with scene.world.transaction_services() as services:
            services.storage.users.update(replace(person, registered=True, version=person.version + 1))
    scene.change(trust_email=lacks != "trust")
    scene.fake_provider.claims = {"email": f"kim@{domain_of(scene)}", "email_verified": lacks != "verified"}
    authorization = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"] != person.id


def test_account_creation_requires_setting(scene: UpstreamScenario) -> None:
    scene.change(create_accounts=False)
    scene.ask()
    scene.sign_in()
    assert scene.browser.path.endswith("/upstream/unlinked")
    assert not scene.browser.session_cookies
    assert count_accounts(scene) == 0
    [refused] = scene.world.audit_events(event="authentication.refused", object_id=scene.provider.id)
    assert refused.reason == "no account is linked"


def test_deactivated_user_cannot_sign_in(scene: UpstreamScenario) -> None:
    authorization = scene.ask()
    tokens = scene.party.obtain_tokens(scene.sign_in(), authorization)
    scene.world.operator_services.users.deactivate(tokens.claims["sub"])
    scene.browser = Browser(scene.world)
    scene.ask()
    answer = scene.sign_in()
    assert answer.status_int == 403
    assert count_accounts(scene) == 1


@pytest.mark.parametrize("change", ["deactivate", "remove", "issuer"])
def test_provider_that_changes_while_it_answers_signs_nobody_in(
    scene: UpstreamScenario, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Otherwise one that responds slowly could go on after its end."""
    scene.ask()
    url, answer = scene.fake_provider.approve(scene.go()), scene.fake_provider.send

    def send(method: str, url: str, **options: Any) -> Any:
        if method == "POST" and change == "issuer":
            scene.change(issuer="https://other.example")
        elif method == "POST":
            getattr(scene.world.operator_services.upstream_providers, change)(scene.provider.id)
        return answer(method, url, **options)

    monkeypatch.setattr(scene.fake_provider, "send", send)
    assert scene.back(url).status_int == 400
    assert count_accounts(scene) == 0


def test_amr_is_taken_from_trusted_provider(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {"amr": ["pwd", "otp", "remembered", 7, "x" * 999]}
    authorization = scene.ask()
    assert "amr" not in scene.party.obtain_tokens(scene.sign_in(), authorization).claims
    scene.change(trust_methods=True)
    scene.browser = Browser(scene.world)
    authorization = scene.ask()
    claims = scene.party.obtain_tokens(scene.sign_in(), authorization).claims
    assert claims["amr"] == ["pwd", "otp", "mfa"]


def test_claims_are_mapped_by_provider_settings(scene: UpstreamScenario) -> None:
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


def test_requested_provider_skips_method_choice(scene: UpstreamScenario) -> None:
    scene.ask(idp=scene.provider.id)
    scene.go_straight()
    assert str(scene.browser.external_redirect).startswith(f"{scene.fake_provider.issuer}/authorize?")


def test_login_name_of_verified_domain_redirects_to_provider(scene: UpstreamScenario) -> None:
    verify_domain(scene, domain_of(scene))
    scene.ask()
    scene.browser.submit({"login_name": f"nobody@{domain_of(scene)}"})
    assert scene.browser.sign_in_step == "password"
    scene.change(by_domain=True)
    scene.ask()
    scene.browser.submit({"login_name": f"nobody@{domain_of(scene)}"})
    scene.go_straight()
    sent = dict(parse_qsl(urlsplit(str(scene.browser.external_redirect)).query))
    assert sent["login_hint"] == f"nobody@{domain_of(scene)}"


def test_prompt_login_is_passed_to_provider(scene: UpstreamScenario) -> None:
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


def test_buttons_show_organization_and_instance_providers(scene: UpstreamScenario) -> None:
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


def test_upstream_user_needs_no_password(scene: UpstreamScenario) -> None:
    authorization = scene.ask()
    subject = scene.party.obtain_tokens(scene.sign_in(), authorization).claims["sub"]
    with scene.world.read_only_services() as services:
        assert services.storage.users.find_password(subject) is None


def test_upstream_sign_in_still_requires_requested_factor(scene: UpstreamScenario) -> None:
    scene.ask(acr_values="urn:service:iam:acr:2")
    scene.sign_in()
    assert not scene.browser.session_cookies or "acr" not in str(scene.browser.external_redirect)


def test_organization_scope_redirects_to_provider(scene: UpstreamScenario) -> None:
    scene.change(by_domain=True)
    scene.party.open_request(scene.browser, scope=f"openid urn:service:iam:org:id:{scene.organization.id}")
    scene.go_straight()
    assert str(scene.browser.external_redirect).startswith(f"{scene.fake_provider.issuer}/authorize?")


def test_logout_at_provider_follows_setting(scene: UpstreamScenario) -> None:
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
def test_instance_provider_creates_accounts_where_registration_is_open(scene: UpstreamScenario, rule: str) -> None:
    from identity.services.commands.organizations import ChangeOrganization

    with scene.world.transaction_services() as services:
        services.organizations.change(scene.organization.id, ChangeOrganization.build(registration=rule != "closed"))
        if rule == "by domain":
            services.policies.change(scene.organization.id, ChangePolicy.build(registration_domains=("acme.example",)))
    scene.change(everywhere=True)
    scene.fake_provider.claims = {"email": "kim@acme.example", "email_verified": True}
    scene.ask()
    scene.sign_in()
    assert count_accounts(scene) == (1 if rule == "open" else 0)
    assert scene.browser.path.endswith("/upstream/unlinked") is (rule != "open")
    scene.change(everywhere=False)


@pytest.mark.sampled(4)
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
def test_closed_registration_stops_account_creation_by_provider(
    scene: UpstreamScenario, owner: str, rules: dict[str, object], created: int
) -> None:
    """The provider's switch does not override the policy."""
    with scene.world.transaction_services() as services:
        services.policies.change(
            INSTANCE_OWNER_ID if owner == "instance" else scene.organization.id, ChangePolicy.build(**rules)
        )
    scene.ask()
    scene.sign_in()
    assert count_accounts(scene) == created
    assert scene.browser.path.endswith("/upstream/unlinked") is (not created)
    with scene.world.transaction_services() as services:
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(registration=None, registration_domains=None))


def test_registration_domains_apply_to_provider_accounts(scene: UpstreamScenario) -> None:
    domain = scene.organization.primary_domain
    with scene.world.transaction_services() as services:
        services.policies.change(scene.organization.id, ChangePolicy.build(registration_domains=(domain,)))
    scene.change(trust_email=True)
    scene.fake_provider.claims = {"email": f"kim@{domain}", "email_verified": True}
    scene.ask()
    scene.sign_in()
    assert count_accounts(scene) == 1

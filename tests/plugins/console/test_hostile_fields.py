"""Security 18.9: no stored text becomes markup or a template on any page, as a crawl with hostile texts shows."""

import json
import re
import sqlite3
from collections import deque
from collections.abc import Callable
from dataclasses import fields
from urllib.parse import urljoin, urlsplit

import pytest

from identity.domain.applications import ConsentRule
from identity.domain.branding import TEXT_FIELDS as TEXTS_BY_LANGUAGE
from identity.domain.branding import Branding
from identity.domain.messages import LANGUAGES
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import make_fixture_data

pytestmark = pytest.mark.storages("sqlite")

MARKUP = "\"'><img src=x onerror=alert(1)><script>alert(2)</script></title></textarea>"
TEMPLATE = "{{ 7331*1337 }}{% raise %}${7331*1337}%(name)s{application}"
BIDI = "\u202e\u2066\u200f"
LONG = "W" * 10000

with_texts = pytest.mark.parametrize(
    "text", [MARKUP + TEMPLATE + BIDI, pytest.param(LONG, marks=pytest.mark.thorough)], ids=["markup", "long"]
)

#: Text columns with user input, by table.
TEXTS = {
    "organizations": ("name",),
    "users": ("user_name", "display_name", "description"),
    "projects": ("name",),
    "project_roles": ("display_name", "group"),
    "applications": ("name",),
    "personal_access_tokens": ("name",),
    "sessions": ("user_agent", "client_address"),
    "audit_events": ("reason", "client_address", "object_id", "request_id"),
}
#: Start pages of the crawl.
START = ["/console", "/account", "/console/organizations", "/console/instance", "/console/audit-events"]
MOST_PAGES = 400
PAGES = ("/console", "/account")
SAME = re.compile("ui_locales=|sort=|cursor=")


def make_hostile(world: World, text: str, *, addresses: bool = True) -> None:
    """Write the text into every column, bypassing validation; ``addresses`` includes URIs, which then cannot be
    redirected to.
    """
    url = next(value for value in world.settings.values() if value.startswith("sqlite:///"))
    with sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30) as database:
        # Triggers protect the audit trail.
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        for table, columns in TEXTS.items():
            for column in columns:
                database.execute(f'UPDATE {table} SET "{column}" = ? || substr(rowid, 1)', (text,))  # noqa: S608
        if addresses:
            spoilt = json.dumps({"redirect_uris": [text], "post_logout_redirect_uris": [text]})
            database.execute("UPDATE applications SET settings = json_patch(settings, ?)", (spoilt,))
        rows = database.execute("SELECT id, profile FROM users WHERE profile IS NOT NULL").fetchall()
        for identifier, profile in rows:
            hostile = {name: text for name, value in json.loads(profile).items() if isinstance(value, str)}
            changed = json.dumps({**json.loads(profile), **hostile, "given_name": text, "nickname": text})
            database.execute("UPDATE users SET profile = ? WHERE id = ?", (changed, identifier))
        everywhere = {
            name: text for name in (field.name for field in fields(Branding)) if name not in TEXTS_BY_LANGUAGE
        }
        everywhere |= {name: dict.fromkeys(LANGUAGES, text) for name in TEXTS_BY_LANGUAGE}
        database.execute("UPDATE records SET value = ? WHERE kind = 'branding'", (json.dumps(everywhere),))
        rows = database.execute("SELECT sequence, detail FROM audit_events").fetchall()
        for sequence, detail in rows:
            spoiled = {name: text if isinstance(value, str) else value for name, value in json.loads(detail).items()}
            database.execute("UPDATE audit_events SET detail = ? WHERE sequence = ?", (json.dumps(spoiled), sequence))
    database.close()


def brand(world: World, organization: Organization) -> None:
    """Give the organization a branding."""
    with world.transaction_services() as services:
        services.branding.change(organization, ChangeBranding.build(accent="#2540ad"), principal=Principal.OPERATOR)


def check_harmless(browser: Browser, text: str) -> bool:
    """Assert that the text is escaped; True if the page contains it."""
    page = browser.page
    where = browser.url
    assert page.status_int < 500, where
    if page.content_type != "text/html":
        return text in page.text
    html = page.html
    assert not html.select("img[src=x], script:not([src])"), where
    assert not [tag.name for tag in html.find_all() if any(name.startswith("on") for name in tag.attrs)], where
    assert "9801547" not in html.get_text(), where
    for link in html.select("a[href], form[action]"):
        address = link.get("href") or link.get("action")
        assert not address.lower().startswith("javascript:"), where
    shown_text = " ".join(html.get_text().split()) + " ".join(str(item.get("value")) for item in html.find_all("input"))
    return text[:40].strip() in shown_text or text[:40].strip() in page.text


@pytest.mark.thorough
@with_texts
def test_console_pages_escape_stored_texts(make_world: Callable[..., World], text: str) -> None:
    world = make_world()
    estate = make_fixture_data(world)
    brand(world, estate.organization)
    owner = world.make_human_user(estate.organization)
    world.assign_manager_role(owner, "IAM_OWNER", resource=Resource.INSTANCE)
    world.assign_manager_role(owner, "ORG_OWNER")
    browser = Browser(world)
    browser.start_session(owner)
    party = RelyingParty.register(world, project_id=estate.project.id)
    browser.open(party.new_request(scope="openid profile email offline_access").url)
    make_hostile(world, text)

    shown_text, visited, waiting = 0, set(), deque(START)
    while waiting and len(visited) < MOST_PAGES:
        path = waiting.popleft()
        if path in visited:
            continue
        visited.add(path)
        browser.open(path)
        shown_text += check_harmless(browser, text)
        if browser.page.content_type != "text/html":
            continue
        for link in browser.page.html.select("a[href]"):
            target = urljoin(browser.url, link["href"]).partition("#")[0]
            parts = urlsplit(target)
            # Sort orders and languages count as the same page.
            ours = parts.netloc == urlsplit(browser.login_url).netloc and parts.path.startswith(PAGES)
            if ours and not SAME.search(parts.query):
                waiting.append(parts.path + (f"?{parts.query}" if parts.query else ""))
    assert len(visited) > 60
    assert shown_text > 30


@with_texts
def test_sign_in_pages_escape_stored_texts(make_world: Callable[..., World], text: str) -> None:
    world = make_world()
    organization = world.make_organization()
    brand(world, organization)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    person = world.make_human_user()
    login_name = set_password(world, person)
    make_hostile(world, text)
    browser = Browser(world)
    browser.open(party.new_request(scope="openid profile email", redirect_uri="https://app.example/cb").url)
    # The redirect URI is hostile, so there is no redirect.
    assert check_harmless(browser, text)
    browser.open(party.logout_url(None, client_id=party.client_id, post_logout_redirect_uri=None))
    check_harmless(browser, text)
    browser.open("/login")
    browser.submit({"login_name": login_name}, form="page-form")
    check_harmless(browser, text)


@pytest.mark.thorough
@with_texts
def test_consent_pages_escape_stored_texts(make_world: Callable[..., World], text: str) -> None:
    """Names of one tenant's application, project and organization, shown to users of another tenant."""
    world = make_world()
    owner, home = world.make_organization(registration=True), world.make_organization()
    project, other = world.make_project(owner), world.make_project(owner)
    brand(world, owner)
    world.make_project_grant(other, home)
    party = RelyingParty.register(world, project_id=project.id, consent=ConsentRule.ALWAYS)
    first, second = world.make_human_user(home), world.make_human_user(home)
    login_names = [set_password(world, user) for user in (first, second)]
    roles = "urn:service:iam:org:projects:roles urn:service:iam:user:resourceowner"
    scope = f"openid profile email offline_access {roles} {world.audience_scope(other.id)}"
    make_hostile(world, text, addresses=False)
    browser, shown_on = Browser(world), {}

    def look() -> None:
        shown_on.setdefault(
            browser.path if browser.sign_in_step is None else browser.sign_in_step, check_harmless(browser, text)
        )

    for login_name in login_names:
        authorization = party.new_request(scope=scope, prompt="select_account" if shown_on else None)
        browser.open(authorization.url, initiator=party.origin)
        look()
        if browser.sign_in_step == "accounts":
            browser.submit(button=("session", "new"), form="page-form")
            look()
        browser.submit({"login_name": login_name}, form="page-form")
        look()
        browser.submit({"password": PASSWORD}, form="page-form")
        assert browser.sign_in_step == "consent"
        look()
        browser.submit(button=("decision", "allow"), form="page-form")
        assert party.obtain_tokens(browser.page, authorization).claims["sub"]
    browser.open(party.new_request(prompt="create").url, initiator=party.origin)
    look()
    browser.open(
        party.new_request(scope=f"openid urn:service:iam:org:id:{home.id}", prompt="login").url, initiator=party.origin
    )
    look()
    for path in ("/account", "/account/applications", f"/account/applications/{party.client_id}/disconnect"):
        browser.open(path)
        look()
    browser.open(party.logout_url(None, client_id=party.client_id))
    look()
    assert {name for name, visited in shown_on.items() if not visited} == set()
    assert {"", "password", "consent", "accounts", "register", "/sign-out"} <= shown_on.keys()

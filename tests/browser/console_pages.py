"""PAGES of the console, each with the way to it: of every kind the normal one, the empty one, an error, a question."""

import re
from itertools import count

from identity.domain.messages import LANGUAGES
from tests.browser.console_fixture_data import CALLBACK, DOMAIN, estate
from tests.browser.page_scenarios import LONG_WORD, PAGES, BrowserScenario, PageUnderTest, Walk

_NUMBERS = count(1)


def enter(scene: BrowserScenario, path: str) -> None:
    """Sign the manager in, and open the address below /console; ``{e}`` in it is the estate."""
    console_fixture_data = estate(scene.site, scene.long)
    scene.person = console_fixture_data.manager
    scene.sign_in()
    scene.open(f"/console{path.format(e=console_fixture_data)}")


def keep(name: str, walk: Walk, path: str, **options: bool | int) -> None:
    """Keeps the way to a page, whose address below /console is ``path``.

    What is not ``main`` is made of the same parts: German, the longest, will do.
    """
    languages = LANGUAGES[1:] if options.get("main") else ("de",)
    path = re.sub(r"\{[^}]*\}", "1", path).partition("?")[0]
    PAGES[name] = PageUnderTest(name, walk, f"/console{path}", languages=languages, **options)  # type: ignore[arg-type]


def shown(name: str, path: str, /, **options: bool | int) -> None:
    """Keeps what the address shows as the page of this name."""
    keep(name, lambda scene: enter(scene, path), path, **options)


def sent(
    name: str,
    path: str,
    /,
    *,
    choose: str = "",
    names: bool = False,
    main: bool = False,
    status: int = 422,
    **values: str,
) -> None:
    """The same of what comes when the form there is filled in with ``values``, ``choose`` is ticked, and it is sent."""

    def walk(scene: BrowserScenario) -> None:
        enter(scene, path)
        # Parts that are closed hold fields, too.
        scene.tab.run("for (const one of document.querySelectorAll('main details')) one.open = true")
        if choose:
            scene.tab.field(choose).click()
        scene.tab.send(**values)

    keep(name, walk, path, names=names, main=main, status=status)


ORGANIZATION = "/organizations/{e.organization.id}"
EMPTY = "/organizations/{e.empty.id}"
PROJECT = "/projects/{e.project.id}"
SERVICE_USER = "/service-users/{e.robot.id}"
USER = "/users/{e.person.id}"
APPLICATION = "/applications/{e.application_id}"
GRANT = "/project-grants/{e.project_grant.id}"
PROVIDER = "/upstream-providers/{e.ids[provider]}"
IDLE_PROJECT = "/projects/{e.ids[idle_project]}"
PROVEN, ASSERTED = "{e.ids[proven]}", "{e.ids[asserted]}"
NOBODY = "q=zzz"

# --- organization and instance ----------------------------------------------------------------------------------------

shown("console-overview", f"{ORGANIZATION}/overview", main=True, names=True, chinese=True)
shown("console-first-steps", f"{EMPTY}/overview")
shown("console-organizations", "/organizations", names=True)
shown("console-organizations-sorted", "/organizations?sort=-name&limit=3", main=True)
shown("console-organizations-searched", "/organizations?q=Northwind")
shown("console-organizations-none", f"/organizations?{NOBODY}")
shown("console-organization", ORGANIZATION, main=True, names=True)
shown("console-organization-new", "/organizations/new")
sent("console-organization-errors", "/organizations/new", name="", primary_domain="no domain")
shown("console-organization-change", f"{ORGANIZATION}/edit", names=True)
shown("console-organization-deactivate", f"{ORGANIZATION}/deactivate", names=True)
shown("console-organization-reactivate", "/organizations/{e.ids[idle_organization]}/reactivate")
shown("console-organization-delete", f"{ORGANIZATION}/delete", main=True, names=True)
sent("console-organization-delete-error", f"{ORGANIZATION}/delete", confirm_name="another")
shown("console-organization-export", f"{ORGANIZATION}/export", names=True)
shown("console-organization-import", "/organizations/import")
shown("console-domain-new", f"{ORGANIZATION}/domains/new")
sent("console-domain-errors", f"{ORGANIZATION}/domains/new", domain="no domain")
shown("console-domain", f"{ORGANIZATION}/domains/{DOMAIN}", names=True)
shown("console-domain-proven", f"{ORGANIZATION}/domains/{PROVEN}")
shown("console-domain-asserted", f"{ORGANIZATION}/domains/{ASSERTED}")
shown("console-domain-primary", f"{ORGANIZATION}/domains/{{e.organization.primary_domain}}")
shown("console-domain-verify", f"{ORGANIZATION}/domains/{DOMAIN}/verify", main=True, names=True)
shown("console-domain-assert", f"{ORGANIZATION}/domains/{DOMAIN}/assert", names=True)
shown("console-domain-make-primary", f"{ORGANIZATION}/domains/{PROVEN}/primary", names=True)
shown("console-domain-remove", f"{ORGANIZATION}/domains/{PROVEN}/delete", names=True)
shown("console-instance", "/instance", names=True)
shown("console-policy-of-the-instance", "/instance/policy")
shown("console-policy-of-the-instance-change", "/instance/policy/edit")
shown("console-policy", f"{ORGANIZATION}/policy", main=True, names=True)
shown("console-policy-change", f"{ORGANIZATION}/policy/edit", main=True)
sent("console-policy-errors", f"{ORGANIZATION}/policy/edit", session_idle_age="soon", remember_browser="99")
shown(
    "console-policy-preview",
    f"{ORGANIZATION}/policy/preview?user_id={{e.person.id}}&application_id={{e.application_id}}&second_factor=required",
    main=True,
    names=True,
)
shown("console-signing-keys", "/instance/signing-keys")
shown("console-rotate", "/instance/signing-keys/rotate")
shown("console-signing-key-withdraw", "/instance/signing-keys/{e.ids[signing_key]}/delete")
shown("console-legal-holds", "/instance/legal-holds", main=True, names=True)
shown("console-legal-hold-place", f"{USER}/legal-hold", names=True)
sent("console-legal-hold-errors", f"{USER}/legal-hold", reason="")
shown("console-legal-hold-of-an-organization", f"{EMPTY}/legal-hold", names=True)
shown("console-legal-hold-of-everything", "/instance/legal-holds/everything")
shown("console-legal-hold-lift", "/instance/legal-holds/{e.ids[hold]}/lift", main=True, names=True)
shown("console-user-held", "/users/{e.ids[held]}", main=True, names=True)
shown("console-user-held-delete", "/users/{e.ids[held]}/delete")
shown("console-not-found", "/organizations/nothing", status=404)

# --- managers ---------------------------------------------------------------------------------------------------------

shown("console-managers", f"{ORGANIZATION}/managers", names=True)
shown("console-managers-of-the-instance", "/instance/managers")
shown("console-managers-of-a-project", f"{PROJECT}/managers", names=True)
shown("console-managers-of-a-grant", f"{GRANT}/managers", names=True)
shown("console-manager-user", f"{ORGANIZATION}/managers/new", main=True, names=True)
shown("console-manager-user-of-the-instance", "/instance/managers/new")
shown("console-manager-user-of-a-project", f"{PROJECT}/managers/new")
shown("console-manager-user-of-a-grant", f"{GRANT}/managers/new")
shown("console-manager-roles", f"{ORGANIZATION}/managers/new?user_id={{e.person.id}}", main=True, names=True)
sent("console-manager-error", f"{ORGANIZATION}/managers/new?user_id={{e.person.id}}")
shown("console-manager-change", "/managers/{e.owner.id}/edit", names=True)
shown("console-manager-remove", "/managers/{e.owner.id}/delete", names=True)

# --- service users ----------------------------------------------------------------------------------------------------

shown("console-service-users", f"{ORGANIZATION}/service-users", main=True, names=True)
shown("console-service-users-empty", f"{EMPTY}/service-users", main=True)
shown("console-service-users-none", f"{ORGANIZATION}/service-users?{NOBODY}")
shown("console-service-user", SERVICE_USER, main=True, names=True)
sent("console-service-user-errors", f"{ORGANIZATION}/service-users/new", user_name="", display_name="", main=True)
shown("console-service-user-change", f"{SERVICE_USER}/edit")
shown("console-service-user-deactivate", f"{SERVICE_USER}/deactivate", names=True)
shown("console-service-user-reactivate", "/service-users/{e.ids[idle_robot]}/reactivate")
shown("console-service-user-delete", f"{SERVICE_USER}/delete", names=True)
shown("console-service-user-grants", f"{SERVICE_USER}/grants", names=True)
shown("console-keys", f"{SERVICE_USER}/keys", names=True)
shown("console-key-new", f"{SERVICE_USER}/keys/new", main=True)
sent("console-key-error", f"{SERVICE_USER}/keys/new", choose="source-upload", public_key="no key")
sent("console-key-added", f"{SERVICE_USER}/keys/new", main=True, names=True, status=200)
shown("console-key-remove", f"{SERVICE_USER}/keys/{{e.robot.key_id}}/delete", names=True)
shown("console-secret-new", "/service-users/{e.ids[idle_robot]}/secrets/new")
shown("console-secret-remove", f"{SERVICE_USER}/secrets/{{e.ids[secret]}}/delete", names=True)
shown("console-tokens", f"{SERVICE_USER}/personal-access-tokens", names=True)
shown("console-token-new", f"{SERVICE_USER}/personal-access-tokens/new")
sent("console-token-added", f"{SERVICE_USER}/personal-access-tokens/new", name="Nightly backup", status=200)
shown("console-token-remove", f"{SERVICE_USER}/personal-access-tokens/{{e.ids[token]}}/delete", names=True)

# --- users ------------------------------------------------------------------------------------------------------------

shown("console-users", f"{ORGANIZATION}/users", main=True, names=True)
shown("console-users-sorted-and-searched", f"{ORGANIZATION}/users?q=e&sort=-created_at&state=active")
shown("console-users-none", f"{ORGANIZATION}/users?{NOBODY}")
shown("console-user", USER, main=True, names=True)
shown("console-user-locked", "/users/{e.ids[locked]}", main=True, names=True)
shown("console-user-unlock", "/users/{e.ids[locked]}/unlock", names=True)
shown("console-user-factors-reset", f"{USER}/factors/reset", names=True)
shown("console-user-leaving", "/users/{e.ids[leaving]}", names=True)
shown("console-user-keep", "/users/{e.ids[leaving]}/keep", names=True)
shown("console-user-change", f"{USER}/edit")
sent("console-user-errors", f"{ORGANIZATION}/users/new", user_name="a b", given_name="", email="anna")
shown("console-user-link-ask", f"{USER}/password-link", names=True)
sent("console-user-link", f"{USER}/password-link", names=True, status=200)
shown("console-user-link-to-hand-over-ask", f"{USER}/link-to-hand-over", names=True)


def _link_mailed(scene: BrowserScenario) -> None:
    enter(scene, f"{ORGANIZATION}/users/new")
    names = {"user_name": f"eva{len(scene.site.world.audit_events())}", "given_name": "Eva", "family_name": "Berg"}
    scene.tab.send(**names, email=f"{names['user_name']}@acme.example")
    scene.site.drop_mail()


keep("console-user-link-mailed", _link_mailed, f"{ORGANIZATION}/users/new", mailing=True)
shown("console-user-one-time-password", f"{USER}/one-time-password", names=True)
shown("console-user-deactivate", f"{USER}/deactivate", names=True)
shown("console-user-reactivate", "/users/{e.ids[idle_person]}/reactivate")
shown("console-user-delete", f"{USER}/delete", names=True)
shown("console-sessions", f"{USER}/sessions", names=True)
shown("console-sessions-end", f"{USER}/sessions/delete", names=True)
shown("console-session-end", f"{USER}/sessions/{{e.ids[session]}}/delete", names=True)
shown("console-connection-end", f"{USER}/connections/{{e.ids[connected]}}/delete", names=True)
shown("console-user-user-grants", f"{USER}/grants", names=True)

# --- projects and applications ----------------------------------------------------------------------------------------

shown("console-projects", f"{ORGANIZATION}/projects", names=True)
shown("console-projects-empty", f"{EMPTY}/projects")
shown("console-project-new", f"{ORGANIZATION}/projects/new")
shown("console-project", PROJECT, main=True, names=True)
shown("console-project-deactivate", f"{PROJECT}/deactivate", names=True)
shown("console-project-reactivate", f"{IDLE_PROJECT}/reactivate")
shown("console-project-delete", f"{PROJECT}/delete", names=True)
shown("console-roles", f"{PROJECT}/roles", names=True)
sent("console-role-errors", f"{PROJECT}/roles/new", key="", display_name="")
shown("console-role-change", f"{PROJECT}/roles/reader/edit", names=True)
shown("console-role-remove", f"{PROJECT}/roles/reader/delete", names=True)
shown("console-applications", f"{PROJECT}/applications", names=True)
shown("console-application-type", f"{PROJECT}/applications/new", names=True)
sent(
    "console-application-errors",
    f"{PROJECT}/applications/new?type=web",
    name="",
    redirect_uris="http://invoices.example/",
    access_token_lifetime="soon",
    main=True,
)
shown("console-application", APPLICATION, main=True, names=True)
shown("console-application-change", f"{APPLICATION}/edit", main=True, names=True)
shown("console-application-deactivate", f"{APPLICATION}/deactivate", names=True)
shown("console-application-reactivate", "/applications/{e.ids[idle_application]}/reactivate")
shown("console-application-delete", f"{APPLICATION}/delete", names=True)
shown("console-application-secret-new", f"{APPLICATION}/secrets/new", names=True)
shown("console-application-secret-remove", f"{APPLICATION}/secrets/{{e.ids[application_secret]}}/delete", names=True)

# --- identity providers -----------------------------------------------------------------------------------------------

shown("console-providers", f"{ORGANIZATION}/upstream-providers", main=True, names=True)
shown("console-providers-empty", f"{EMPTY}/upstream-providers")
shown("console-provider-new", f"{ORGANIZATION}/upstream-providers/new", main=True)
sent("console-provider-errors", f"{ORGANIZATION}/upstream-providers/new", name="", client_id="")
shown("console-provider", PROVIDER, main=True, names=True)
shown("console-provider-change", f"{PROVIDER}/edit", names=True)
shown("console-provider-test", f"{PROVIDER}/test", names=True)
shown("console-provider-deactivate", f"{PROVIDER}/deactivate", names=True)
shown("console-provider-reactivate", "/upstream-providers/{e.ids[idle_provider]}/reactivate")
shown("console-provider-delete", f"{PROVIDER}/delete", names=True)

# --- grants -----------------------------------------------------------------------------------------------------------

shown("console-project-grants", f"{PROJECT}/grants", names=True)
shown("console-project-grant-new", f"{PROJECT}/grants/new")
shown("console-project-grant", GRANT, names=True)
shown("console-project-grant-change", f"{GRANT}/edit", names=True)
shown("console-project-grant-deactivate", f"{GRANT}/deactivate", names=True)
shown("console-project-grant-reactivate", "/project-grants/{e.ids[idle_grant]}/reactivate")
shown("console-project-grant-withdraw", f"{GRANT}/delete", names=True)
shown("console-granted-projects", f"{ORGANIZATION}/granted-projects", names=True)
shown("console-granted-projects-empty", f"{EMPTY}/granted-projects")
shown("console-user-grants", f"{PROJECT}/user-grants", names=True)
shown("console-user-grants-of-a-grant", f"{GRANT}/user-grants", names=True)
shown("console-user-grant-new", f"{USER}/grants/new", names=True)
shown("console-user-grant-new-of-a-service-user", f"{SERVICE_USER}/grants/new")
shown("console-user-grant-new-of-a-project", f"{PROJECT}/user-grants/new")
shown("console-user-grant-new-of-a-grant", f"{GRANT}/user-grants/new")
shown("console-user-grant-change", "/user-grants/{e.user_grant.id}/edit", names=True)
shown("console-user-grant-remove", "/user-grants/{e.user_grant.id}/delete", names=True)

# --- audit events and token preview -----------------------------------------------------------------------------------

shown("console-audit-events", f"{ORGANIZATION}/audit-events?limit=5", main=True, names=True)
shown("console-audit-events-filtered", f"{ORGANIZATION}/audit-events?result=refused")
shown("console-audit-events-none", f"{ORGANIZATION}/audit-events?actor=nobody")
shown("console-all-audit-events", "/audit-events?limit=5", names=True)
shown("console-token-preview-choices", f"{ORGANIZATION}/token-preview", names=True)
shown(
    "console-token-preview",
    f"{ORGANIZATION}/token-preview?user_id={{e.person.id}}&application_id={{e.application_id}}&scope=openid+email+phone",
    main=True,
    names=True,
)
shown("console-token-preview-error", f"{ORGANIZATION}/token-preview?user_id=nobody", status=422)


# --- more than one step -----------------------------------------------------------------------------------------------


def _application_registered(scene: BrowserScenario) -> None:
    enter(scene, f"{PROJECT}/applications/new?type=web")
    scene.tab.send(name=LONG_WORD if scene.long else "Web shop", redirect_uris=CALLBACK)


def _project_conflict(scene: BrowserScenario) -> None:
    enter(scene, f"{IDLE_PROJECT}/edit")
    tab = scene.profile.tab()
    tab.open(scene.tab.url)
    tab.send(name=f"Orders {next(_NUMBERS)}")
    scene.tab.send(name=LONG_WORD if scene.long else "Parcels")


def _project_changed(scene: BrowserScenario) -> None:
    enter(scene, f"{IDLE_PROJECT}/edit")
    scene.tab.send(name=f"Orders {next(_NUMBERS)}")


def _audit_event(scene: BrowserScenario) -> None:
    enter(scene, f"{ORGANIZATION}/audit-events?result=refused")
    with scene.tab.leaving():
        scene.tab.all("tbody th a")[0].click()


def _menu(scene: BrowserScenario) -> None:
    enter(scene, f"{ORGANIZATION}/projects")
    scene.tab.one(".console__top .menu:not(.menu--end) > summary").click()


def _menu_on_a_phone(scene: BrowserScenario) -> None:
    enter(scene, f"{ORGANIZATION}/projects")
    scene.tab.size(390, 844)
    scene.tab.one(".console__menu > summary").click()


keep("console-application-registered", _application_registered, f"{PROJECT}/applications/new", names=True)
keep("console-project-conflict", _project_conflict, f"{IDLE_PROJECT}/edit", names=True, status=409)
keep("console-project-changed", _project_changed, IDLE_PROJECT)
keep("console-audit-event", _audit_event, "/audit-events/1", names=True)
keep("console-menu", _menu, f"{ORGANIZATION}/projects", main=True, names=True)
keep("console-menu-on-a-phone", _menu_on_a_phone, f"{ORGANIZATION}/projects", names=True)

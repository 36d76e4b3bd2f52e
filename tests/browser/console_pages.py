"""Console pages, each with a function that opens it: normal, empty, with errors, and confirmations."""

import re
from itertools import count

from identity.domain.messages import LANGUAGES
from tests.browser.console_fixture_data import CALLBACK, DOMAIN, estate
from tests.browser.page_scenarios import LONG_WORD, PAGES, BrowserScenario, PageUnderTest, Walk

_NUMBERS = count(1)


def enter(scene: BrowserScenario, path: str) -> None:
    """Sign in the manager and open the path below /console; ``{e}`` in it is the fixture data."""
    console_fixture_data = estate(scene.site, scene.long)
    scene.person = console_fixture_data.manager
    scene.sign_in()
    scene.open(f"/console{path.format(e=console_fixture_data)}")


def keep(name: str, walk: Walk, path: str, **options: bool | int) -> None:
    """Register a page, whose path below /console is ``path``.

    Pages that are not ``main`` consist of the same parts, so German, the longest language, is enough.
    """
    languages = LANGUAGES[1:] if options.get("main") else ("de",)
    path = re.sub(r"\{[^}]*\}", "1", path).partition("?")[0]
    PAGES[name] = PageUnderTest(name, walk, f"/console{path}", languages=languages, **options)  # type: ignore[arg-type]


def show_page(name: str, path: str, /, **options: bool | int) -> None:
    """Register the page at this path."""
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
    """Register the response to the form at this path, submitted with ``values`` and ``choose`` checked."""

    def walk(scene: BrowserScenario) -> None:
        enter(scene, path)
        # Collapsed sections contain fields, too.
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
ATTRIBUTE = "/attributes/{e.ids[attribute]}"
PROVIDER = "/upstream-providers/{e.ids[provider]}"
WEBHOOK = "/webhooks/{e.ids[webhook]}"
GROUP = "/groups/{e.ids[group]}"
IDLE_PROJECT = "/projects/{e.ids[idle_project]}"
PROVEN, ASSERTED = "{e.ids[proven]}", "{e.ids[asserted]}"
NOBODY = "q=zzz"

# --- organization and instance ----------------------------------------------------------------------------------------

show_page("console-overview", f"{ORGANIZATION}/overview", main=True, names=True, chinese=True)
show_page("console-first-steps", f"{EMPTY}/overview")
show_page("console-first-steps-hide", f"{EMPTY}/overview/hide-steps")
show_page("console-first-steps-show", f"{EMPTY}/overview/show-steps")
show_page("console-organizations", "/organizations", names=True)
show_page("console-organizations-sorted", "/organizations?sort=-name&limit=3", main=True)
show_page("console-organizations-searched", "/organizations?q=Northwind")
show_page("console-organizations-none", f"/organizations?{NOBODY}")
show_page("console-organization", ORGANIZATION, main=True, names=True)
show_page("console-organization-new", "/organizations/new")
sent("console-organization-errors", "/organizations/new", name="", primary_domain="no domain")
show_page("console-organization-change", f"{ORGANIZATION}/edit", names=True)
show_page("console-organization-deactivate", f"{ORGANIZATION}/deactivate", names=True)
show_page("console-organization-revoke-access", f"{ORGANIZATION}/revoke-access", names=True)
show_page("console-organization-reactivate", "/organizations/{e.ids[idle_organization]}/reactivate")
show_page("console-organization-delete", f"{ORGANIZATION}/delete", main=True, names=True)
sent("console-organization-delete-error", f"{ORGANIZATION}/delete", confirm_name="another")
show_page("console-organization-export", f"{ORGANIZATION}/export", names=True)
show_page("console-organization-import", "/organizations/import")
show_page("console-scim", f"{ORGANIZATION}/scim", names=True)
show_page("console-domain-new", f"{ORGANIZATION}/domains/new")
sent("console-domain-errors", f"{ORGANIZATION}/domains/new", domain="no domain")
show_page("console-domain", f"{ORGANIZATION}/domains/{DOMAIN}", names=True)
show_page("console-domain-proven", f"{ORGANIZATION}/domains/{PROVEN}")
show_page("console-domain-asserted", f"{ORGANIZATION}/domains/{ASSERTED}")
show_page("console-domain-primary", f"{ORGANIZATION}/domains/{{e.organization.primary_domain}}")
show_page("console-domain-verify", f"{ORGANIZATION}/domains/{DOMAIN}/verify", main=True, names=True)
show_page("console-domain-assert", f"{ORGANIZATION}/domains/{DOMAIN}/assert", names=True)
show_page("console-domain-make-primary", f"{ORGANIZATION}/domains/{PROVEN}/primary", names=True)
show_page("console-domain-remove", f"{ORGANIZATION}/domains/{PROVEN}/delete", names=True)
show_page("console-instance", "/instance", names=True)
show_page("console-mail-server", "/instance/mail-server", main=True)
show_page("console-sent-mails", "/instance/sent-mails", main=True)
show_page("console-user-mails", f"{USER}/mails")
show_page("console-mail-server-change", "/instance/mail-server/edit")
show_page("console-policy-of-the-instance", "/instance/policy")
show_page("console-policy-of-the-instance-change", "/instance/policy/edit")
show_page("console-policy", f"{ORGANIZATION}/policy", main=True, names=True)
show_page("console-policy-change", f"{ORGANIZATION}/policy/edit", main=True)
sent("console-policy-errors", f"{ORGANIZATION}/policy/edit", session_idle_age="soon", remember_browser="99")
show_page(
    "console-policy-preview",
    f"{ORGANIZATION}/policy/preview?user_id={{e.person.id}}&application_id={{e.application_id}}&second_factor=required",
    main=True,
    names=True,
)
show_page("console-signing-keys", "/instance/signing-keys")
show_page("console-rotate", "/instance/signing-keys/rotate")
show_page("console-signing-key-withdraw", "/instance/signing-keys/{e.ids[signing_key]}/delete")
show_page("console-legal-holds", "/instance/legal-holds", main=True, names=True)
show_page("console-legal-hold-place", f"{USER}/legal-hold", names=True)
sent("console-legal-hold-errors", f"{USER}/legal-hold", reason="")
show_page("console-legal-hold-of-an-organization", f"{EMPTY}/legal-hold", names=True)
show_page("console-legal-hold-of-everything", "/instance/legal-holds/everything")
show_page("console-legal-hold-lift", "/instance/legal-holds/{e.ids[hold]}/lift", main=True, names=True)
show_page("console-user-access", f"{USER}/access", names=True)
show_page(
    "console-user-access-preview",
    f"{USER}/access?application_id={{e.application_id}}&scope=openid+profile",
    names=True,
)
show_page("console-application-try-it", f"{APPLICATION}/try-it", names=True)
show_page(
    "console-application-tried",
    f"{APPLICATION}/try-it?user_id={{e.person.id}}&request=response_type%3Dcode%26scope%3Dopenid",
    names=True,
)
show_page("console-user-security", f"{USER}/security", main=True, names=True)
show_page("console-user-activity", f"{USER}/activity", names=True)
show_page("console-application-secrets", f"{APPLICATION}/secrets", names=True)
show_page("console-service-user-access", f"{SERVICE_USER}/access", names=True)
show_page("console-service-user-activity", f"{SERVICE_USER}/activity", names=True)
show_page("console-user-held", "/users/{e.ids[held]}", main=True, names=True)
show_page("console-user-held-delete", "/users/{e.ids[held]}/delete")
show_page("console-not-found", "/organizations/nothing", status=404)

# --- managers ---------------------------------------------------------------------------------------------------------

show_page("console-managers", f"{ORGANIZATION}/managers", names=True)
show_page("console-managers-of-the-instance", "/instance/managers")
show_page("console-managers-of-a-project", f"{PROJECT}/managers", names=True)
show_page("console-managers-of-a-grant", f"{GRANT}/managers", names=True)
show_page("console-manager-user", f"{ORGANIZATION}/managers/new", main=True, names=True)
show_page("console-manager-user-of-the-instance", "/instance/managers/new")
show_page("console-manager-user-of-a-project", f"{PROJECT}/managers/new")
show_page("console-manager-user-of-a-grant", f"{GRANT}/managers/new")
show_page("console-manager-roles", f"{ORGANIZATION}/managers/new?user_id={{e.person.id}}", main=True, names=True)
sent("console-manager-error", f"{ORGANIZATION}/managers/new?user_id={{e.person.id}}")
show_page("console-manager-change", "/managers/{e.owner.id}/edit", names=True)
show_page("console-manager-remove", "/managers/{e.owner.id}/delete", names=True)

# --- service users ----------------------------------------------------------------------------------------------------

show_page("console-service-users", f"{ORGANIZATION}/service-users", main=True, names=True)
show_page("console-service-users-empty", f"{EMPTY}/service-users", main=True)
show_page("console-service-users-none", f"{ORGANIZATION}/service-users?{NOBODY}")
show_page("console-service-user", SERVICE_USER, main=True, names=True)
sent("console-service-user-errors", f"{ORGANIZATION}/service-users/new", user_name="", display_name="", main=True)
show_page("console-service-user-connect", f"{SERVICE_USER}/connect", main=True, names=True)
show_page("console-service-user-change", f"{SERVICE_USER}/edit")
show_page("console-service-user-deactivate", f"{SERVICE_USER}/deactivate", names=True)
show_page("console-service-user-revoke-access", f"{SERVICE_USER}/revoke-access", names=True)
show_page("console-service-user-reactivate", "/service-users/{e.ids[idle_robot]}/reactivate")
show_page("console-agent", "/service-users/{e.ids[agent]}", names=True)
show_page("console-agent-allow-management", "/service-users/{e.ids[agent]}/allow-management", names=True)
show_page("console-agent-forbid-management", "/service-users/{e.ids[agent]}/forbid-management", names=True)
show_page("console-service-user-delete", f"{SERVICE_USER}/delete", names=True)
show_page("console-service-user-grants", f"{SERVICE_USER}/grants", names=True)
show_page("console-keys", f"{SERVICE_USER}/keys", names=True)
show_page("console-key-new", f"{SERVICE_USER}/keys/new", main=True)
sent("console-key-error", f"{SERVICE_USER}/keys/new", choose="source-upload", public_key="no key")
sent("console-key-added", f"{SERVICE_USER}/keys/new", main=True, names=True, status=200)
show_page("console-key-remove", f"{SERVICE_USER}/keys/{{e.robot.key_id}}/delete", names=True)
show_page("console-secret-new", "/service-users/{e.ids[idle_robot]}/secrets/new")
show_page("console-secret-remove", f"{SERVICE_USER}/secrets/{{e.ids[secret]}}/delete", names=True)
show_page("console-federated-credentials", f"{SERVICE_USER}/federated-credentials", main=True, names=True)
show_page("console-federated-credential-new", f"{SERVICE_USER}/federated-credentials/new?template=github", main=True)
show_page(
    "console-federated-credential-remove",
    f"{SERVICE_USER}/federated-credentials/{{e.ids[federated_credential]}}/delete",
    names=True,
)
show_page(
    "console-application-federated-credentials",
    "/applications/{e.ids[keyless_application]}/federated-credentials",
    main=True,
    names=True,
)
show_page(
    "console-application-federated-credential-new",
    "/applications/{e.ids[keyless_application]}/federated-credentials/new",
)
show_page(
    "console-application-federated-credential-remove",
    "/applications/{e.ids[keyless_application]}/federated-credentials/{e.ids[application_federated_credential]}/delete",
    names=True,
)
show_page("console-tokens", f"{SERVICE_USER}/personal-access-tokens", names=True)
show_page("console-token-new", f"{SERVICE_USER}/personal-access-tokens/new")
sent("console-token-added", f"{SERVICE_USER}/personal-access-tokens/new", name="Nightly backup", status=200)
show_page("console-token-remove", f"{SERVICE_USER}/personal-access-tokens/{{e.ids[token]}}/delete", names=True)

# --- users ------------------------------------------------------------------------------------------------------------

show_page("console-users", f"{ORGANIZATION}/users", main=True, names=True)
show_page("console-users-sorted-and-searched", f"{ORGANIZATION}/users?q=e&sort=-created_at&state=active&select=page")


def _open_list_menus(scene: BrowserScenario) -> None:
    enter(scene, _SEARCHED_USERS)
    scene.tab.run("for (const menu of document.querySelectorAll('main details')) menu.open = true")


_SEARCHED_USERS = f"{ORGANIZATION}/users?q=e"
keep("console-users-menus", _open_list_menus, _SEARCHED_USERS)
show_page("console-users-none", f"{ORGANIZATION}/users?{NOBODY}")
show_page("console-users-selected", f"{ORGANIZATION}/users/selected/deactivate?selected={{e.person.id}}", names=True)
show_page("console-users-delete", f"{ORGANIZATION}/users/selected/delete?selected={{e.person.id}}", names=True)
show_page("console-users-add-to-group", f"{ORGANIZATION}/users/selected/add-to-group?selected={{e.person.id}}")
show_page(
    "console-users-give-roles",
    f"{ORGANIZATION}/users/selected/give-roles?selected={{e.person.id}}&project_id={{e.project.id}}",
    names=True,
)
show_page("console-user-import", f"{ORGANIZATION}/users/import")
show_page("console-user-import-checked", f"{ORGANIZATION}/users/import/{{e.ids[import]}}", names=True)
show_page("console-user", USER, main=True, names=True)
show_page("console-user-locked", "/users/{e.ids[locked]}", main=True, names=True)
show_page("console-user-unlock", "/users/{e.ids[locked]}/unlock", names=True)
show_page("console-user-factors-reset", f"{USER}/factors/reset", names=True)
show_page("console-user-leaving", "/users/{e.ids[leaving]}", names=True)
show_page("console-user-keep", "/users/{e.ids[leaving]}/keep", names=True)
show_page("console-user-change", f"{USER}/edit")
sent("console-user-errors", f"{ORGANIZATION}/users/new", user_name="a b", given_name="", email="anna")
show_page("console-user-link-ask", f"{USER}/password-link", names=True)
sent("console-user-link", f"{USER}/password-link", names=True, status=200)
show_page("console-user-link-to-hand-over-ask", f"{USER}/link-to-hand-over", names=True)


def _link_mailed(scene: BrowserScenario) -> None:
    enter(scene, f"{ORGANIZATION}/users/new")
    names = {"user_name": f"eva{len(scene.site.world.audit_events())}", "given_name": "Eva", "family_name": "Berg"}
    scene.tab.send(**names, email=f"{names['user_name']}@acme.example")
    scene.site.drop_mail()


keep("console-user-link-mailed", _link_mailed, f"{ORGANIZATION}/users/new", mailing=True)
show_page("console-user-one-time-password", f"{USER}/one-time-password", names=True)
show_page("console-user-impersonate", f"{USER}/impersonate", names=True)
show_page("console-user-deactivate", f"{USER}/deactivate", names=True)
show_page("console-user-stop-agents", f"{USER}/stop-agents", names=True)
show_page("console-user-revoke-access", f"{USER}/revoke-access", names=True)
show_page("console-user-reactivate", "/users/{e.ids[idle_person]}/reactivate")
show_page("console-user-delete", f"{USER}/delete", names=True)
show_page("console-sessions", f"{USER}/sessions", names=True)
show_page("console-sessions-end", f"{USER}/sessions/delete", names=True)
show_page("console-session-end", f"{USER}/sessions/{{e.ids[session]}}/delete", names=True)
show_page("console-connection-end", f"{USER}/connections/{{e.ids[connected]}}/delete", names=True)
show_page("console-user-user-grants", f"{USER}/grants", names=True)

# --- projects and applications ----------------------------------------------------------------------------------------

show_page("console-projects", f"{ORGANIZATION}/projects", names=True)
show_page("console-projects-empty", f"{EMPTY}/projects")
show_page("console-project-new", f"{ORGANIZATION}/projects/new")
show_page("console-project", PROJECT, main=True, names=True)
show_page("console-project-deactivate", f"{PROJECT}/deactivate", names=True)
show_page("console-project-reactivate", f"{IDLE_PROJECT}/reactivate")
show_page("console-project-delete", f"{PROJECT}/delete", names=True)
show_page("console-roles", f"{PROJECT}/roles", names=True)
sent("console-role-errors", f"{PROJECT}/roles/new", key="", display_name="")
show_page("console-role-change", f"{PROJECT}/roles/reader/edit", names=True)
show_page("console-role-remove", f"{PROJECT}/roles/reader/delete", names=True)
show_page("console-applications", f"{PROJECT}/applications", names=True)
show_page("console-application-type", f"{PROJECT}/applications/new", names=True)
sent(
    "console-application-errors",
    f"{PROJECT}/applications/new?type=web",
    name="",
    redirect_uris="http://invoices.example/",
    access_token_lifetime="soon",
    main=True,
)
show_page("console-application", APPLICATION, main=True, names=True)
show_page("console-application-log", f"{APPLICATION}/log", main=True, names=True)
show_page("console-application-connect", f"{APPLICATION}/connect", main=True, names=True)
show_page("console-application-connect-address-error", f"{APPLICATION}/connect?with=express&at=nowhere")
show_page("console-application-connect-addresses", f"{APPLICATION}/connect/addresses?with=fastapi", names=True)
show_page("console-application-change", f"{APPLICATION}/edit", main=True, names=True)
show_page("console-application-deactivate", f"{APPLICATION}/deactivate", names=True)
show_page("console-application-revoke-access", f"{APPLICATION}/revoke-access", names=True)
show_page("console-application-reactivate", "/applications/{e.ids[idle_application]}/reactivate")
show_page("console-application-delete", f"{APPLICATION}/delete", names=True)
show_page("console-application-secret-new", f"{APPLICATION}/secrets/new", names=True)
show_page(
    "console-application-secret-remove", f"{APPLICATION}/secrets/{{e.ids[application_secret]}}/delete", names=True
)

# --- attributes -------------------------------------------------------------------------------------------------------

show_page("console-attributes", f"{ORGANIZATION}/attributes", main=True, names=True, chinese=True)
show_page("console-attributes-empty", f"{EMPTY}/attributes")
show_page("console-attribute-new", f"{ORGANIZATION}/attributes/new", main=True)
sent("console-attribute-errors", f"{ORGANIZATION}/attributes/new", key="A b", label="", type="choice")
show_page("console-attribute-change", f"{ATTRIBUTE}/edit", names=True)
show_page("console-attribute-delete", f"{ATTRIBUTE}/delete", names=True)

# --- identity providers -----------------------------------------------------------------------------------------------

show_page("console-providers", f"{ORGANIZATION}/upstream-providers", main=True, names=True)
show_page("console-providers-empty", f"{EMPTY}/upstream-providers")
show_page("console-provider-new", f"{ORGANIZATION}/upstream-providers/new", main=True)
show_page("console-provider-new-entra", f"{ORGANIZATION}/upstream-providers/new?kind=entra", main=True)
show_page("console-provider-new-apple", f"{ORGANIZATION}/upstream-providers/new?kind=apple")
sent("console-provider-errors", f"{ORGANIZATION}/upstream-providers/new?kind=openid", name="", client_id="")
show_page("console-provider", PROVIDER, main=True, names=True)
show_page("console-provider-change", f"{PROVIDER}/edit", names=True)
show_page("console-provider-test", f"{PROVIDER}/test", names=True)
show_page("console-provider-deactivate", f"{PROVIDER}/deactivate", names=True)
show_page("console-provider-reactivate", "/upstream-providers/{e.ids[idle_provider]}/reactivate")
show_page("console-provider-delete", f"{PROVIDER}/delete", names=True)

# --- directories ------------------------------------------------------------------------------------------------------

show_page("console-directories", f"{ORGANIZATION}/directories", names=True)
show_page("console-directory", f"{ORGANIZATION}/directories/ldap", main=True, names=True)
show_page("console-directory-group-mappings", f"{ORGANIZATION}/directories/ldap/group-mappings", names=True)
show_page("console-directory-attribute-mappings", f"{ORGANIZATION}/directories/ldap/attribute-mappings", names=True)
show_page("console-directory-group-mapping-new", f"{ORGANIZATION}/directories/ldap/group-mappings/new")
show_page("console-directory-attribute-mapping-new", f"{ORGANIZATION}/directories/ldap/attribute-mappings/new")
sent("console-directory-test", f"{ORGANIZATION}/directories/ldap/test", status=200, main=True, names=True)

# --- plugins ----------------------------------------------------------------------------------------------------------

show_page("console-plugins", "/instance/plugins", main=True)
show_page("console-plugin", "/instance/plugins/management", main=True)

# --- management API ---------------------------------------------------------------------------------------------------

show_page("console-api", "/api", main=True)
show_page("console-api-operation", "/api/change_organization", main=True)
show_page("console-api-operation-show", "/api/show_organization?organization_id={e.organization.id}", names=True)

# --- groups -----------------------------------------------------------------------------------------------------------

show_page("console-groups", f"{ORGANIZATION}/groups", main=True, names=True)
show_page("console-groups-empty", f"{EMPTY}/groups")
show_page("console-group-new", f"{ORGANIZATION}/groups/new", main=True)
sent("console-group-errors", f"{ORGANIZATION}/groups/new", name="")
show_page("console-group", GROUP, main=True, names=True)
show_page("console-group-members", f"{GROUP}/members", names=True)
show_page("console-group-roles", f"{GROUP}/roles", main=True, names=True)
show_page("console-group-activity", f"{GROUP}/activity", main=True, names=True)
show_page("console-group-change", f"{GROUP}/edit", names=True)
show_page("console-group-deactivate", f"{GROUP}/deactivate", names=True)
show_page("console-group-reactivate", "/groups/{e.ids[idle_group]}/reactivate")
show_page("console-group-remove", f"{GROUP}/delete", names=True)
show_page("console-group-member-new", f"{GROUP}/members/new", names=True)
show_page("console-group-member-end", f"{GROUP}/members/new?user_id={{e.robot.id}}", main=True, names=True)
show_page("console-group-member-change", "/group-members/{e.ids[group_member]}/edit", names=True)
show_page("console-group-member-remove", "/group-members/{e.ids[group_member]}/delete", names=True)
show_page("console-group-grants", f"{GROUP}/grants", main=True, names=True)
show_page("console-group-grant-new", f"{GROUP}/grants/new", names=True)
show_page("console-group-grant-roles", f"{GROUP}/grants/new?project_id={{e.project.id}}", names=True)
show_page("console-group-grant-change", "/group-grants/{e.ids[group_grant]}/edit", names=True)
show_page("console-group-grant-remove", "/group-grants/{e.ids[group_grant]}/delete", names=True)
show_page("console-group-managers", f"{GROUP}/managers", main=True, names=True)
show_page("console-group-manager-new", f"{GROUP}/managers/new", main=True, names=True)
show_page("console-group-manager-roles", f"{GROUP}/managers/new?resource=project:{{e.project.id}}", names=True)
show_page("console-group-manager-change", "/group-managers/{e.ids[group_manager]}/edit", names=True)
show_page("console-group-manager-remove", "/group-managers/{e.ids[group_manager]}/delete", names=True)
show_page("console-group-mappings", f"{GROUP}/mappings", main=True, names=True)
MAPPED = "/upstream-providers/{e.ids[mapped_provider]}"
show_page("console-mapped-provider", MAPPED, names=True)
show_page("console-group-mapping-list", f"{MAPPED}/group-mappings", names=True)
show_page(
    "console-group-mapping-new",
    f"{MAPPED}/group-mappings/new",
    main=True,
    names=True,
)
show_page("console-group-mapping-change", "/group-mappings/{e.ids[group_mapping]}/edit", names=True)
show_page("console-group-mapping-remove", "/group-mappings/{e.ids[group_mapping]}/delete", names=True)
show_page("console-attribute-mapping-list", f"{MAPPED}/attribute-mappings", names=True)
show_page("console-attribute-mapping-new", f"{MAPPED}/attribute-mappings/new", names=True)
show_page("console-attribute-mapping-change", "/attribute-mappings/{e.ids[attribute_mapping]}/edit", names=True)
show_page("console-attribute-mapping-remove", "/attribute-mappings/{e.ids[attribute_mapping]}/delete", names=True)

# --- webhooks ---------------------------------------------------------------------------------------------------------

show_page("console-webhooks", f"{ORGANIZATION}/webhooks", main=True, names=True)
show_page("console-webhooks-empty", f"{EMPTY}/webhooks")
show_page("console-webhooks-instance", "/instance/webhooks", names=True)
show_page("console-webhook-new", f"{ORGANIZATION}/webhooks/new", main=True)
show_page("console-webhook-new-instance", "/instance/webhooks/new")
sent("console-webhook-errors", f"{ORGANIZATION}/webhooks/new", name="", url="http://hooks.example.com", events="x")
show_page("console-webhook", WEBHOOK, main=True, names=True)
show_page("console-webhook-change", f"{WEBHOOK}/edit", names=True)
show_page("console-webhook-rotate", f"{WEBHOOK}/rotate-secret", names=True)
show_page("console-webhook-retire", f"{WEBHOOK}/retire-previous-secret", names=True)
show_page("console-webhook-test", f"{WEBHOOK}/test", names=True)
show_page("console-webhook-deactivate", f"{WEBHOOK}/deactivate", names=True)
show_page("console-webhook-reactivate", "/webhooks/{e.ids[idle_webhook]}/reactivate")
show_page("console-webhook-delete", f"{WEBHOOK}/delete", names=True)
show_page("console-webhook-deliveries", f"{WEBHOOK}/deliveries", main=True, names=True)
show_page("console-webhook-delivery", f"{WEBHOOK}/deliveries/{{e.ids[delivery]}}", main=True, names=True)
show_page("console-webhook-resend", f"{WEBHOOK}/deliveries/{{e.ids[delivery]}}/resend")

# --- grants -----------------------------------------------------------------------------------------------------------

show_page("console-project-grants", f"{PROJECT}/grants", names=True)
show_page("console-project-grant-new", f"{PROJECT}/grants/new")
show_page("console-project-grant", GRANT, names=True)
show_page("console-project-grant-change", f"{GRANT}/edit", names=True)
show_page("console-project-grant-deactivate", f"{GRANT}/deactivate", names=True)
show_page("console-project-grant-reactivate", "/project-grants/{e.ids[idle_grant]}/reactivate")
show_page("console-project-grant-withdraw", f"{GRANT}/delete", names=True)
show_page("console-granted-projects", f"{ORGANIZATION}/granted-projects", names=True)
show_page("console-granted-projects-empty", f"{EMPTY}/granted-projects")
show_page("console-user-grants", f"{PROJECT}/user-grants", names=True)
show_page("console-user-grants-of-a-grant", f"{GRANT}/user-grants", names=True)
show_page("console-user-grant-new", f"{USER}/grants/new", names=True)
show_page("console-user-grant-new-of-a-service-user", f"{SERVICE_USER}/grants/new")
show_page(
    "console-user-grants-selected", f"{PROJECT}/user-grants/selected/delete?selected={{e.user_grant.id}}", names=True
)
show_page("console-user-grant-new-of-a-project", f"{PROJECT}/user-grants/new")
show_page("console-user-grant-new-of-a-grant", f"{GRANT}/user-grants/new")
show_page("console-user-grant-change", "/user-grants/{e.user_grant.id}/edit", names=True)
show_page("console-user-grant-remove", "/user-grants/{e.user_grant.id}/delete", names=True)

# --- audit events and token preview -----------------------------------------------------------------------------------

show_page("console-audit-events", f"{ORGANIZATION}/audit-events?limit=5", main=True, names=True)
show_page("console-audit-events-filtered", f"{ORGANIZATION}/audit-events?result=refused")
show_page("console-audit-events-none", f"{ORGANIZATION}/audit-events?actor=nobody")
show_page("console-all-audit-events", "/audit-events?limit=5", names=True)
show_page("console-search", "/search?q=a", names=True)
show_page("console-token-preview-choices", f"{ORGANIZATION}/token-preview", names=True)
show_page(
    "console-token-preview",
    f"{ORGANIZATION}/token-preview?user_id={{e.person.id}}&application_id={{e.application_id}}&scope=openid+email+phone",
    main=True,
    names=True,
)
show_page("console-token-preview-error", f"{ORGANIZATION}/token-preview?user_id=nobody", status=422)


# --- pages after several steps ----------------------------------------------------------------------------------------


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
    scene.tab.find(".rail .menu > summary").click()


def _menu_on_a_phone(scene: BrowserScenario) -> None:
    enter(scene, f"{ORGANIZATION}/projects")
    scene.tab.size(390, 844)
    scene.tab.find(".top__menu").click()


keep("console-application-registered", _application_registered, f"{PROJECT}/applications/new", names=True)
keep("console-project-conflict", _project_conflict, f"{IDLE_PROJECT}/edit", names=True, status=409)
keep("console-project-changed", _project_changed, IDLE_PROJECT)
keep("console-audit-event", _audit_event, "/audit-events/1", names=True)
keep("console-menu", _menu, f"{ORGANIZATION}/projects", main=True, names=True)
keep("console-menu-on-a-phone", _menu_on_a_phone, f"{ORGANIZATION}/projects", names=True)

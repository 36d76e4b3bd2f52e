"""The table of all pages and their routes. Needs no browser."""

from pyramid.interfaces import IRoutesMapper
from pyramid.request import Request

from identity.testing.world import World
from tests.browser import (
    account_pages,
    branding_pages,
    console_pages,
    factor_pages,
    passkey_pages,
    sign_in_pages,
    upstream_pages,
)
from tests.browser.page_scenarios import PAGES

__all__ = [
    "PAGES",
    "UNOPENED",
    "account_pages",
    "branding_pages",
    "console_pages",
    "factor_pages",
    "passkey_pages",
    "route_of",
    "sign_in_pages",
    "upstream_pages",
]

#: Page routes that no browser test opens, with the reason.
UNOPENED = {
    "home": "only redirects",
    "login": "only redirects",
    "account": "only redirects",
    "console": "only redirects",
    "pages.theme": "only takes a POST, from the account menu",
    "account.switch": "only takes a POST, from the account menu",
    "signed_out.applications": "goes on by itself after three seconds",
    "upstream.sign_out": "only redirects, to an identity provider",
    "upstream.signed_out": "only redirects",
    "upstream.go": "only redirects, to an identity provider",
    "upstream.answered": "comes from an identity provider; redirects, or shows an error page",
    "branding.style": "a style sheet",
    "branding.logo": "a picture",
    "preview.style": "a style sheet",
    "impersonation.end": "only takes a POST, from the banner of an impersonated session",
    "console.organizations.organization.users.import.user_import.report": "a CSV file",
    "console.organizations.organization.users.selected.export": "a CSV file",
    **{
        f"console.{path}.selected.{action}": "like the same page of users, or like that of deactivating them"
        for path, actions in {
            "organizations.organization.users": "invite reactivate remove-from-group take-roles",
            "organizations.organization.service-users": "add-to-group deactivate delete give-roles reactivate"
            " remove-from-group take-roles",
            "projects.project.user-grants": "deactivate reactivate",
            "project-grants.project_grant.user-grants": "deactivate delete reactivate",
        }.items()
        for action in actions.split()
    },
    "documentation.start": "only redirects, to the built documentation",
    "documentation.file": "a file of the built documentation",
    "documentation.llms": "a text file of the built documentation",
    "login.again": "only takes a POST, from the page that says that the sign-in took too long",
}


def route_of(world: World, url: str) -> str | None:
    """The name of the route that a GET of this address reaches; None if there is none."""
    request = Request.blank(url)
    request.registry = world.app.registry
    route = request.registry.getUtility(IRoutesMapper)(request)["route"]
    return None if route is None else route.name

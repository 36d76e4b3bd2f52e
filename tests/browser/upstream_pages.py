"""Pages of upstream sign-in, each with a function that opens it."""

from identity.domain.organizations import Organization
from identity.domain.records import RecordNamespace
from identity.domain.upstream_providers import UpstreamKind
from identity.plugins.upstream import unlinked_identities
from identity.plugins.upstream.provider_clients import ExternalUser
from tests.browser.page_scenarios import LONG_WORD, BrowserScenario, page


def _return_unknown_identity(scene: BrowserScenario) -> Organization:
    """Simulate the return of an unknown upstream identity; returns its new organization."""
    world = scene.site.world
    organization = world.make_organization()
    # A provider without discovery, because the test follows links.
    provider = world.make_upstream_provider(
        organization, name=LONG_WORD if scene.long else "GitHub", kind=UpstreamKind.GITHUB, issuer=""
    )
    scene.site.ask(scene.tab, scene.site.make_application("Invoices", organization))
    request_id = scene.tab.url.partition("/login/")[2]
    claims = {"email": f"{LONG_WORD}@people.example" if scene.long else "anna@people.example"}
    with world.transaction_services() as services:
        pending = services.storage.authorization_requests.find(request_id)
        assert pending is not None
        external_user = ExternalUser(issuer="https://github.com", subject=request_id, claims=claims)
        unlinked_identities.store_unlinked_identity(
            services.record_service(RecordNamespace("upstream")), pending, provider, external_user
        )
    scene.open(f"/login/{request_id}/upstream/unlinked")
    return organization


@page("/login/1/upstream", main=True, names=True)
def sent_elsewhere(scene: BrowserScenario) -> None:
    world = scene.site.world
    organization = world.make_organization()
    name = LONG_WORD if scene.long else "GitHub"
    world.make_upstream_provider(organization, name=name, kind=UpstreamKind.GITHUB, issuer="", by_domain=True)
    scene.site.ask(scene.tab, scene.site.make_application("Invoices", organization))
    scene.tab.send(login_name=f"anna@{organization.primary_domain}")


@page("/login/1/upstream/unlinked", main=True, names=True)
def unlinked_identity(scene: BrowserScenario) -> None:
    _return_unknown_identity(scene)


@page("/login/1/upstream/link", main=True, names=True)
def link_identity(scene: BrowserScenario) -> None:
    person = scene.site.make_user(organization=_return_unknown_identity(scene))
    scene.tab.send()
    scene.tab.send(login_name=person.login_name)
    scene.tab.send(password=person.password)

"""The ways to the pages of people who come from an identity provider elsewhere."""

from identity.domain.organizations import Organization
from identity.domain.records import NameSpace
from identity.domain.upstream_providers import UpstreamKind
from identity.plugins.upstream import unlinked
from identity.plugins.upstream.clients import Somebody
from tests.browser.scene import LONG_WORD, Scene, page


def _came_from_elsewhere(scene: Scene) -> Organization:
    """Back from a provider, as somebody who is nobody here: what the provider's answer leaves behind is there. Returns
    the organization, which nobody else has."""
    world = scene.site.world
    organization = world.an_organization()
    # One that is asked nothing before people are sent there: links are followed.
    provider = world.an_upstream_provider(
        organization, name=LONG_WORD if scene.long else "GitHub", kind=UpstreamKind.GITHUB, issuer=""
    )
    scene.site.ask(scene.tab, scene.site.an_application("Invoices", organization))
    request_id = scene.tab.url.partition("/login/")[2]
    claims = {"email": f"{LONG_WORD}@people.example" if scene.long else "anna@people.example"}
    with world.transaction() as services:
        pending = services.storage.authorization_requests.find(request_id)
        assert pending is not None
        somebody = Somebody(issuer="https://github.com", subject=request_id, claims=claims)
        unlinked.keep(services.records(NameSpace("upstream")), pending, provider, somebody)
    scene.open(f"/login/{request_id}/upstream/unlinked")
    return organization


@page("/login/1/upstream", main=True, names=True)
def sent_elsewhere(scene: Scene) -> None:
    world = scene.site.world
    organization = world.an_organization()
    name = LONG_WORD if scene.long else "GitHub"
    world.an_upstream_provider(organization, name=name, kind=UpstreamKind.GITHUB, issuer="", by_domain=True)
    scene.site.ask(scene.tab, scene.site.an_application("Invoices", organization))
    scene.tab.send(login_name=f"anna@{organization.primary_domain}")


@page("/login/1/upstream/unlinked", main=True, names=True)
def unlinked_identity(scene: Scene) -> None:
    _came_from_elsewhere(scene)


@page("/login/1/upstream/link", main=True, names=True)
def link_identity(scene: Scene) -> None:
    person = scene.site.a_person(organization=_came_from_elsewhere(scene))
    scene.tab.send()
    scene.tab.send(login_name=person.login_name)
    scene.tab.send(password=person.password)

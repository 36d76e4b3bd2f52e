"""The way out: somebody is sent to a provider, and what they are to bring back is remembered."""

from collections.abc import Iterator, Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.upstream_providers import RETURN_PATH, UpstreamProvider
from identity.domain.words import say
from identity.http.endpoints import context_of
from identity.http.sign_ins import WaitingSignIn
from identity.lazily import lazily
from identity.pages.drawing import redirect
from identity.pages.errors import error_page
from identity.pages.forms import Form
from identity.pages.sign_in_page import SignInPage
from identity.plugins.upstream import states, ways
from identity.plugins.upstream.asking import SETTING, Refusal, Unreachable
from identity.plugins.upstream.desk import desk_of
from identity.plugins.upstream.pages.runners import run_by
from identity.plugins.upstream.states import Purpose
from identity.services.upstream_providers import OF_INSTANCE

_DECISION = "decision"
#: Where somebody who signs in is sent to a provider: below the providers' paths, where GET may write.
WAY = f"{RETURN_PATH}/{{provider}}/for/{{request}}"
#: What it takes to change a provider, and to try it.
PERMISSION = "upstream_provider.write"


def way_to(provider: UpstreamProvider, request_id: str) -> str:
    """The path that leads to a provider, from a sign-in that waits."""
    return WAY.format(provider=provider.id, request=request_id)


class Straight(SignInPage):
    """/login/{request}/upstream: where they are to sign in, and another way.

    Whose name was entered makes no difference: what a provider is worth to a person is told once they have proved it.
    """

    template = "upstream/straight.html"
    fields = (_DECISION,)

    @lazily
    def provider(self) -> UpstreamProvider | None:
        """Where; None where they are sent nowhere."""
        return ways.next_provider(self.sign_in, context_of(self.request))

    def show(self) -> Mapping[str, object] | Response:
        """What it is called, and who runs it."""
        if self.provider is None:
            return self.go_on()
        return {"provider": self.provider.name, "run_by": run_by(self.provider, self.request.services)}

    def submit(self, form: Form) -> Response:
        """303 there, or back to the first page."""
        if form.one(_DECISION) == "another":
            self.request.services.sign_ins.want_another_way(self.pending)
            return self.redirect(self.root)
        return self.go_on() if self.provider is None else self.redirect(way_to(self.provider, self.pending.id))


def go(context: WaitingSignIn, request: Request) -> Response:
    """303 to the provider. Raises NotFound for one at which they cannot sign in."""
    services, provider_id = request.services, request.matchdict["provider"]
    found = {one.id: one for one in ways.offered(context.sign_in, services)}
    if provider_id not in found:
        raise NotFound("identity provider", provider_id)
    pending, sign_in = context.pending, context.sign_in
    anew = sign_in.chosen is not None and not sign_in.fresh(sign_in.chosen)
    anew = anew or sign_in.wants_proof
    return send(
        request,
        found[provider_id],
        Purpose.SIGN_IN,
        pending.id,
        anew=anew,
        login_hint="" if sign_in.login_name is None else sign_in.login_name.whole,
        ui_locales=pending.ui_locales,
        back=f"/login/{pending.id}",
    )


def send(
    request: Request,
    provider: UpstreamProvider,
    purpose: Purpose,
    of: str,
    *,
    back: str,
    anew: bool = False,
    login_hint: str = "",
    ui_locales: str = "",
) -> Response:
    """303 to the provider, or a page that says why not, from which a link leads ``back``."""
    desk = desk_of(request)
    login_url, now = request.registry.identity.settings.login_url, request.services.now
    records = request.services.records(desk.name_space)
    begun = states.begin(records, provider, purpose, of, login_url=login_url, now=now, anew=anew)
    # Nothing is locked while the provider is asked where it is.
    request.commit()
    try:
        with desk.client(provider) as client:
            address = client.address(begun, login_hint=login_hint, ui_locales=ui_locales)
    except (Unreachable, Refusal) as problem:
        return failed(request, provider, problem, back=back, purpose=purpose)
    response = redirect(request, "/")
    response.headers["Location"] = address
    # What follows is the provider's business, and where they come from is not.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def failed(
    request: Request, provider: UpstreamProvider, problem: Unreachable | Refusal, *, back: str, purpose: Purpose
) -> Response:
    """The page that says that the provider is of no use now; only its own button is lost.

    Whoever tries it learns why.
    """
    services = request.services
    services.audit.refuse(
        "authentication.refused",
        kind="upstream_provider",
        id=provider.id,
        organization_id=provider.organization_id,
        reason=problem.why,
    )
    absent = isinstance(problem, Unreachable)
    return error_page(
        request,
        503 if absent else 400,
        say("You cannot sign in at {provider} now", provider=provider.name),
        [
            say("It does not answer.") if absent else say("What it answered cannot be relied on."),
            *(_reasons(request, provider, problem) if purpose is Purpose.TEST else ()),
        ],
        advice=say("Try it again, or choose another way."),
        action=(say("Choose another way"), back),
    )


def _reasons(request: Request, provider: UpstreamProvider, problem: Unreachable | Refusal) -> Iterator[str]:
    """What is wrong, for whoever may change the provider; of addresses that are not public for the instance's managers
    alone."""
    access = request.services.access
    principal = access.principal(request.account.subject)
    if not access.may(principal, PERMISSION, organization_resource(provider.organization_id)):
        return
    if isinstance(problem, Unreachable) and problem.private and access.may(principal, OF_INSTANCE, INSTANCE):
        yield say("Its host name leads to no public address.")
        yield say("To allow it, name the network in the setting {setting}.", setting=SETTING)
    else:
        yield say("The reason: {reason}.", reason=problem.why)

"""The way back: what a provider's answer is worth, and what comes of it."""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from pyramid.request import Request
from pyramid.response import Response

from identity import watching
from identity.domain.authentication import FEDERATED, UNDATED
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.sessions import PendingAuthorization
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.words import say
from identity.http.endpoints import context_of, protocol_request
from identity.pages.drawing import redirect
from identity.pages.errors import error_page
from identity.pages.signed_in_page import FRESH_FOR
from identity.plugins.upstream import states, unlinked, ways
from identity.plugins.upstream.accounts import Accounts, NoAccount, NotLinked
from identity.plugins.upstream.asking import Refusal, Unreachable
from identity.plugins.upstream.clients import Credentials, Somebody
from identity.plugins.upstream.desk import credentials_of, desk_of
from identity.plugins.upstream.links import Links
from identity.plugins.upstream.pages.going import failed
from identity.plugins.upstream.pages.linking import somebody_elses
from identity.plugins.upstream.pages.trying import tried
from identity.plugins.upstream.profile import apple_name
from identity.plugins.upstream.sign_out import remember
from identity.plugins.upstream.states import Purpose, Waiting
from identity.provider.endpoints.authorize import PATH, sign_in_of
from identity.provider.errors import LoginRequired, MethodNotAllowed, OAuthError
from identity.provider.parameters import Parameters
from identity.services.sign_ins import NoSignIn

#: What a provider's answer can hold (RFC 6749 §4.1.2, RFC 9207); ``user`` is Apple's.
_MEMBERS = ("code", "state", "iss", "error", "user")
_LONGEST = 4096

Answered = Callable[[Request, UpstreamProvider, Waiting, Somebody], Response]


def answered(request: Request) -> Response:
    """What comes of an answer; one that came as a form from elsewhere comes again with GET, when cookies do too."""
    if request.method == "HEAD":
        # It must not do what GET does (RFC 9110 §9.3.2).
        raise MethodNotAllowed(("GET", "POST"))
    if request.method == "POST":
        return _again(request)
    try:
        said = _members(Parameters.parse(request.environ.get("QUERY_STRING", "").encode("latin-1")))
    except OAuthError:
        return _unknown(request)
    provider = request.services.upstream_providers.find(request.matchdict["provider"])
    if provider is None or not provider.usable:
        return _unknown(request)
    # Committed: the state is used up whatever follows, and no lock is held while the provider is asked.
    taken = request.once("state", lambda: _take(request, provider, said.get("state", "")))
    if taken is None:
        return _unknown(request)
    waiting, back, credentials = taken
    try:
        with desk_of(request).client(provider) as client:
            client.refuse_mixed_up(said.get("iss"))
            if "error" in said or "code" not in said:
                watching.came_to(watching.SIGN_IN, ways.FACTOR, watching.REFUSED)
                return _not_signed_in(request, provider, back)
            now = request.services.now
            # The provider accepts its code only once.
            somebody = request.once("code", lambda: client.redeem(said["code"], waiting.begun, credentials, now))
    except (Unreachable, Refusal) as problem:
        watching.came_to(watching.SIGN_IN, ways.FACTOR, watching.FAILED)
        return failed(request, provider, problem, back=back, purpose=waiting.purpose)
    return PURPOSES[waiting.purpose](request, provider, waiting, apple_name(provider, somebody, said.get("user", "")))


def _take(request: Request, provider: UpstreamProvider, state: str) -> tuple[Waiting, str, Credentials] | None:
    """What the state stands for, where this browser was and how to authenticate at the provider, with the state used
    up; None if the state is not this browser's, not the provider's, or was used before."""
    records = request.services.records(desk_of(request).name_space)
    waiting = states.find(records, state)
    if waiting is None or waiting.provider_id != provider.id:
        return None
    back = _back(request, waiting)
    if back is None or not states.use_up(records, waiting.begun.state):
        return None
    return waiting, back, credentials_of(provider, request.services)


def _again(request: Request) -> Response:
    form = Parameters.parse(protocol_request(request).body)
    return redirect(request, f"{request.path}?{urlencode(_members(form))}")


def _members(parameters: Parameters) -> dict[str, str]:
    """What counts of an answer. Raises OAuthError for what is given twice."""
    parameters.refuse_repeated()
    return {name: value for name in _MEMBERS if (value := parameters.get(name, "")) and len(value) <= _LONGEST}


def _back(request: Request, waiting: Waiting) -> str | None:
    """Where this browser was when it was sent away; None if it was another one, or is not there any more."""
    if waiting.purpose is Purpose.SIGN_IN:
        return None if _pending(request, waiting) is None else f"/login/{waiting.of}"
    account = request.account
    if account is None or account.session.id != waiting.of:
        return None
    return "/account/security" if waiting.purpose is Purpose.LINK else "/console"


def _pending(request: Request, waiting: Waiting) -> PendingAuthorization | None:
    """The sign-in that waits in this very browser."""
    try:
        found: PendingAuthorization = request.services.sign_ins.find(
            waiting.of, request.browser.sign_ins.get(waiting.of)
        )
    except NoSignIn:
        return None
    return found


def _unknown(request: Request) -> Response:
    """An answer to nothing that was asked in this browser, or that was given already."""
    return error_page(
        request,
        400,
        say("This sign-in cannot go on here"),
        [say("It was begun in another browser, took too long, or is done already.")],
        advice=say("Go back to the application and open it again."),
        action=(say("Your account"), "/account"),
    )


def _not_signed_in(request: Request, provider: UpstreamProvider, back: str) -> Response:
    return error_page(
        request,
        400,
        say("You have not signed in at {provider}", provider=provider.name),
        advice=say("Try it again, or choose another way."),
        action=(say("Choose another way"), back),
    )


def sign_in(request: Request, provider: UpstreamProvider, waiting: Waiting, somebody: Somebody) -> Response:
    """The person has proved who they are: on with the sign-in that waits."""
    try:
        return _sign_in(request, provider, waiting, somebody)
    except (Conflict, Invalid):
        # Of two that come for the first time at the same moment one makes the account, which the other finds then.
        request.roll_back()
        return _sign_in(request, provider, waiting, somebody)


def _sign_in(request: Request, provider: UpstreamProvider, waiting: Waiting, somebody: Somebody) -> Response:
    services = request.services
    pending = _pending(request, waiting)
    if pending is None:
        return _unknown(request)
    try:
        under_way = sign_in_of(pending, request.browser, context_of(request))
    except OAuthError:
        return redirect(request, f"{PATH}/{pending.id}")
    records = services.records(desk_of(request).name_space)
    accounts = Accounts(services, Links(records, services.now), provider)
    try:
        subject = accounts.subject_of(somebody, ways.organization_of(under_way, services))
        required = under_way.organization
        if required is not None and subject.organization.id != required.id:
            why = say("You need an account of {organization}.", organization=services.branding.name_of(required))
            raise NoAccount(why, "another organization is required")
        if not services.policies.allow(subject, ways.FACTOR):
            name = services.branding.name_of(subject.organization)
            why = say("{organization} does not let people sign in in this way.", organization=name)
            raise NoAccount(why, "the policy of the organization")
    except NotLinked as nobody:
        _refuse(request, provider, str(nobody))
        unlinked.keep(records, pending, provider, somebody)
        return redirect(request, f"/login/{pending.id}/upstream/unlinked")
    except NoAccount as refused:
        return _no_account(request, provider, refused, f"/login/{pending.id}")
    methods = somebody.methods if provider.trust_methods and somebody.methods else (FEDERATED,)
    methods = methods if somebody.just_now else (*methods, UNDATED)
    proved = services.sign_ins.prove(pending, subject, methods, factor=ways.FACTOR)
    if not _goes_on(request, proved):
        why = say(
            "{provider} does not say when you last signed in there, and that is asked for.", provider=provider.name
        )
        return _no_account(request, provider, NoAccount(why, "the provider does not say when"), f"/login/{pending.id}")
    watching.came_to(watching.SIGN_IN, ways.FACTOR, watching.SUCCEEDED)
    remember(request, provider, subject, somebody)
    return redirect(request, f"{PATH}/{pending.id}")


def _goes_on(request: Request, proved: PendingAuthorization) -> bool:
    """False if it is to be known when they proved who they are, and they have nothing to prove it here."""
    try:
        _ = sign_in_of(proved, request.browser, context_of(request)).need
    except LoginRequired:
        return False
    except OAuthError:
        # It is answered where the sign-in goes on.
        return True
    return True


def _refuse(request: Request, provider: UpstreamProvider, reason: str) -> None:
    watching.came_to(watching.SIGN_IN, ways.FACTOR, watching.REFUSED)
    request.services.audit.refuse(
        "authentication.refused",
        kind="upstream_provider",
        id=provider.id,
        organization_id=provider.organization_id,
        reason=reason,
    )


def _no_account(request: Request, provider: UpstreamProvider, refused: NoAccount, back: str) -> Response:
    _refuse(request, provider, refused.reason)
    # What was begun for them, such as an account in another organization, is not kept.
    request.tm.doom()
    return error_page(
        request,
        403,
        say("You have signed in at {provider}, but not here", provider=provider.name),
        [refused.why],
        action=(say("Choose another way"), back),
    )


def link(request: Request, provider: UpstreamProvider, waiting: Waiting, somebody: Somebody) -> Response:
    """From now on it is an account of whoever is signed in. Raises Conflict if it is somebody else's."""
    services = request.services
    accounts = Accounts(services, Links(services.records(desk_of(request).name_space), services.now), provider)
    account = request.account
    if account is None or account.session.id != waiting.of:
        return _unknown(request)
    if not services.upstream_providers.serves(provider, account.subject):
        raise NotFound("identity provider", provider.id)
    proved_at = account.session.proved_at
    if proved_at is None or services.now - proved_at >= FRESH_FOR:
        # It took too long there: who they are is proved again first.
        return redirect(request, f"/account/identities/new/{provider.id}")
    try:
        accounts.link(somebody, account.subject)
    except Conflict:
        return somebody_elses(request, (say("Your account"), "/account/security"))
    return redirect(request, "/account/security")


PURPOSES: Mapping[Purpose, Answered] = {Purpose.SIGN_IN: sign_in, Purpose.LINK: link, Purpose.TEST: tried}

"""An account elsewhere that is nobody's here is linked in the sign-in that it was to answer."""

from collections.abc import Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.authentication import dated
from identity.domain.errors import Conflict
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Subject
from identity.domain.words import say
from identity.lazily import lazily
from identity.pages.errors import error_page
from identity.pages.forms import Form
from identity.pages.sign_in_page import SignInPage
from identity.pages.signed_in_page import FRESH_FOR
from identity.plugins.upstream import unlinked
from identity.plugins.upstream.accounts import Accounts
from identity.plugins.upstream.desk import desk_of
from identity.plugins.upstream.links import Links, reference
from identity.plugins.upstream.pages.runners import run_by
from identity.plugins.upstream.unlinked import LinkIdentity, Unlinked
from identity.services.records import Records

#: Whom the page was shown to, and for which account elsewhere: both may be others by now in another window.
_ACCOUNT, _IDENTITY = "account", "identity"
_DECISION = "decision"


class _Page(SignInPage):
    @property
    def records(self) -> Records:
        """What the plugin keeps."""
        records: Records = self.request.services.records(desk_of(self.request).name_space)
        return records

    @lazily
    def found(self) -> Unlinked | None:
        """What waits with this sign-in."""
        return unlinked.find(self.request.services, desk_of(self.request).name_space, self.pending)


class Unknown(_Page):
    """/login/{request}/upstream/unlinked: nobody here is it; whoever proves who they are can link it."""

    template = "upstream/unlinked.html"

    def show(self) -> Mapping[str, object] | Response:
        """What it is called there."""
        if self.found is None:
            return self.go_on()
        provider = self.found.provider
        return {
            "provider": provider.name,
            "called": self.found.name,
            "run_by": run_by(provider, self.request.services),
        }

    def submit(self, form: Form) -> Response:
        """They prove who they are, whoever is signed in at this browser."""
        if self.found is not None:
            self.request.services.sign_ins.ask_anew(self.pending)
        return self.go_on()


class Link(_Page):
    """/login/{request}/upstream/link: whether whoever has just proved who they are wants it linked."""

    template = "upstream/link_here.html"
    fields = (_ACCOUNT, _IDENTITY)

    @lazily
    def subject(self) -> Subject | None:
        """Who they are; None unless it is time to ask."""
        return self.sign_in.proved if self.is_next(LinkIdentity.name) else None

    def show(self) -> Mapping[str, object] | Response:
        """The two accounts."""
        found = self.found
        if self.subject is None or found is None:
            return self.go_on()
        return {
            "provider": found.provider.name,
            "called": found.name,
            "run_by": run_by(found.provider, self.request.services),
            "login_name": self.subject.login_name,
            "organization": self.subject.organization.name,
            "fits": self._accounts(found.provider).may_be(self.subject),
            "account": self.subject.user.id,
            "identity": reference(found.provider, found.somebody),
        }

    def submit(self, form: Form) -> Response:
        """Link it, or not. It is asked once."""
        subject, found = self.subject, self.found
        if subject is None or found is None:
            return self.go_on()
        shown = (subject.user.id, reference(found.provider, found.somebody))
        if (form.one(_ACCOUNT), form.one(_IDENTITY)) != shown or form.one(_DECISION) not in ("link", "leave"):
            return self.go_on()
        if form.one(_DECISION) == "link" and not self._is_fresh():
            self.request.services.sign_ins.ask_anew(self.pending)
            return self.go_on()
        if not unlinked.use_up(self.records, self.pending) or form.one(_DECISION) == "leave":
            return self.go_on()
        accounts = self._accounts(found.provider)
        if not accounts.may_be(subject):
            return self.go_on()
        try:
            accounts.link(found.somebody, subject)
        except Conflict:
            return somebody_elses(self.request, (say("Go on"), self.context.continue_at))
        return self.go_on()

    def _is_fresh(self) -> bool:
        """True if they have proved who they are in the last ten minutes; the sign-in may have waited for longer."""
        proved_at = self.pending.authenticated_at if dated(self.pending.proofs) else None
        return proved_at is not None and self.request.services.now - proved_at < FRESH_FOR

    def _accounts(self, provider: UpstreamProvider) -> Accounts:
        services = self.request.services
        return Accounts(services, Links(self.records, services.now), provider)


def somebody_elses(request: Request, action: tuple[str, str]) -> Response:
    """The page that says that an account elsewhere is linked to somebody else here."""
    return error_page(
        request,
        409,
        say("This account is linked to somebody else here"),
        [say("Sign in with it, unlink it there, then link it here.")],
        action=action,
    )

"""ProvePage and EnrolPage: what the pages of every factor have in common; a factor's plugin says how it is verified.

::

    class ProveTotp(ProvePage):
        template = "totp/prove.html"
        factor = Totp
        fields = ("code",)

        def submit(self, form):
            return self.prove(lambda: self.verified(form.one("code")), say("This code is wrong."))

    config.add_factor_pages(ProveTotp, EnrolTotp)
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.errors import Conflict, Invalid
from identity.domain.factors import Enrolment
from identity.domain.policies import Policy
from identity.domain.sessions import SignedIn
from identity.domain.users import Subject
from identity.hashing import Busy
from identity.http.cookies import headers_for
from identity.http.endpoints import context_of
from identity.http.sign_ins import WaitingSignIn, try_factor
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.sign_in_page import SignInPage
from identity.provider.assurance import FACTOR, offered
from identity.provider.factor import Factor
from identity.provider.interaction import ENROL
from identity.provider.request import Cookie, CookieKind
from identity.services.attempts import TooManyAttempts
from identity.services.bundle import Services

#: The field by which somebody asks not to be asked again at this browser.
REMEMBER = "remember"


class FactorPage(SignInPage):
    """A page of one factor. Whoever comes to it out of turn is sent on."""

    factor: ClassVar[type[Factor]]
    #: True if GET keeps something, such as a challenge: it is a transaction then.
    writes_when_shown: ClassVar[bool] = False

    @property
    def person(self) -> Subject:
        """Who proves it, or sets it up."""
        subject = self.sign_in.subject
        if subject is None:
            raise Conflict("Nobody has said who they are.")
        return subject

    @property
    def enrolments(self) -> tuple[Enrolment, ...]:
        """What the person has set up of this factor, newest first."""
        services: Services = self.request.services
        return services.factors.of(self.person.user.id, self.factor.name)

    @property
    def policy(self) -> Policy:
        """What holds for the person."""
        services: Services = self.request.services
        return services.policies.of_subject(self.person)

    def is_due(self) -> bool:
        """True if it is the page's turn."""
        raise NotImplementedError

    def _is_good(self) -> bool:
        return super()._is_good() and self.is_due()

    def shared(self) -> Mapping[str, object]:
        """The heading, and who it is about."""
        return {**super().shared(), "login_name": self.person.login_name}

    def tried(
        self, verify: Callable[[], tuple[str, ...] | None], wrong: str, *, field: str = "code"
    ) -> tuple[str, ...]:
        """The methods that ``verify`` says, in an attempt that is counted as one at a password is; None is a failure.

        ``verify`` runs in another transaction than what was read before: it asks for services anew, and what it uses
        up is committed together with what follows. Raises Invalid with ``wrong`` for the field; Again.
        """
        try:
            methods = try_factor(self.request, self.factor.name, self.person, verify)
        except (TooManyAttempts, Busy) as problem:
            raise held_back(problem, password=False) from None
        if methods is None:
            raise Invalid({field: wrong})
        return methods

    def _note(self, interaction: str, methods: tuple[str, ...]) -> None:
        """Have the sign-in know what was proved. Raises Conflict if it goes on elsewhere."""
        account: SignedIn | None = None if self.sign_in.proved is not None else self.sign_in.chosen
        self.request.services.sign_ins.done(
            self.pending, interaction, account=account, methods=methods, factor=self.factor.name
        )


class ProvePage(FactorPage):
    """Where the person proves a factor that they have set up. Attempts are counted as those of passwords are."""

    untyped_fields = frozenset({REMEMBER})

    def is_due(self) -> bool:
        """True if the sign-in waits for it, or for others that stand beside it."""
        need = self.sign_in.need
        return need is not None and self.factor.name in need.by and self.is_next(FACTOR)

    def prove(self, verify: Callable[[], tuple[str, ...] | None], wrong: str, *, field: str = "code") -> Response:
        """On with the sign-in if ``verify`` says by which methods (RFC 8176) it is proved, as ``tried`` does."""
        self._note(FACTOR, self.tried(verify, wrong, field=field))
        response = self.go_on()
        if self.may_remember and self._asked_to_remember:
            response.headerlist.extend(headers_for(self.request, (self._remembered(),)))
        return response

    @property
    def may_remember(self) -> bool:
        """True if the policy lets the person have this browser ask no more for some time."""
        need = self.sign_in.need
        return (
            need is not None and not need.by_client and not self.sign_in.demands and bool(self.policy.remember_browser)
        )

    def shared(self) -> Mapping[str, object]:
        """The same, with the way to other factors, and for how many days this browser can be remembered."""
        need = self.sign_in.need
        return {
            **super().shared(),
            "why": why_asked(self),
            "other_ways": f"{self.root}/factors" if need is not None and len(need.by) > 1 else "",
            "remember_days": self.policy.remember_browser if self.may_remember else 0,
        }

    def _read(self) -> Form:
        form = super()._read()
        self._asked_to_remember = REMEMBER in form
        return form

    def _remembered(self) -> Cookie:
        lifetime = self.policy.remembered_for
        browsers = self.request.services.remembered_browsers
        id_, secret = browsers.remember(self.person, self.request.browser.user_agent, lifetime)
        return Cookie(CookieKind.REMEMBERED, id_, secret, lifetime)


class EnrolPage(FactorPage):
    """Where the person sets up a factor: because a sign-in needs one that they have not, or the account sent them."""

    def is_due(self) -> bool:
        """True if the sign-in needs it set up, or was begun for that, and the policy lets people use it."""
        context = context_of(self.request)
        if self.sign_in.subject is None or not any(
            one.name == self.factor.name for one in offered(context, self.policy)
        ):
            return False
        need = self.sign_in.need
        if need is not None:
            return not need.by and self.factor.name in need.to_enrol and self.is_next(FACTOR)
        return self.sign_in.demands.get(ENROL) == self.factor.name and self.is_next(ENROL)

    def enrol(
        self,
        value: Mapping[str, Any],
        methods: tuple[str, ...],
        *,
        name: str = "",
        key: str | None = None,
        replacing: bool = False,
    ) -> Response:
        """Keep it, count it as proved by these methods (RFC 8176), and on with the sign-in; with ``replacing`` in place
        of all that the person has of the factor. Raises Conflict if the key is taken or there are too many."""
        self.enrolled(value, name=name, key=key, replacing=replacing)
        return self.finish(methods)

    def enrolled(
        self, value: Mapping[str, Any], *, name: str = "", key: str | None = None, replacing: bool = False
    ) -> Enrolment:
        """Keep it; for pages that have yet to show something. Then ``finish`` follows."""
        factors = self.request.services.factors
        kept: Enrolment = (
            factors.replace_all(self.person, self.factor.name, value, name=name)
            if replacing
            else factors.add(self.person, self.factor.name, value, name=name, key=key)
        )
        return kept

    def finish(self, methods: tuple[str, ...]) -> Response:
        """Count it as proved, and on with the sign-in."""
        self._note(FACTOR if self.sign_in.need is not None else ENROL, methods)
        return self.go_on()

    def shared(self) -> Mapping[str, object]:
        """The same, with the way to other factors, or back to where the person came from."""
        need = self.sign_in.need
        several = need is not None and len(need.to_enrol) > 1
        back = self.pending.target if need is None and self.pending.target else ""
        return {**super().shared(), "other_ways": f"{self.root}/factors/new" if several else "", "back": back}


def why_asked(page: SignInPage) -> Markup:
    """Who wants a second factor: the application, the organization's policy, or the person by having set one up."""
    sign_in, words = page.sign_in, page.words
    need, subject = sign_in.need, sign_in.subject
    if need is None or subject is None:
        return Markup()
    asked = sign_in.request
    if need.by_client and asked is not None:
        name = page.looks.application or asked.client.application.name
        return words.t("{application} asks for more than your password.", application=name)
    if sign_in.demands:
        return words.t("You are about to change how you sign in, so show that it is you.")
    services: Services = page.request.services
    if services.policies.asks_second_factor(subject):
        return words.t("{organization} asks for a second factor.", organization=page.name_of(subject.organization))
    return words.t("You have set up a second factor for your account.")


def add_factor_pages(config: Configurator, prove: type[ProvePage] | None, enrol: type[EnrolPage]) -> None:
    """Directive: the pages of a factor, below ``/login/{request}`` at its name, and at ``{name}/new``."""
    name = enrol.factor.name
    pages: dict[str, type[FactorPage]] = {f"{name}.new": enrol}
    if prove is not None:
        pages[name] = prove
    for route, page in pages.items():
        path = route.replace(".", "/")
        if page.writes_when_shown:
            config.registry.identity.writing_steps.add(path)
        config.add_page(
            f"login.{route}",
            f"/login/{{request}}/{path}",
            page,
            permission=NO_PERMISSION_REQUIRED,
            factory=WaitingSignIn,
        )


def includeme(config: Configurator) -> None:
    """Make the directive known."""
    config.add_directive("add_factor_pages", add_factor_pages)

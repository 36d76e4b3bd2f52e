"""ProvePage and EnrolPage, the base classes of every factor's pages; the factor's plugin implements the verification.

::

    class ProveTotpPage(ProvePage):
        template = "totp/prove.html"
        factor = TotpFactor
        fields = ("code",)

        def submit(self, form):
            return self.prove(lambda: self._verify_code(form.text("code")), gettext_lazy("This code is wrong."))

    config.add_factor_pages(ProveTotpPage, EnrolTotpPage)
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.enrolments import Enrolment
from identity.domain.errors import Invalid
from identity.domain.policies import Policy
from identity.http.cookies import request_cookie_headers
from identity.http.endpoint_routes import request_context
from identity.http.sign_in_attempts import PendingSignInContext
from identity.pages.forms import Form
from identity.pages.sign_in_page import SignInPage
from identity.provider.factor import Factor
from identity.provider.interaction import Interaction, SignIn
from identity.provider.protocol_request import Cookie, CookieKind
from identity.provider.step_up import allowed_factors
from identity.services.container import Services

#: The checkbox "remember this browser".
REMEMBER_FIELD = "remember"


class FactorPage(SignInPage):
    """A page of one factor. It redirects if it is not the sign-in's current step."""

    factor: ClassVar[type[Factor]]
    #: True if GET stores something, such as a challenge; it then runs in a write transaction.
    writes_on_get: ClassVar[bool] = False

    @property
    def enrolments(self) -> tuple[Enrolment, ...]:
        """The user's enrolments of this factor, newest first."""
        services: Services = self.request.services
        return services.factors.list_enrolments(self.human_user.user.id, self.factor.name)

    @property
    def policy(self) -> Policy:
        services: Services = self.request.services
        return services.policies.subject_policy(self.human_user)

    def common_variables(self) -> Mapping[str, object]:
        return {**super().common_variables(), "login_name": self.human_user.login_name}

    def verify_counted(
        self, verify: Callable[[], tuple[str, ...] | None], error_message: str, *, field: str = "code"
    ) -> tuple[str, ...]:
        """The authentication methods that ``verify`` returns; its attempts are rate limited like password attempts, and
        None is a failure.

        ``verify`` runs in a later transaction than earlier reads: it must get the services again, and what it
        consumes is committed with what follows. Raises Invalid with ``error_message`` for the field, or
        FormRedisplay.
        """
        methods = self.attempt_factor(self.factor.name, self.human_user, verify)
        if methods is None:
            raise Invalid({field: error_message})
        return methods

    def _update_sign_in(self, interaction: str, methods: tuple[str, ...]) -> None:
        """Record the proved methods. Raises Conflict if another request has advanced the sign-in."""
        self.request.services.sign_ins.complete_interaction(
            self.pending_authorization,
            interaction,
            account=self.sign_in.selected_account,
            methods=methods,
            factor=self.factor.name,
        )


class ProvePage(FactorPage):
    """Proves an enrolled factor. Attempts count like those at a password."""

    non_text_fields = frozenset({REMEMBER_FIELD})

    def is_current_step(self) -> bool:
        """True if the sign-in waits for this factor, or for an alternative to it."""
        need = self.sign_in.step_up_requirement
        return need is not None and self.factor.name in need.factors and self.is_next_interaction(Interaction.FACTOR)

    def prove(self, verify: Callable[[], tuple[str, ...] | None], wrong: str, *, field: str = "code") -> Response:
        """Continue the sign-in if ``verify`` returns the methods (RFC 8176) that prove it; see ``verify_counted``."""
        self._update_sign_in(Interaction.FACTOR, self.verify_counted(verify, wrong, field=field))
        response = self.redirect_to_next()
        if self.can_remember_browser and self._asked_to_remember:
            response.headerlist.extend(request_cookie_headers(self.request, (self._remember_browser(),)))
        return response

    @property
    def can_remember_browser(self) -> bool:
        """True if the policy lets users skip the second factor at a remembered browser."""
        need = self.sign_in.step_up_requirement
        return (
            need is not None
            and not need.is_client_request
            and not self.sign_in.own_page_requirements
            and bool(self.policy.remember_browser)
        )

    def common_variables(self) -> Mapping[str, object]:
        """Adds links to other factors, and for how many days this browser can be remembered."""
        need = self.sign_in.step_up_requirement
        return {
            **super().common_variables(),
            "why": self.factor_reason,
            "other_ways": f"{self.base_path}/factors" if need is not None and len(need.factors) > 1 else "",
            "remember_days": self.policy.remember_browser if self.can_remember_browser else 0,
        }

    def _read_form(self) -> Form:
        form = super()._read_form()
        self._asked_to_remember = REMEMBER_FIELD in form
        return form

    def _remember_browser(self) -> Cookie:
        lifetime = self.policy.remember_browser_lifetime
        browsers = self.request.services.remembered_browsers
        id_, secret = browsers.remember(self.human_user, self.request.browser_state.user_agent, lifetime)
        return Cookie(CookieKind.REMEMBERED, id_, secret, lifetime)


class EnrolPage(FactorPage):
    """Enrols a factor, because a sign-in requires it or the user came from the account."""

    def is_current_step(self) -> bool:
        """True if the policy allows the factor, and the sign-in requires it or was started for its enrolment."""
        context = request_context(self.request)
        if self.sign_in.subject is None or self.factor.name not in allowed_factors(context, self.policy):
            return False
        need = self.sign_in.step_up_requirement
        if need is not None:
            return (
                not need.factors
                and self.factor.name in need.enrollable_factors
                and self.is_next_interaction(Interaction.FACTOR)
            )
        return self.sign_in.own_page_requirements.get(
            SignIn.ENROL_PARAMETER
        ) == self.factor.name and self.is_next_interaction(SignIn.ENROL_PARAMETER)

    def enrol(
        self,
        value: Mapping[str, Any],
        methods: tuple[str, ...],
        *,
        name: str = "",
        key: str | None = None,
        replaces_existing: bool = False,
    ) -> Response:
        """Store the enrolment, count it as proved by these methods (RFC 8176) and continue the sign-in.

        ``replaces_existing`` removes the user's other enrolments of the factor. Raises Conflict if the key is taken
        or there are too many.
        """
        self.store_enrolment(value, name=name, key=key, replacing=replaces_existing)
        return self.complete_sign_in_step(methods)

    def store_enrolment(
        self, value: Mapping[str, Any], *, name: str = "", key: str | None = None, replacing: bool = False
    ) -> Enrolment:
        """Store the enrolment, for pages that show something before they call ``complete_sign_in_step``."""
        factors = self.request.services.factors
        enrolment: Enrolment = (
            factors.replace_all(self.human_user, self.factor.name, value, name=name)
            if replacing
            else factors.enrol(self.human_user, self.factor.name, value, name=name, key=key)
        )
        return enrolment

    def complete_sign_in_step(self, methods: tuple[str, ...]) -> Response:
        """Count the factor as proved and continue the sign-in."""
        self._update_sign_in(
            Interaction.FACTOR if self.sign_in.step_up_requirement is not None else SignIn.ENROL_PARAMETER, methods
        )
        return self.redirect_to_next()

    def common_variables(self) -> Mapping[str, object]:
        """Adds links to other factors, or back to the page that started the enrolment."""
        need = self.sign_in.step_up_requirement
        several = need is not None and len(need.enrollable_factors) > 1
        back = self.pending_authorization.target if need is None and self.pending_authorization.target else ""
        return {
            **super().common_variables(),
            "other_ways": f"{self.base_path}/factors/new" if several else "",
            "back": back,
        }


def add_factor_pages(config: Configurator, prove: type[ProvePage] | None, enrol: type[EnrolPage]) -> None:
    """Directive: add a factor's pages below ``/login/{request}``, at its name and at ``{name}/new``."""
    name = enrol.factor.name
    pages: dict[str, type[FactorPage]] = {f"{name}.new": enrol}
    if prove is not None:
        pages[name] = prove
    for route, page in pages.items():
        path = route.replace(".", "/")
        if page.writes_on_get:
            config.registry.write_paths.sign_in_pages.add(path)
        config.add_page(
            f"login.{route}",
            f"/login/{{request}}/{path}",
            page,
            permission=NO_PERMISSION_REQUIRED,
            factory=PendingSignInContext,
        )


def includeme(config: Configurator) -> None:
    config.add_directive("add_factor_pages", add_factor_pages)

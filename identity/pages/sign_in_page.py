"""SignInPage, the base class of pages below ``/login/{request}``: heading, language, next step."""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.response import Response

from identity.cached_property import cached_property
from identity.domain.applications import Application, ApplicationType
from identity.domain.errors import Conflict
from identity.domain.login_names import LoginName
from identity.domain.messages import Message, gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.http.endpoint_routes import request_context
from identity.http.sign_in_attempts import PendingSignInContext
from identity.pages.page import FormPage, FormRedisplay
from identity.pages.scope_descriptions import ScopeDescriptions
from identity.provider.endpoints.authorization import PATH
from identity.provider.errors import OAuthError, UnredirectableError
from identity.provider.interaction import SignIn, next_interaction
from identity.services.container import Services

_CONSOLE = "/console"


class SignInPage(FormPage):
    """A page of a sign-in. It records results in the pending authorization; the authorization endpoint decides the
    next step.
    """

    #: The next step of a pending sign-in is determined at its id below this path.
    AUTHORIZATION_PATH: ClassVar[str] = PATH

    context: PendingSignInContext
    #: The interaction that the page completes; at other steps it redirects. Empty for a page that fits several steps.
    interaction: ClassVar[str] = ""

    @property
    def pending_authorization(self) -> PendingAuthorization:
        return self.context.pending

    @property
    def sign_in(self) -> SignIn:
        return self.context.sign_in

    @property
    def human_user(self) -> Subject:
        """The user of the sign-in. Raises Conflict if nobody has authenticated or was chosen."""
        subject = self.sign_in.subject
        if subject is None:
            raise Conflict("Nobody has said who they are.")
        return subject

    @cached_property
    def base_path(self) -> str:
        return f"/login/{self.pending_authorization.id}"

    def is_current_step(self) -> bool:
        return not self.interaction or self.is_next_interaction(self.interaction)

    def is_next_interaction(self, interaction: str) -> bool:
        """True if the sign-in waits for this interaction: no page can be reached before the preceding ones are done."""
        context = request_context(self.request)
        try:
            needed = next_interaction(context.protocol.interactions.values(), self.sign_in, context)
        except OAuthError:
            return False
        return needed is not None and needed.name == interaction

    def redirect_to_next(self) -> Response:
        """303 to the URL that decides the next step."""
        return self.redirect(self.context.resume_path)

    def preferred_locales(self) -> str:
        """The language that the client requested, or that was chosen on an earlier page."""
        return self.pending_authorization.ui_locales

    def save_language(self, language: str) -> bool:
        """Use the language on the following pages, too."""
        self.request.services.sign_ins.set_language(self.pending_authorization, language)
        return True

    def get(self) -> Response:
        """The page; at another step, or if the request is no longer valid, a redirect to what comes next."""
        return super().get() if self._accepts_request() else self.redirect_to_next()

    def post(self) -> Response:
        """The form's response, under the same condition as ``get``."""
        return super().post() if self._accepts_request() else self.redirect_to_next()

    def _accepts_request(self) -> bool:
        try:
            self.context.sign_in  # noqa: B018 - loads it
        except UnredirectableError:
            raise
        except OAuthError:
            return False
        return self.is_current_step()

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        """The application, in the organization of the scope or its own; a dynamic client has none."""
        client = self.sign_in.client
        organization = None if client is None else client.responsible_organization
        return self.sign_in.required_organization or organization, None if client is None else client.application

    def organization_label(self, organization: Organization) -> str:
        services: Services = self.request.services
        return services.branding.organization_display_name(organization)

    def common_variables(self) -> Mapping[str, object]:
        """Adds the heading: the application that requests the sign-in."""
        client, required = self.sign_in.client, self.sign_in.required_organization
        name = None if client is None else self.page_branding.application or client.application.name
        return {
            "root": self.base_path,
            "application": name,
            "parent": name,
            "lead": self.lead(),
            "required_organization": None if required is None else self.organization_label(required),
            "home": "/account",
        }

    def require_factor_allowed(self, subject: Subject, factor: str, error_message: str) -> None:
        """Raise FormRedisplay if the organization's policy forbids this factor. Call it only after the user proved
        it.
        """
        if not self.request.services.policies.allows_factor(subject, factor):
            message = gettext_lazy(error_message, organization=self.organization_label(subject.organization))
            raise FormRedisplay(message, link=(self.base_path, gettext_lazy("Use another method.")), keep_changes=True)

    @property
    def scope_descriptions(self) -> list[Markup]:
        authorization = self.sign_in.request
        if authorization is None:
            return []
        namespaces = self.request.registry.application.settings.urn_namespaces
        return ScopeDescriptions.describe(
            authorization.claim_scopes, authorization.client.project.name, self.translator, namespaces
        )

    @property
    def factor_reason(self) -> Markup:
        sign_in, translator = self.sign_in, self.translator
        need, subject = sign_in.step_up_requirement, sign_in.subject
        if need is None or subject is None:
            return Markup()
        authorization = sign_in.request
        if need.is_client_request and authorization is not None:
            name = self.page_branding.application or authorization.client.application.name
            return translator.gettext("{application} requires more than your password.", application=name)
        if sign_in.own_page_requirements:
            return translator.gettext("You are about to change how you sign in, so confirm that it is you.")
        services: Services = self.request.services
        if services.policies.requires_second_factor(subject):
            return translator.gettext(
                "{organization} requires a second factor.", organization=self.organization_label(subject.organization)
            )
        return translator.gettext("You have set up a second factor for your account.")

    def require_organization(self, subject: Subject) -> None:
        """Raise FormRedisplay if the application requires an account of another organization. Call it only after the
        user authenticated.
        """
        organization, client = self.sign_in.required_organization, self.sign_in.client
        if organization is None or client is None or subject.organization.id == organization.id:
            return
        message = gettext_lazy(
            "{application} needs an account of {organization}.",
            application=self.page_branding.application or client.application.name,
            organization=self.organization_label(organization),
        )
        raise FormRedisplay(message, link=(self.base_path, gettext_lazy("Use another account.")), keep_changes=True)

    @property
    def sign_in_options(self) -> list[Markup]:
        """Other sign-in methods, added by plugins."""
        return [item for provide in self.renderer.sign_in_options for item in provide(self)]

    @property
    def can_sign_in_by_email(self) -> bool:
        """True if users can enter an email address instead of the login name."""
        organization, policies = self.sign_in.effective_organization, self.request.services.policies
        policy = policies.instance_policy() if organization is None else policies.organization_policy(organization.id)
        return bool(policy.sign_in_by_email)

    def login_name_redirect(self, login_name: LoginName) -> str:
        paths = (find(self, login_name) for find in self.renderer.login_name_redirects)
        return next((path for path in paths if path is not None), f"{self.base_path}/password")

    def lead(self) -> Markup:
        client = self.sign_in.client
        if client is not None:
            is_own_branding = self.branding_owner()[0] == client.organization
            application = self.page_branding.application or client.application.name
            if client.application.is_dynamic:
                return self.translator.gettext(
                    "to continue to {application}", application=Markup("<strong>{}</strong>").format(application)
                )
            return self.translator.gettext(
                "to continue to {application} · {organization}",
                application=Markup("<strong>{}</strong>").format(application),
                organization=(is_own_branding and self.page_branding.organization) or client.organization.name,
            )
        if (self.pending_authorization.target or "").startswith(_CONSOLE):
            return self.translator.gettext("to continue to the console")
        return self.translator.gettext("to continue to your account")

    @property
    def return_message(self) -> Message | None:
        """Where the user returns afterwards; None for our own pages."""
        authorization = self.sign_in.request
        if authorization is None:
            return None
        host = urlsplit(authorization.redirect_uri).hostname
        application = authorization.client.application
        if application.type is ApplicationType.NATIVE or not host:
            return gettext_lazy("After signing in you return to the app {application}.", application=application.name)
        return gettext_lazy("After signing in you return to {host}.", host=host)


def add_sign_in_options(config: Configurator, provide: Callable[[SignInPage], Iterable[Markup]]) -> None:
    """Directive: add sign-in methods below the button of the first two steps of a sign-in.

    ``provide`` gets the page each time, and returns markup for each method.
    """
    config.registry.pages.sign_in_options.append(provide)


def add_login_name_redirect(config: Configurator, find: Callable[[SignInPage, LoginName], str | None]) -> None:
    """Directive: choose the next path for a login name instead of the password page.

    ``find`` gets the page and the name, and returns a path on the login host or None. It must not depend on whether
    an account has the name.
    """
    config.registry.pages.login_name_redirects.append(find)


def includeme(config: Configurator) -> None:
    config.add_directive("add_sign_in_options", add_sign_in_options)
    config.add_directive("add_login_name_redirect", add_login_name_redirect)

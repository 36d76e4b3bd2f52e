"""SignInPage: what every page below ``/login/{request}`` has: heading, language, the way on."""

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.response import Response

from identity.cached_property import cached_property
from identity.domain.applications import Application, ApplicationType
from identity.domain.login_names import LoginName
from identity.domain.messages import Message, gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.http.endpoint_routes import request_context
from identity.http.sign_in_attempts import PendingSignInContext
from identity.pages.page import FormPage, FormRedisplay
from identity.pages.scope_descriptions import describe_scopes
from identity.provider.errors import OAuthError, UnredirectableError
from identity.provider.interaction import SignIn, next_interaction
from identity.services.container import Services

_CONSOLE = "/console"


class SignInPage(FormPage):
    """A page of a sign-in. What it finds out is noted in the row that waits; what comes next is decided elsewhere."""

    context: PendingSignInContext

    @property
    def pending_authorization(self) -> PendingAuthorization:
        """The row that waits."""
        return self.context.pending

    @property
    def sign_in(self) -> SignIn:
        """How far it has come."""
        return self.context.sign_in

    @cached_property
    def base_path(self) -> str:
        """The address of the first page, below which the others lie."""
        return f"/login/{self.pending_authorization.id}"

    def is_next_interaction(self, interaction: str) -> bool:
        """True if this interaction is what the sign-in waits for: nobody gets to a page past the ones before it."""
        context = request_context(self.request)
        try:
            needed = next_interaction(context.protocol.interactions.values(), self.sign_in, context)
        except OAuthError:
            return False
        return needed is not None and needed.name == interaction

    def redirect_to_next(self) -> Response:
        """303 to where it is decided what comes next."""
        return self.redirect(self.context.resume_path)

    def preferred_locales(self) -> str:
        """The language that the client asked for, or that was chosen on a page before."""
        return self.pending_authorization.ui_locales

    def save_language(self, language: str) -> bool:
        """Have the pages that follow speak it, too."""
        self.request.services.sign_ins.set_language(self.pending_authorization, language)
        return True

    def get(self) -> Response:
        """The page; if the request cannot be honoured any more, its client is told."""
        return super().get() if self._accepts_request() else self.redirect_to_next()

    def post(self) -> Response:
        """The answer to the form, under the same condition."""
        return super().post() if self._accepts_request() else self.redirect_to_next()

    def _accepts_request(self) -> bool:
        try:
            return self.sign_in is not None
        except UnredirectableError:
            raise
        except OAuthError:
            return False

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        """Those of the application, in the organization of the scope or its own."""
        client = self.sign_in.client
        organization = None if client is None else client.organization
        return self.sign_in.required_organization or organization, None if client is None else client.application

    def organization_label(self, organization: Organization) -> str:
        """What people know the organization by."""
        services: Services = self.request.services
        return services.branding.organization_display_name(organization)

    def common_variables(self) -> Mapping[str, object]:
        """The heading: who asks."""
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
        """Raise FormRedisplay if the organization's policy forbids this factor. Call it only after the person proved
        who they are by it."""
        if not self.request.services.policies.allows_factor(subject, factor):
            message = gettext_lazy(error_message, organization=self.organization_label(subject.organization))
            raise FormRedisplay(message, link=(self.base_path, gettext_lazy("Use another way.")), keep_changes=True)

    @property
    def scope_descriptions(self) -> list[Markup]:
        """What the application learns of the person by its scopes, in words."""
        authorization = self.sign_in.request
        if authorization is None:
            return []
        namespaces = self.request.registry.application.settings.urn_namespaces
        return describe_scopes(
            authorization.claim_scopes, authorization.client.project.name, self.translator, namespaces
        )

    def require_organization(self, subject: Subject) -> None:
        """Raise FormRedisplay if the application needs an account of another organization. Call it only after the
        person proved that this account is theirs."""
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
        """Other ways in, which plugins offer."""
        return [item for provide in self.renderer.sign_in_options for item in provide(self)]

    @property
    def can_sign_in_by_email(self) -> bool:
        """True if people can type an email address in place of the login name."""
        organization, policies = self.sign_in.effective_organization, self.request.services.policies
        policy = policies.instance_policy() if organization is None else policies.organization_policy(organization.id)
        return bool(policy.sign_in_by_email)

    def login_name_redirect(self, login_name: LoginName) -> str:
        """Where whoever enters this login name goes on: a plugin's way, else the password."""
        paths = (find(self, login_name) for find in self.renderer.login_name_ways)
        return next((path for path in paths if path is not None), f"{self.base_path}/password")

    def lead(self) -> Markup:
        """The line below the heading."""
        client = self.sign_in.client
        if client is not None:
            is_own_branding = self.branding_owner()[0] == client.organization
            return self.translator.gettext(
                "to continue to {application} · {organization}",
                application=_strong(self.page_branding.application or client.application.name),
                organization=(is_own_branding and self.page_branding.organization) or client.organization.name,
            )
        if (self.pending_authorization.target or "").startswith(_CONSOLE):
            return self.translator.gettext("to continue to the console")
        return self.translator.gettext("to continue to your account")

    @property
    def return_message(self) -> Message | None:
        """Where one ends up afterwards; None for our own pages."""
        authorization = self.sign_in.request
        if authorization is None:
            return None
        host = urlsplit(authorization.redirect_uri).hostname
        application = authorization.client.application
        if application.type is ApplicationType.NATIVE or not host:
            return gettext_lazy("After signing in you return to the app {application}.", application=application.name)
        return gettext_lazy("After signing in you return to {host}.", host=host)


def add_sign_in_options(config: Configurator, provide: Callable[[SignInPage], Iterable[Markup]]) -> None:
    """Directive for plugins: other ways in, drawn below the button of the first two steps of a sign-in.

    ``provide`` gets the page each time, and returns markup for each way that it offers there.
    """
    config.registry.pages.sign_in_options.append(provide)


def add_login_name_redirect(config: Configurator, find: Callable[[SignInPage, LoginName], str | None]) -> None:
    """Directive for plugins: where whoever enters a login name goes on instead of being asked for a password.

    ``find`` gets the page and the name, and returns a path on the login host or None. It must not depend on whether
    anybody has the name.
    """
    config.registry.pages.login_name_ways.append(find)


def includeme(config: Configurator) -> None:
    """Make them known."""
    config.add_directive("add_sign_in_options", add_sign_in_options)
    config.add_directive("add_login_name_redirect", add_login_name_redirect)


def _strong(text: str) -> Markup:
    return Markup("<strong>{}</strong>").format(text)

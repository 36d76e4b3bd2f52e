"""Page and FormPage, the base classes of every page of login, account and console, and the code that runs them.

A page that changes something::

    class Rename(FormPage):
        template = "console/rename.html"
        fields = ("name",)

        def initial_values(self):
            return {"name": self.context.project.name, "version": str(self.context.project.version)}

        def template_variables(self):
            return {"project": self.context.project}

        def submit(self, form):  # raises Invalid, Conflict or FormRedisplay, or returns a response
            command = ChangeProject.decode(form.command_values("name"))
            self.request.services.projects.change(self.context.project.id, command, int(form.text("version")))
            return self.redirect(f"/console/projects/{self.context.project.id}")

    config.add_page("console.project.rename", "/console/projects/{id}/edit", Rename, permission="project.write",
                    authenticate="session", factory=find_project)
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.cached_property import cached_property
from identity.domain.applications import Application
from identity.domain.attributes import AttributeDefinition
from identity.domain.errors import Conflict, DomainError, Invalid
from identity.domain.login_names import LoginName
from identity.domain.messages import LANGUAGES, gettext_lazy, ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.sessions import SignedInAccount
from identity.domain.users import Subject
from identity.http import csrf
from identity.http.cookies import request_cookie_headers
from identity.http.language_negotiation import UI_LOCALES_PARAM, RequestLanguage
from identity.http.security_headers import SIGN_IN_POLICY
from identity.http.security_policy import SIGNED_IN_PERMISSION
from identity.http.sign_in_attempts import VerificationT, attempt_factor, attempt_password
from identity.pages.attribute_fields import AttributeFields
from identity.pages.forms import SUBMISSION_ID_FIELD, FieldValue, Form, FormMessage, FormState
from identity.pages.layout import name_initials
from identity.pages.page_branding import PageBranding, load_page_branding
from identity.pages.rendering import ACCOUNT_PATH, PageRenderer, see_other
from identity.pages.translation import Translator
from identity.password_hashing import ServerBusy
from identity.provider.endpoints.authorization import PATH
from identity.provider.errors import OAuthError
from identity.provider.known_browser_cookies import new_known_browser_cookies
from identity.provider.logout import SIGNED_OUT_PATH
from identity.provider.parameters import MAX_BODY_LENGTH
from identity.provider.protocol_request import Cookie, CookieKind
from identity.services.attempts import TooManyAttempts

#: The script sends this header to validate a form; nothing is saved.
VALIDATION_HEADER = "HTTP_X_CHECK"

_EXPIRED_FORM_MESSAGE = gettext_lazy("This page was open for too long. Check what you entered and send it again.")
EDIT_CONFLICT_MESSAGE = gettext_lazy("This was changed in the meantime. Check the fields, then save again.")

_FORM_TYPE = "application/x-www-form-urlencoded"


class UnsupportedFormType(OAuthError):
    status = 415


class FormRedisplay(Exception):
    """Show the form again, with this status and a message above it.

    The request's changes are rolled back unless ``commits_transaction``. ``link`` is an href and a label, which
    follow the message.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 422,
        kind: str = "danger",
        link: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        keep_changes: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.link = link
        self.headers = dict(headers or {})
        self.commits_transaction = keep_changes


def _rate_limit_redisplay(error: TooManyAttempts | ServerBusy) -> FormRedisplay:
    """The form again, with the time to come back, and a hint at a password reset where a password was tried."""
    retry = {"Retry-After": str(error.seconds)}
    if isinstance(error, ServerBusy):
        message = ngettext_lazy(
            "We are busy just now. Wait {n} second, then send the page again.",
            "We are busy just now. Wait {n} seconds, then send the page again.",
            error.seconds,
        )
        # The refund of the attempt is kept.
        return FormRedisplay(message, status=503, headers=retry, keep_changes=True)
    if error.address:
        message = ngettext_lazy(
            "Too many sign-ins from your network just now. Wait {n} second, then try again.",
            "Too many sign-ins from your network just now. Wait {n} seconds, then try again.",
            error.seconds,
        )
        return FormRedisplay(message, status=429, headers=retry)
    if error.exhausted:
        # Waiting does not help.
        retry = {}
        message = gettext_lazy(
            "Too many wrong passwords. Until a manager unlocks this account, its password works "
            "only in a browser that has signed in to it before."
        )
        if error.factor:
            message = gettext_lazy(
                "Too many wrong attempts. Until a manager unlocks the account, this works only in a "
                "browser that has signed in to it before."
            )
    else:
        message = ngettext_lazy(
            "Too many attempts. Wait {n} second, then try again.",
            "Too many attempts. Wait {n} seconds, then try again.",
            error.seconds,
        )
    reset = (Page.PASSWORD_RESET_PATH, gettext_lazy("You can also choose a new password."))
    return FormRedisplay(message, status=429, headers=retry, link=None if error.factor else reset)


class Page:
    """A page without a form. One object serves one request."""

    LOGIN_PATH: ClassVar[str] = "/login"
    #: The parameter of LOGIN_PATH with the path to return to.
    TARGET_PARAM: ClassVar[str] = "target"
    ACCOUNT_PATH: ClassVar[str] = ACCOUNT_PATH
    PASSWORD_RESET_PATH: ClassVar[str] = "/password/reset"  # noqa: S105 - a path
    #: The page after signing out.
    SIGNED_OUT_PATH: ClassVar[str] = SIGNED_OUT_PATH
    #: The parameter that requests languages (OpenID Connect Core §3.1.2.1).
    UI_LOCALES_PARAM: ClassVar[str] = UI_LOCALES_PARAM
    #: The permission of pages for all signed-in users.
    SIGNED_IN_PERMISSION: ClassVar[str] = SIGNED_IN_PERMISSION

    template: str
    #: The status of the page, unless its form had errors.
    status: ClassVar[int] = 200

    def __init__(self, context: Any, request: Any) -> None:
        self.context = context
        self.request = request
        self.requested_language = ""

    def early_response(self) -> Response | None:
        """A response instead of the page, for any method; None to go on."""
        return None

    def template_variables(self) -> Mapping[str, object] | Response:
        """The template's variables, or a response if the page cannot be shown now."""
        return {}

    def common_variables(self) -> Mapping[str, object]:
        """Variables that all pages of a family share, such as ``frame``. They must not depend on submitted data."""
        return {}

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        """Whose name, logo, colours and texts the page shows; by default those of the service."""
        return None, None

    @cached_property
    def page_branding(self) -> PageBranding:
        return load_page_branding(self.request.services, *self.branding_owner(), self.language)

    @cached_property
    def live_accounts(self) -> tuple[SignedInAccount, ...]:
        """The accounts that are signed in at this browser."""
        sessions = self.request.services.sessions
        found = sessions.list_by_secrets(self.request.browser_state.sessions.values())
        return tuple(account for account in found if sessions.is_live(account))

    @property
    def redirects_off_site(self) -> bool:
        """True if the form's response may redirect to an application: browsers apply form-action to redirects, too."""
        return False

    def preferred_locales(self) -> str:
        """Language tags with priority over those in the URL."""
        return ""

    @property
    def language(self) -> str:
        return self.requested_language or RequestLanguage.negotiate(self.request, self.preferred_locales())

    @property
    def translator(self) -> Translator:
        return self.renderer.catalogs.translator(self.language)

    @cached_property
    def template_macros(self) -> Any:
        """The macros of templates, for markup that Python code makes."""
        return self.renderer.load_macros(self.request, self.language)

    @cached_property
    def components(self) -> Any:
        """The components of account and console, for markup that Python code makes."""
        return self.renderer.load_macros(self.request, self.language, "components.html")

    @property
    def renderer(self) -> PageRenderer:
        pages: PageRenderer = self.request.registry.pages
        return pages

    @contextmanager
    def rate_limited(self) -> Iterator[None]:
        """Turns a refusal to try further, or a busy server, into the form with the time to come back."""
        try:
            yield
        except (TooManyAttempts, ServerBusy) as refused:
            raise _rate_limit_redisplay(refused) from None

    def attempt_password(self, login_name: LoginName, password: str) -> Subject | None:
        """The user whose password this is; None, indistinguishably, if it is wrong or they may not sign in.

        The attempt counts and is committed before the password is verified. Raises FormRedisplay for too many.
        """
        with self.rate_limited():
            return attempt_password(self.request, login_name, password)

    def attempt_factor(
        self, factor: str, subject: Subject | None, verify: Callable[[], VerificationT | None]
    ) -> VerificationT | None:
        """The result of ``verify``, counted as an attempt at the factor of this name; None if it fails.

        ``verify`` runs in a later transaction than earlier reads: it must get the services again. Raises
        FormRedisplay for too many attempts.
        """
        with self.rate_limited():
            return attempt_factor(self.request, factor, subject, verify)

    @staticmethod
    def initials(name: str) -> str:
        """The initials of the first and last word of a name."""
        return name_initials(name)

    def redirect_to_sign_in(self, target: str, login_name: str = "") -> Response:
        """303 to the sign-in pages, regardless of existing sessions; they redirect to ``target`` at the end. With a
        login name the password page comes first.
        """
        sign_ins = self.request.services.sign_ins
        pending, secret = sign_ins.begin({}, target=target)
        pending = sign_ins.select_account(pending, None)
        if login_name:
            sign_ins.set_login_name(pending, login_name)
        return self.resume_sign_in(self.request, pending.id, secret)

    @staticmethod
    def resume_sign_in(request: Any, request_id: str, secret: str) -> Response:
        """303 to the URL that decides the next step, for a sign-in that starts in this browser."""
        response = see_other(request, f"{PATH}/{request_id}")
        cookie = Cookie(CookieKind.SIGN_IN, request_id, secret, request.services.sign_ins.lifetime)
        response.headerlist.extend(request_cookie_headers(request, (cookie,)))
        return response

    def known_browser_headers(self, user_id: str) -> list[tuple[str, str]]:
        """Headers that make this browser known to the user, as after a sign-in: attempts there count apart."""
        cookies = new_known_browser_cookies(user_id, self.request.browser_state, self.request.services)
        return request_cookie_headers(self.request, tuple(cookies))

    def redirect(self, path: str) -> Response:
        """303 to a path of the service; it follows every POST that changed something."""
        return see_other(self.request, path)

    def render(
        self,
        variables: Mapping[str, object],
        *,
        status: int = 200,
        template: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The page, or another template, with these variables; for a POST that shows a result once."""
        values = {"looks": self.page_branding, **self.common_variables(), **variables}
        response = self.renderer.render(
            self.request, template or self.template, values, status=status, language=self.language
        )
        if self.redirects_off_site:
            response.headers["Content-Security-Policy"] = SIGN_IN_POLICY
        response.headers.update(headers or {})
        return response

    def get(self) -> Response:
        variables = self.template_variables()
        return self.render(variables, status=self.status) if isinstance(variables, Mapping) else variables


class FormPage(Page):
    """A page with one form, which posts to the page itself."""

    EXPIRED_FORM_MESSAGE: ClassVar[str] = _EXPIRED_FORM_MESSAGE

    #: The rendered fields, in page order: they keep their values and order the error summary.
    fields: tuple[str, ...] = ()
    #: Fields whose values are never sent back, such as passwords.
    secret_fields: ClassVar[frozenset[str]] = frozenset()
    #: Fields that may occur many times, such as checkboxes.
    repeated_fields: frozenset[str] = frozenset()
    #: Fields without text input: a single text field beside them shows its own error.
    non_text_fields: ClassVar[frozenset[str]] = frozenset()
    #: Maximum length of a field, in characters.
    max_length: ClassVar[int] = MAX_BODY_LENGTH
    #: Names of form fields by the command's names.
    field_aliases: Mapping[str, str] = MappingProxyType({})
    #: True for creation forms: they carry a single-use id in the field ``once``.
    is_creation: bool = False
    #: The field with a document whose members can have errors.
    document_field: ClassVar[str] = ""

    def initial_values(self) -> Mapping[str, FieldValue]:
        """The initial values of the fields; ``version`` is that of the edited object."""
        return {}

    def submit(self, form: Form) -> Response:
        """Handle the form and return 303. Raises Invalid or Conflict; FormRedisplay for a message above the form."""
        raise NotImplementedError

    def attribute_fields(self, definitions: Sequence[AttributeDefinition]) -> AttributeFields:
        """Form fields for attributes that an organization defines. Their names are to be among ``fields``."""
        return AttributeFields(definitions)

    def validate(self, form: Form) -> None:
        """Validate fields before the script submits them. Raises Invalid."""

    def form_action(self) -> str:
        path: str = self.request.path
        return path

    def save_language(self, language: str) -> bool:
        """Store the language chosen on this page; False if only the form's URL carries it."""
        return False

    def get(self) -> Response:
        return self._render_form(self.initial_values(), status=self.status)

    def post(self) -> Response:
        """A form that is shown again keeps its values and commits nothing."""
        form = self._read_form()
        fresh = csrf.is_valid_token(self.request, form.text(csrf.CSRF_FIELD))
        if VALIDATION_HEADER in self.request.environ:
            return self._validate_and_submit(form, fresh=fresh)
        if UI_LOCALES_PARAM in form:
            return self._change_language(form, fresh=fresh)
        if not fresh:
            return self._redisplay(
                form, status=422, notice=FormMessage("danger", self.translator.gettext(self.EXPIRED_FORM_MESSAGE))
            )
        try:
            return self.submit(form)
        except Invalid as refused:
            self._drop_changes(refused)
            problems = {self.field_aliases.get(name, name): message for name, message in refused.fields.items()}
            return self._redisplay(form, status=422, problems=problems)
        except Conflict as refused:
            self._drop_changes(refused)
            return self._redisplay_conflict(form, refused)
        except FormRedisplay as refused:
            self._drop_changes(refused)
            return self._redisplay(
                form, status=refused.status, notice=self._redisplay_message(refused), headers=refused.headers
            )

    def _read_form(self) -> Form:
        sent = csrf.read_posted_request(self.request)
        if sent.content_type != _FORM_TYPE:
            raise UnsupportedFormType(f"the body must be {_FORM_TYPE}")
        return Form.parse(sent.body, self.repeated_fields, max_length=self.max_length)

    def _validate_and_submit(self, form: Form, *, fresh: bool) -> Response:
        problems: Mapping[str, str] = {}
        try:
            if fresh:
                self.validate(form)
        except Invalid as refused:
            problems = refused.fields
        self._doom_transaction()
        messages = {name: self.translator.gettext_plain(problem) for name, problem in problems.items()}
        return Response(json.dumps({"fields": messages}).encode(), content_type="application/json", charset=None)

    def _change_language(self, form: Form, *, fresh: bool) -> Response:
        language = form.text(UI_LOCALES_PARAM)
        if language in LANGUAGES:
            self.requested_language = language
            if fresh and self.save_language(language):
                # The URL need not carry the language any more.
                return self._redisplay(form, status=200, address=self._form_action_url())
        return self._redisplay(form, status=200)

    def _redisplay_conflict(self, form: Form, refused: Conflict) -> Response:
        values = self.initial_values()
        stored = values if Form.VERSION_FIELD in values else None
        message = _error_message(refused) if stored is None else EDIT_CONFLICT_MESSAGE
        notice = FormMessage("danger", self.translator.gettext(message))
        return self._redisplay(form, status=409, notice=notice, stored=stored)

    def _redisplay(
        self,
        form: Form,
        *,
        status: int,
        problems: Mapping[str, str] | None = None,
        notice: FormMessage | None = None,
        stored: Mapping[str, FieldValue] | None = None,
        headers: Mapping[str, str] | None = None,
        address: str | None = None,
    ) -> Response:
        """The form with its submitted values, except secrets."""
        typed = {
            name: form[name]
            for name in (*self.fields, SUBMISSION_ID_FIELD)
            if name in form and name not in self.secret_fields
        }
        version = (stored or form).get(Form.VERSION_FIELD)
        if version is not None:
            typed[Form.VERSION_FIELD] = version
        return self._render_form(
            typed,
            status=status,
            errors=problems or {},
            message=notice,
            stored=stored,
            headers=headers,
            address=address,
        )

    def _render_form(
        self,
        values: Mapping[str, FieldValue],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        address: str | None = None,
        **state: Any,
    ) -> Response:
        variables = self.template_variables()
        if not isinstance(variables, Mapping):
            return variables
        form = FormState(
            action=address or self._form_action_url(self.requested_language),
            token=csrf.csrf_token(self.request),
            translator=self.translator,
            fields=self.fields,
            values=values,
            is_creation=self.is_creation,
            document_field=self.document_field,
            non_text_fields=self.non_text_fields,
            **state,
        )
        return self.render({**variables, "form": form, "failed": form.has_errors}, status=status, headers=headers)

    def _form_action_url(self, language: str = "") -> str:
        query = [(name, value) for name, value in self.request.GET.items() if name != UI_LOCALES_PARAM or not language]
        if language:
            query.append((UI_LOCALES_PARAM, language))
        path = self.form_action()
        return f"{path}?{urlencode(query)}" if query else path

    def _redisplay_message(self, refused: FormRedisplay) -> FormMessage:
        message = self.translator.gettext(refused.message)
        if refused.link is not None:
            href, sentence = refused.link
            message += Markup(' <a href="{}">{}</a>').format(href, self.translator.gettext(sentence))
        return FormMessage(refused.kind, message)

    def _drop_changes(self, refused: DomainError | FormRedisplay) -> None:
        if not refused.commits_transaction:
            self._doom_transaction()

    def _doom_transaction(self) -> None:
        if "tm.active" in self.request.environ:
            self.request.tm.doom()


def _error_message(refused: Exception) -> str:
    message = refused.args[0] if refused.args else ""
    return message if isinstance(message, str) else str(refused)


#: A page class, or one with further arguments: ``partial(EditPage, resource_type=PROJECT)``.
PageFactory = Callable[..., Page]


def page_view(make_page: PageFactory) -> Callable[[Any, Request], Response]:
    def view(context: Any, request: Request) -> Response:
        page = make_page(context, request)
        early = page.early_response()
        if early is not None:
            return early
        return page.post() if request.method == "POST" and isinstance(page, FormPage) else page.get()

    return view


def add_page(
    config: Configurator,
    name: str,
    path: str,
    page: PageFactory,
    *,
    permission: str,
    authenticate: str | None = None,
    factory: Callable[[Any], Any] | None = None,
    **predicates: Any,
) -> None:
    """Directive: add the route and view of a page, on the login host."""
    options = predicates if authenticate is None else {"authenticate": authenticate, **predicates}
    page_class = page.func if isinstance(page, partial) else page
    methods = ("GET", "POST") if isinstance(page_class, type) and issubclass(page_class, FormPage) else ("GET",)
    config.add_route(name, path, host="login", factory=factory, request_method=methods, **options)
    config.add_view(page_view(page), route_name=name, permission=permission, checks_form=True)


def includeme(config: Configurator) -> None:
    config.add_directive("add_page", add_page)

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
            command = decode(ChangeProject, form.command_values("name"))
            self.request.services.projects.change(self.context.project.id, command, int(form.text("version")))
            return self.redirect(f"/console/projects/{self.context.project.id}")

    config.add_page("console.project.rename", "/console/projects/{id}/edit", Rename, permission="project.write",
                    authenticate="session", factory=find_project)
"""

import json
from collections.abc import Callable, Mapping
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
from identity.domain.errors import Conflict, DomainError, Invalid
from identity.domain.messages import LANGUAGES, gettext_lazy
from identity.domain.organizations import Organization
from identity.http import csrf
from identity.http.language_negotiation import UI_LOCALES_PARAM, negotiate_language
from identity.http.security_headers import SIGN_IN_POLICY
from identity.pages.forms import SUBMISSION_ID_FIELD, FieldValue, Form, FormMessage, FormState
from identity.pages.page_branding import PageBranding, load_page_branding
from identity.pages.rendering import PageRenderer, see_other
from identity.pages.translation import Translator
from identity.provider.errors import OAuthError
from identity.provider.parameters import MAX_BODY_LENGTH

#: The script sends this header to validate a form; nothing is saved.
VALIDATION_HEADER = "HTTP_X_CHECK"

EXPIRED_FORM_MESSAGE = gettext_lazy("This page had been open for too long. Check what you typed and send it again.")
EDIT_CONFLICT_MESSAGE = gettext_lazy("Somebody changed this meanwhile. Check the fields, then save again.")

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


class Page:
    """A page without a form. One object serves one request."""

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
        """The branding of ``branding_owner`` in the page's language."""
        return load_page_branding(self.request.services, *self.branding_owner(), self.language)

    @property
    def redirects_off_site(self) -> bool:
        """True if the form's response may redirect to an application: browsers apply form-action to redirects, too."""
        return False

    def preferred_locales(self) -> str:
        """Language tags with priority over those in the URL."""
        return ""

    @property
    def language(self) -> str:
        return self.requested_language or negotiate_language(self.request, self.preferred_locales())

    @property
    def translator(self) -> Translator:
        """Translations for messages that Python code makes."""
        return self.renderer.catalogs.translator(self.language)

    @cached_property
    def template_macros(self) -> Any:
        """The macros of templates, for markup that Python code makes."""
        return self.renderer.load_macros(self.request, self.language)

    @property
    def renderer(self) -> PageRenderer:
        pages: PageRenderer = self.request.registry.pages
        return pages

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
                form, status=422, notice=FormMessage("danger", self.translator.gettext(EXPIRED_FORM_MESSAGE))
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
        stored = self.initial_values()
        if Form.VERSION_FIELD not in stored:
            return self._redisplay(
                form, status=409, notice=FormMessage("danger", self.translator.gettext(_error_message(refused)))
            )
        return self._redisplay(
            form,
            status=409,
            notice=FormMessage("danger", self.translator.gettext(EDIT_CONFLICT_MESSAGE)),
            stored=stored,
        )

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
        """The form's URL, with the page's parameters and the language chosen on it."""
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

"""Page and FormPage: what every page of login, account and console is made of, and the runner behind them.

A page that changes something::

    class Rename(FormPage):
        template = "console/rename.html"
        fields = ("name",)

        def initial_values(self):  # what stands in the form at first
            return {"name": self.context.project.name, "version": str(self.context.project.version)}

        def template_variables(self):  # further variables of the template
            return {"project": self.context.project}

        def submit(self, form):  # raises Invalid, Conflict or FormRedisplay, or answers
            command = decode(ChangeProject, form.command_values("name"))
            self.request.services.projects.change(self.context.project.id, command, int(form.text("version")))
            return self.redirect(f"/console/projects/{self.context.project.id}")

    config.add_page("console.project.rename", "/console/projects/{id}/edit", Rename, permission="project.write",
                    authenticate="session", factory=project_of)
"""

import json
from collections.abc import Callable, Mapping
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
from identity.pages.forms import SUBMISSION_ID_FIELD, VERSION_FIELD, FieldValue, Form, FormMessage, FormState
from identity.pages.page_branding import PageBranding, load_page_branding
from identity.pages.rendering import PageRenderer, see_other
from identity.pages.translation import Translator
from identity.provider.errors import OAuthError
from identity.provider.parameters import MAX_BODY_LENGTH

#: With this header the script asks what is wrong with a form; nothing is saved.
VALIDATION_HEADER = "HTTP_X_CHECK"

EXPIRED_FORM_MESSAGE = gettext_lazy("This page had been open for too long. Check what you typed and send it again.")
EDIT_CONFLICT_MESSAGE = gettext_lazy("Somebody changed this meanwhile. Check the fields, then save again.")

_FORM_TYPE = "application/x-www-form-urlencoded"


class UnsupportedFormType(OAuthError):
    """The body is no form."""

    status = 415


class FormRedisplay(Exception):
    """Draw the form again, with this status and a message above it.

    The request's changes are dropped unless ``commits_transaction``. ``link`` is an address and a sentence to click,
    which follows the message.
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
    """A page that is only looked at. One object serves one request."""

    template: ClassVar[str]
    #: The status with which the page is shown, unless a form on it was refused.
    status: ClassVar[int] = 200

    def __init__(self, context: Any, request: Any) -> None:
        self.context = context
        self.request = request
        self.requested_language = ""

    def early_response(self) -> Response | None:
        """An answer instead of the page, whatever it is asked; None where there is nothing against it."""
        return None

    def template_variables(self) -> Mapping[str, object] | Response:
        """The template's variables; an answer instead, if this page is not to be seen now."""
        return {}

    def common_variables(self) -> Mapping[str, object]:
        """Variables that all pages of a family have, such as ``frame``. They must not need what was typed."""
        return {}

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        """Whose name, logo, colours and words the page has; by default the service's own."""
        return None, None

    @cached_property
    def page_branding(self) -> PageBranding:
        """The same, in the page's language."""
        return load_page_branding(self.request.services, *self.branding_owner(), self.language)

    @property
    def redirects_off_site(self) -> bool:
        """True if the form's answer may lead to an application: browsers hold form-action against what follows."""
        return False

    def preferred_locales(self) -> str:
        """Language tags that count before those in the address."""
        return ""

    @property
    def language(self) -> str:
        """The language in which the page is drawn."""
        return self.requested_language or negotiate_language(self.request, self.preferred_locales())

    @property
    def translator(self) -> Translator:
        """The words of that language, for sentences that are made here and not in the template."""
        return self.renderer.catalogs.translator(self.language)

    @cached_property
    def template_macros(self) -> Any:
        """The macros of templates, for markup that is made here."""
        return self.renderer.load_macros(self.request, self.language)

    @property
    def renderer(self) -> PageRenderer:
        """What draws."""
        pages: PageRenderer = self.request.registry.pages
        return pages

    def redirect(self, path: str) -> Response:
        """303 to a path of ours: what follows every POST that changed something."""
        return see_other(self.request, path)

    def render(
        self,
        variables: Mapping[str, object],
        *,
        status: int = 200,
        template: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The page, or another template, with these variables; for a POST that answers with something shown once."""
        values = {"looks": self.page_branding, **self.common_variables(), **variables}
        response = self.renderer.render(
            self.request, template or self.template, values, status=status, language=self.language
        )
        if self.redirects_off_site:
            response.headers["Content-Security-Policy"] = SIGN_IN_POLICY
        response.headers.update(headers or {})
        return response

    def get(self) -> Response:
        """The answer to GET."""
        variables = self.template_variables()
        return self.render(variables, status=self.status) if isinstance(variables, Mapping) else variables


class FormPage(Page):
    """A page with one form, which it posts to itself."""

    #: The fields that the page draws, in its order: they are kept, and lead the summary of errors.
    fields: ClassVar[tuple[str, ...]] = ()
    #: Fields that are never sent back: passwords and other secrets.
    secret_fields: ClassVar[frozenset[str]] = frozenset()
    #: Fields that may be given many times, such as checkboxes.
    repeated_fields: ClassVar[frozenset[str]] = frozenset()
    #: Fields that nothing is typed into: beside them one other field tells its own problem.
    non_text_fields: ClassVar[frozenset[str]] = frozenset()
    #: How many characters a field may have.
    max_length: ClassVar[int] = MAX_BODY_LENGTH
    #: The form's own names of what commands call otherwise.
    field_aliases: ClassVar[Mapping[str, str]] = {}
    #: True for forms that make something: they carry a single-use id in the field ``once``.
    is_creation: ClassVar[bool] = False
    #: The field of a file whose own fields problems are told of.
    document_field: ClassVar[str] = ""

    def initial_values(self) -> Mapping[str, FieldValue]:
        """What stands in the fields at first; with ``version``, what the form changes."""
        return {}

    def submit(self, form: Form) -> Response:
        """Do what was asked, and answer 303. Raises Invalid, Conflict; FormRedisplay to say it above the form."""
        raise NotImplementedError

    def validate(self, form: Form) -> None:
        """Look at fields that the script wants to know about before they are sent. Raises Invalid."""

    def form_action(self) -> str:
        """Where the form is posted: to the page itself."""
        path: str = self.request.path
        return path

    def save_language(self, language: str) -> bool:
        """Remember the language that was chosen here; False if only the address of the form is to say it."""
        return False

    def get(self) -> Response:
        """The answer to GET."""
        return self._render_form(self.initial_values(), status=self.status)

    def post(self) -> Response:
        """The answer to POST: nothing typed is lost, and nothing is committed by a form that is drawn again."""
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
                # The address need not say it any more.
                return self._redisplay(form, status=200, address=self._form_action_url())
        return self._redisplay(form, status=200)

    def _redisplay_conflict(self, form: Form, refused: Conflict) -> Response:
        stored = self.initial_values()
        if VERSION_FIELD not in stored:
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
        """The form with what was typed, but for secrets."""
        typed = {
            name: form[name]
            for name in (*self.fields, SUBMISSION_ID_FIELD)
            if name in form and name not in self.secret_fields
        }
        version = (stored or form).get(VERSION_FIELD)
        if version is not None:
            typed[VERSION_FIELD] = version
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
        """Where the form is posted, with the page's own parameters and the language that was chosen on it."""
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


def _page_view(kind: type[Page]) -> Callable[[Any, Request], Response]:
    def view(context: Any, request: Request) -> Response:
        page = kind(context, request)
        early = page.early_response()
        if early is not None:
            return early
        return page.post() if request.method == "POST" and isinstance(page, FormPage) else page.get()

    return view


def add_page(
    config: Configurator,
    name: str,
    path: str,
    page: type[Page],
    *,
    permission: str,
    authenticate: str | None = None,
    factory: Callable[[Any], Any] | None = None,
    **predicates: Any,
) -> None:
    """Directive: route and view of one page, on the login host."""
    options = predicates if authenticate is None else {"authenticate": authenticate, **predicates}
    methods = ("GET", "POST") if issubclass(page, FormPage) else ("GET",)
    config.add_route(name, path, host="login", factory=factory, request_method=methods, **options)
    config.add_view(_page_view(page), route_name=name, permission=permission, checks_form=True)


def includeme(config: Configurator) -> None:
    """Make the directive known."""
    config.add_directive("add_page", add_page)

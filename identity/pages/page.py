"""Page and FormPage: what every page of login, account and console is made of, and the runner behind them.

A page that changes something::

    class Rename(FormPage):
        template = "console/rename.html"
        fields = ("name",)

        def values(self):  # what stands in the form at first
            return {"name": self.context.project.name, "version": str(self.context.project.version)}

        def show(self):  # further variables of the template
            return {"project": self.context.project}

        def submit(self, form):  # raises Invalid, Conflict or Again, or answers
            command = decode(ChangeProject, form.texts("name"))
            self.request.services.projects.change(self.context.project.id, command, int(form.one("version")))
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

from identity.domain.applications import Application
from identity.domain.errors import Conflict, DomainError, Invalid
from identity.domain.organizations import Organization
from identity.domain.words import LANGUAGES, say
from identity.http import csrf
from identity.http.headers import SIGN_IN_POLICY
from identity.http.locale import UI_LOCALES, language_of
from identity.lazily import lazily
from identity.pages.drawing import Pages, redirect
from identity.pages.forms import ONCE, VERSION, Drawn, Form, Notice, Value
from identity.pages.looks import Looks, looks_of
from identity.pages.translation import Words
from identity.provider.errors import OAuthError
from identity.provider.parameters import MAX_LENGTH

#: With this header the script asks what is wrong with a form; nothing is saved.
CHECK_HEADER = "HTTP_X_CHECK"

STALE = say("This page had been open for too long. Check what you typed and send it again.")
CHANGED = say("Somebody changed this meanwhile. Check the fields, then save again.")

_FORM_TYPE = "application/x-www-form-urlencoded"


class WrongContentType(OAuthError):
    """The body is no form."""

    status = 415


class Again(Exception):
    """Draw the form again, with this status and a message above it.

    The request's changes are dropped unless ``keep_changes``. ``link`` is an address and a sentence to click, which
    follows the message.
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
        self.keep_changes = keep_changes


class Page:
    """A page that is only looked at. One object serves one request."""

    template: ClassVar[str]
    #: The status with which the page is shown, unless a form on it was refused.
    status: ClassVar[int] = 200

    def __init__(self, context: Any, request: Any) -> None:
        self.context = context
        self.request = request
        self.asked_language = ""

    def before(self) -> Response | None:
        """An answer instead of the page, whatever it is asked; None where there is nothing against it."""
        return None

    def show(self) -> Mapping[str, object] | Response:
        """The template's variables; an answer instead, if this page is not to be seen now."""
        return {}

    def shared(self) -> Mapping[str, object]:
        """Variables that all pages of a family have, such as ``frame``. They must not need what was typed."""
        return {}

    def whose_looks(self) -> tuple[Organization | None, Application | None]:
        """Whose name, logo, colours and words the page has; by default the service's own."""
        return None, None

    @lazily
    def looks(self) -> Looks:
        """The same, in the page's language."""
        return looks_of(self.request.services, *self.whose_looks(), self.language)

    @property
    def leads_away(self) -> bool:
        """True if the form's answer may lead to an application: browsers hold form-action against what follows."""
        return False

    def preferred_locales(self) -> str:
        """Language tags that count before those in the address."""
        return ""

    @property
    def language(self) -> str:
        """The language in which the page is drawn."""
        return self.asked_language or language_of(self.request, self.preferred_locales())

    @property
    def words(self) -> Words:
        """The words of that language, for sentences that are made here and not in the template."""
        return self.pages.catalogs.words(self.language)

    @lazily
    def ui(self) -> Any:
        """The macros of templates, for markup that is made here."""
        return self.pages.macros(self.request, self.language)

    @property
    def pages(self) -> Pages:
        """What draws."""
        pages: Pages = self.request.registry.pages
        return pages

    def redirect(self, path: str) -> Response:
        """303 to a path of ours: what follows every POST that changed something."""
        return redirect(self.request, path)

    def draw(
        self,
        variables: Mapping[str, object],
        *,
        status: int = 200,
        template: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The page, or another template, with these variables; for a POST that answers with something shown once."""
        values = {"looks": self.looks, **self.shared(), **variables}
        response = self.pages.draw(
            self.request, template or self.template, values, status=status, language=self.language
        )
        if self.leads_away:
            response.headers["Content-Security-Policy"] = SIGN_IN_POLICY
        response.headers.update(headers or {})
        return response

    def get(self) -> Response:
        """The answer to GET."""
        shown = self.show()
        return self.draw(shown, status=self.status) if isinstance(shown, Mapping) else shown


class FormPage(Page):
    """A page with one form, which it posts to itself."""

    #: The fields that the page draws, in its order: they are kept, and lead the summary of errors.
    fields: ClassVar[tuple[str, ...]] = ()
    #: Fields that are never sent back: passwords and other secrets.
    secret_fields: ClassVar[frozenset[str]] = frozenset()
    #: Fields that may be given many times, such as checkboxes.
    repeated_fields: ClassVar[frozenset[str]] = frozenset()
    #: Fields that nothing is typed into: beside them one other field tells its own problem.
    untyped_fields: ClassVar[frozenset[str]] = frozenset()
    #: How many characters a field may have.
    longest: ClassVar[int] = MAX_LENGTH
    #: The form's own names of what commands call otherwise.
    renamed: ClassVar[Mapping[str, str]] = {}
    #: True for forms that make something: they carry a single-use id in the field ``once``.
    creates: ClassVar[bool] = False
    #: The field of a file whose own fields problems are told of.
    holds: ClassVar[str] = ""

    def values(self) -> Mapping[str, Value]:
        """What stands in the fields at first; with ``version``, what the form changes."""
        return {}

    def submit(self, form: Form) -> Response:
        """Do what was asked, and answer 303. Raises Invalid or Conflict; Again to say something above the form."""
        raise NotImplementedError

    def check(self, form: Form) -> None:
        """Look at fields that the script wants to know about before they are sent. Raises Invalid."""

    def form_path(self) -> str:
        """Where the form is posted: to the page itself."""
        path: str = self.request.path
        return path

    def keep_language(self, language: str) -> bool:
        """Remember the language that was chosen here; False if only the address of the form is to say it."""
        return False

    def get(self) -> Response:
        """The answer to GET."""
        return self._draw_form(self.values(), status=self.status)

    def post(self) -> Response:
        """The answer to POST: nothing typed is lost, and nothing is committed by a form that is drawn again."""
        form = self._read()
        fresh = csrf.is_fresh(self.request, form.one(csrf.FIELD))
        if CHECK_HEADER in self.request.environ:
            return self._checked(form, fresh=fresh)
        if UI_LOCALES in form:
            return self._in_other_language(form, fresh=fresh)
        if not fresh:
            return self._again(form, status=422, notice=Notice("danger", self.words.t(STALE)))
        try:
            return self.submit(form)
        except Invalid as refused:
            self._drop_changes(refused)
            problems = {self.renamed.get(name, name): said for name, said in refused.fields.items()}
            return self._again(form, status=422, problems=problems)
        except Conflict as refused:
            self._drop_changes(refused)
            return self._conflict(form, refused)
        except Again as refused:
            self._drop_changes(refused)
            return self._again(form, status=refused.status, notice=self._notice(refused), headers=refused.headers)

    def _read(self) -> Form:
        sent = csrf.what_was_sent(self.request)
        if sent.content_type != _FORM_TYPE:
            raise WrongContentType(f"the body must be {_FORM_TYPE}")
        return Form.parse(sent.body, self.repeated_fields, longest=self.longest)

    def _checked(self, form: Form, *, fresh: bool) -> Response:
        problems: Mapping[str, str] = {}
        try:
            if fresh:
                self.check(form)
        except Invalid as refused:
            problems = refused.fields
        self._doom()
        said = {name: self.words.plain(problem) for name, problem in problems.items()}
        return Response(json.dumps({"fields": said}).encode(), content_type="application/json", charset=None)

    def _in_other_language(self, form: Form, *, fresh: bool) -> Response:
        language = form.one(UI_LOCALES)
        if language in LANGUAGES:
            self.asked_language = language
            if fresh and self.keep_language(language):
                # The address need not say it any more.
                return self._again(form, status=200, address=self._address())
        return self._again(form, status=200)

    def _conflict(self, form: Form, refused: Conflict) -> Response:
        stored = self.values()
        if VERSION not in stored:
            return self._again(form, status=409, notice=Notice("danger", self.words.t(_sentence(refused))))
        return self._again(form, status=409, notice=Notice("danger", self.words.t(CHANGED)), stored=stored)

    def _again(
        self,
        form: Form,
        *,
        status: int,
        problems: Mapping[str, str] | None = None,
        notice: Notice | None = None,
        stored: Mapping[str, Value] | None = None,
        headers: Mapping[str, str] | None = None,
        address: str | None = None,
    ) -> Response:
        """The form with what was typed, but for secrets."""
        typed = {name: form[name] for name in (*self.fields, ONCE) if name in form and name not in self.secret_fields}
        version = (stored or form).get(VERSION)
        if version is not None:
            typed[VERSION] = version
        return self._draw_form(
            typed,
            status=status,
            problems=problems or {},
            notice=notice,
            stored=stored,
            headers=headers,
            address=address,
        )

    def _draw_form(
        self,
        values: Mapping[str, Value],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        address: str | None = None,
        **state: Any,
    ) -> Response:
        shown = self.show()
        if not isinstance(shown, Mapping):
            return shown
        form = Drawn(
            action=address or self._address(self.asked_language),
            token=csrf.token(self.request),
            words=self.words,
            fields=self.fields,
            values=values,
            creates=self.creates,
            holds=self.holds,
            untyped_fields=self.untyped_fields,
            **state,
        )
        return self.draw({**shown, "form": form, "failed": form.failed}, status=status, headers=headers)

    def _address(self, language: str = "") -> str:
        """Where the form is posted, with the page's own parameters and the language that was chosen on it."""
        query = [(name, value) for name, value in self.request.GET.items() if name != UI_LOCALES or not language]
        if language:
            query.append((UI_LOCALES, language))
        path = self.form_path()
        return f"{path}?{urlencode(query)}" if query else path

    def _notice(self, refused: Again) -> Notice:
        said = self.words.t(refused.message)
        if refused.link is not None:
            href, sentence = refused.link
            said += Markup(' <a href="{}">{}</a>').format(href, self.words.t(sentence))
        return Notice(refused.kind, said)

    def _drop_changes(self, refused: DomainError | Again) -> None:
        if not refused.keep_changes:
            self._doom()

    def _doom(self) -> None:
        if "tm.active" in self.request.environ:
            self.request.tm.doom()


def _sentence(refused: Exception) -> str:
    said = refused.args[0] if refused.args else ""
    return said if isinstance(said, str) else str(refused)


def _view_of(kind: type[Page]) -> Callable[[Any, Request], Response]:
    def view(context: Any, request: Request) -> Response:
        page = kind(context, request)
        early = page.before()
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
    config.add_view(_view_of(page), route_name=name, permission=permission, checks_form=True)


def includeme(config: Configurator) -> None:
    """Make the directive known."""
    config.add_directive("add_page", add_page)

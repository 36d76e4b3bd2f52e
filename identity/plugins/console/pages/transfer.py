"""Moving organizations: one goes out as a document, and comes in as a new one."""

from collections.abc import Mapping, Sequence

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.http import targets
from identity.http.documents import exported
from identity.http.endpoints import MAX_BODY
from identity.http.errors import Malformed
from identity.http.json_object import read_object
from identity.pages.forms import Form
from identity.plugins.console.console_page import ConsoleForm
from identity.plugins.console.of_organization import ORGANIZATIONS, OfOrganization
from identity.plugins.console.pages.organizations import SECTION
from identity.plugins.console.places import Place
from identity.services.commands.descriptions import OrganizationDocument
from identity.services.transfer import KEEPS_IDS, MAY_EXPORT

_DOCUMENT, _KEEP_IDS = "document", "keep_ids"

#: About as many kilobytes of JSON fit into a form, which sends each quotation mark and brace as three characters.
_LARGEST = MAX_BODY * 5 // 8 // 1024


class Export(OfOrganization, ConsoleForm):
    """Says what is in the document, and answers it as a file."""

    template = "console/organization_export.html"

    def title(self) -> str:
        """The heading."""
        return say("Export {name}", name=self.one.name)

    def show(self) -> Mapping[str, object]:
        """The way back."""
        return {"back": self.href}

    def submit(self, form: Form) -> Response:
        """The file. Raises Denied for whoever may not read all that is in it."""
        return exported(self.request, self.one.id, by=self.principal)


class Import(ConsoleForm):
    """Makes a new organization of a document, and leads to its page."""

    template = "console/organization_import.html"
    section = SECTION
    of_instance = True
    creates = True
    fields = (_DOCUMENT, _KEEP_IDS)
    # The limit of whole bodies is the only one.
    longest = MAX_BODY

    def title(self) -> str:
        """The heading."""
        return say("Import an organization")

    def trail(self) -> Sequence[tuple[str, str]]:
        """Below the list."""
        return [(say("Organizations"), ORGANIZATIONS)]

    def show(self) -> Mapping[str, object]:
        """Whether ids can be kept, and how much a form takes."""
        return {"back": ORGANIZATIONS, "may_keep_ids": self.may(KEEPS_IDS), "largest": _LARGEST}

    def submit(self, form: Form) -> Response:
        """Make it, or say what is wrong at each place of the document."""
        try:
            document = self._document(form)
            self.use_once(form)
            made = self.services.transfer.import_(document, by=self.principal, keep_ids=bool(form.one(_KEEP_IDS)))
        except Invalid as refused:
            raise Invalid(self._with_places(refused.fields)) from None
        return self.redirect(self.done(f"{ORGANIZATIONS}/{made.id}"))

    def _document(self, form: Form) -> OrganizationDocument:
        text = form.one(_DOCUMENT)
        if not text:
            raise Invalid({_DOCUMENT: say("Paste the content of the file.")})
        try:
            members = read_object(text)
        except Malformed as problem:
            raise Invalid({_DOCUMENT: problem.args[0]}) from None
        document: OrganizationDocument = self.services.transfer.read(members)
        return document

    def _with_places(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """Each sentence with its place in the document; what is wrong with the text itself has none."""
        if _DOCUMENT in problems:
            return problems
        t = self.words.t
        said = {place: say("{place}: {problem}", place=place, problem=t(one)) for place, one in problems.items()}
        return {_DOCUMENT: say("Some places in the document need a change."), **said}


_PATH = f"/{SECTION}"

PLACES = (
    Place(f"{_PATH}/import", Import, "organization.create", targets.instance),
    Place(f"{_PATH}/{{organization}}/export", Export, MAY_EXPORT, targets.organization),
)

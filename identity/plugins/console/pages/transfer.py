"""Moving organizations: one goes out as a document, and comes in as a new one."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.http import targets
from identity.http.documents import exported
from identity.http.errors import Malformed
from identity.http.json_stream import read_stream
from identity.pages.forms import Form
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.places import Place
from identity.plugins.console.things import BELOW_ORGANIZATIONS, ORGANIZATIONS, OfOrganization
from identity.plugins.console.upload_form import UploadForm
from identity.services.commands.descriptions import OrganizationDocument
from identity.services.commands.documents import MORE
from identity.services.transfer import KEEPS_IDS, MAY_EXPORT, Incoming, Transfer

_DOCUMENT, _KEEP_IDS = "document", "keep_ids"


class Export(OfOrganization, ConsoleForm):
    """Says what is in the document, and answers it as a file."""

    template = "console/organization_export.html"

    title = say("Export {name}")

    def submit(self, form: Form) -> Response:
        """The file. Raises Denied for whoever may not read all that is in it."""
        return exported(self.request, self.thing.id, by=self.principal)


class Import(UploadForm):
    """Makes a new organization of a document, and leads to its page."""

    template = "console/organization_import.html"
    section = "organizations"
    of_instance = True
    title = say("Import an organization")
    trail = BELOW_ORGANIZATIONS
    creates = True
    fields = (_DOCUMENT, _KEEP_IDS)
    holds = _DOCUMENT
    file_field = _DOCUMENT

    def show(self) -> Mapping[str, object]:
        return {**super().show(), "may_keep_ids": self.may(KEEPS_IDS), "largest": self._largest}

    def submit(self, form: Form) -> Response:
        try:
            with Incoming() as incoming:
                document = self._document(incoming)
                self.use_once(form)
                made = Transfer(self.services).import_(document, by=self.principal, keep_ids=bool(form.one(_KEEP_IDS)))
        except Invalid as refused:
            raise Invalid(self._with_places(refused.fields)) from None
        return self.redirect(self.done(f"{ORGANIZATIONS}/{made.id}"))

    @property
    def _largest(self) -> int:
        limit: int = self.request.registry.identity.settings.import_limit
        return limit

    @property
    def too_large(self) -> str:
        return say("The file is larger than {n} MiB.", n=self._largest)

    def _document(self, incoming: Incoming) -> OrganizationDocument:
        file = self.files.get(_DOCUMENT)
        if file is None:
            raise Invalid({_DOCUMENT: say("Choose the exported file.")})
        try:
            values = read_stream(file, incoming.takers)
        except Malformed as problem:
            raise Invalid({_DOCUMENT: problem.args[0]}) from None
        return incoming.document(values)

    def _with_places(self, problems: Mapping[str, str]) -> Mapping[str, str]:
        """Each sentence with its place in the document; what is wrong with the text itself has none."""
        if _DOCUMENT in problems:
            return problems
        t = self.words.t
        more = {name: one for name, one in problems.items() if name == MORE}
        places = {place: one for place, one in problems.items() if place not in more}
        said = {place: say("{place}: {problem}", place=place, problem=t(one)) for place, one in places.items()} | more
        return {_DOCUMENT: say("Some places in the document need a change."), **said}


_PATH = "/organizations"

PLACES = (
    Place(f"{_PATH}/import", Import, "organization.create", targets.instance),
    Place(f"{_PATH}/{{organization}}/export", Export, MAY_EXPORT, targets.organization),
)

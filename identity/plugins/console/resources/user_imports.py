"""Imports of people from a CSV file: upload, check, run, report."""

from collections.abc import Mapping, Sequence
from itertools import islice

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.user_imports import MAX_IMPORTED_PEOPLE, LineOutcome, UserImportState
from identity.pages.forms import Form
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import Breadcrumbs, ConsolePage, path_value
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.resource_types import ORGANIZATION
from identity.plugins.console.upload_page import UploadFormPage
from identity.services.user_imports import LineResult, UserImport

IMPORT_PATH = "/users/import"
#: The problem lines, and the first lines of those without a problem, that a page shows.
_SHOWN_PROBLEMS, _SHOWN_LINES = 50, 20
_MAX_SEARCHED = 5000

_FILE_FIELD = "file"
_STATE_LABELS = {
    UserImportState.CHECKING: _("Being checked"),
    UserImportState.CHECKED: _("Checked"),
    UserImportState.RUNNING: _("Being imported"),
    UserImportState.FINISHED: _("Finished"),
    UserImportState.STOPPED: _("Stopped"),
}
_CHECKED_LABELS = {
    LineOutcome.CREATED: _("Will be created"),
    LineOutcome.EXISTS: _("Exists already"),
    LineOutcome.REFUSED: _("Will be skipped"),
}
_DONE_LABELS = {
    LineOutcome.CREATED: _("Created"),
    LineOutcome.EXISTS: _("Exists already"),
    LineOutcome.REFUSED: _("Skipped"),
}


def _users_path(page: ConsolePage) -> str:
    return f"{ORGANIZATION.path_of(page.entity_of(Organization))}/users"


def _import_path(page: ConsolePage, user_import: UserImport) -> str:
    return f"{ORGANIZATION.path_of(page.entity_of(Organization))}{IMPORT_PATH}/{user_import.id}"


def _state_badge(page: ConsolePage, user_import: UserImport) -> Badge:
    kinds = {UserImportState.FINISHED: "success", UserImportState.STOPPED: "danger"}
    return Badge(page.translator.gettext(_STATE_LABELS[user_import.state]), kinds.get(user_import.state, ""))


class UserImportUploadPage(UploadFormPage):
    """Takes a file. Nothing is created before the result of its check is confirmed."""

    template = "console/user_import_upload.html"
    section = "users"
    title = _("Import users")
    is_creation = True
    fields = (_FILE_FIELD,)
    file_field = _FILE_FIELD

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return ((_("Users"), _users_path(self)),)

    @property
    def too_large_message(self) -> str:
        return _("The file is larger than {n} MiB.", n=self._limit)

    @property
    def _limit(self) -> int:
        return int(self.request.registry.application.settings.import_limit)

    def template_variables(self) -> Mapping[str, object]:
        imports = self.services.user_imports.list_own(self.entity_of(Organization).id, principal=self.principal)
        return {
            **super().template_variables(),
            "max_mib": self._limit,
            "max_lines": MAX_IMPORTED_PEOPLE,
            "mails": self.services.mails.is_enabled,
            "imports": [
                (
                    self.template_macros.named(
                        self.translate(ngettext_lazy("{n} person", "{n} people", item.line_count)),
                        _import_path(self, item),
                    ),
                    self.render_badge(_state_badge(self, item)),
                    self.relative_time(item.created_at),
                )
                for item in imports
            ],
        }

    def submit(self, form: Form) -> Response:
        file = self.files.get(_FILE_FIELD)
        if file is None:
            raise Invalid({_FILE_FIELD: _("Choose a CSV file.")})
        self.redeem_submission_id(form)
        started = self.services.user_imports.start(self.entity_of(Organization).id, file, principal=self.principal)
        return self.redirect(_import_path(self, started))


class UserImportPage(ConsoleFormPage):
    """What the check found, with the button that imports; then progress and result."""

    template = "console/user_import.html"
    section = "users"

    @cached_property
    def user_import(self) -> UserImport:
        return self.services.user_imports.get(path_value(self, "user_import"), self.entity_of(Organization).id)

    @property
    def title(self) -> str:
        return ngettext_lazy("Import of {n} person", "Import of {n} people", self.user_import.line_count)

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return (
            (_("Users"), _users_path(self)),
            (_("Import users"), f"{ORGANIZATION.path_of(self.entity_of(Organization))}{IMPORT_PATH}"),
        )

    def template_variables(self) -> Mapping[str, object]:
        item, t = self.user_import, self.translator.gettext
        is_over = item.state in (UserImportState.FINISHED, UserImportState.STOPPED)
        labels = _DONE_LABELS if is_over or item.state is UserImportState.RUNNING else _CHECKED_LABELS
        results = list(islice(self.services.user_imports.read_results(item), _MAX_SEARCHED))
        problems = [result for result in results if result.outcome is LineOutcome.REFUSED]
        unrefused = [result for result in results if result.outcome is not LineOutcome.REFUSED]
        counts = (
            (LineOutcome.CREATED, item.created),
            (LineOutcome.EXISTS, item.existing),
            (LineOutcome.REFUSED, item.refused),
        )
        return {
            **super().template_variables(),
            "item": item,
            "is_own": item.started_by == self.principal.id,
            "state": self.render_badge(_state_badge(self, item)),
            "stop_reason": self.translate(item.problem) if item.problem else "",
            "counts": [(t(labels[outcome]), count) for outcome, count in counts],
            "problem_rows": self._rows(problems[:_SHOWN_PROBLEMS], labels),
            "other_rows": self._rows(unrefused[:_SHOWN_LINES], labels),
            "refresh": _import_path(self, item),
            "report": f"{_import_path(self, item)}/report",
            "run_label": self.translate(ngettext_lazy("Import {n} person", "Import {n} people", item.created)),
            "users": _users_path(self),
        }

    def _rows(self, results: Sequence[LineResult], labels: Mapping[LineOutcome, str]) -> list[tuple[object, ...]]:
        t = self.translator.gettext
        return [
            (
                str(result.number),
                result.user_name,
                t(labels[result.outcome]),
                " ".join(
                    f"{column}: {self.translator.gettext_plain(text)}"
                    if column
                    else self.translator.gettext_plain(text)
                    for column, text in result.problems.items()
                ),
            )
            for result in results
        ]

    def submit(self, form: Form) -> Response:
        organization_id = self.entity_of(Organization).id
        if form.text("action") == "discard":
            self.services.user_imports.discard(self.user_import.id, organization_id, principal=self.principal)
            return self.redirect(self.breadcrumbs[-1][1])
        self.services.user_imports.run(self.user_import.id, organization_id, principal=self.principal)
        return self.redirect(_import_path(self, self.user_import))


class UserImportReportPage(ConsolePage):
    """The report as a file."""

    section = "users"
    title = _("Report")

    def get(self) -> Response:
        service = self.services.user_imports
        found = service.get(path_value(self, "user_import"), self.entity_of(Organization).id)
        response = Response("".join(service.write_report(found)), content_type="text/csv", charset="utf-8")
        response.content_disposition = 'attachment; filename="import-report.csv"'
        response.cache_control = "no-store"
        return response


ROUTES = (
    ORGANIZATION.route(IMPORT_PATH, UserImportUploadPage, "user.write"),
    ORGANIZATION.route(f"{IMPORT_PATH}/{{user_import}}", UserImportPage, "user.write"),
    ORGANIZATION.route(f"{IMPORT_PATH}/{{user_import}}/report", UserImportReportPage, "user.write"),
)

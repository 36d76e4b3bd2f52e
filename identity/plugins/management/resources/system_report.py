"""The report of the system: what ``identity check`` says, and the facts of the database."""

from identity.api.plugins import __version__
from identity.domain.instance import Instance
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.system_monitor import SystemReport


class CheckResultRepresentation(Representation):
    """A check. `problem` is what to fix, null if it passes."""

    name: str
    problem: str | None


class DatabaseFactsRepresentation(Representation):
    """`size` in bytes, null if unknown."""

    product: str
    version: str
    size: int | None


class SystemReportRepresentation(Representation):
    """The latest report of the process that answers. Without one, `checked_at` and `database` are null and there are no
    `checks`: ask again in a moment. A report that is older than five minutes is renewed in the background."""

    has_volatile_members = True

    version: str
    checked_at: DateTime | None
    checks: list[CheckResultRepresentation]
    database: DatabaseFactsRepresentation | None


def _represent(call: OperationCall[Instance]) -> SystemReportRepresentation:
    report: SystemReport | None = call.request.registry.application.system_monitor.latest()
    database = None if report is None else report.database
    problems = {} if report is None else report.problems
    return SystemReportRepresentation(
        version=__version__,
        checked_at=None if report is None else report.checked_at,
        checks=[CheckResultRepresentation(name=name, problem=problem) for name, problem in problems.items()],
        database=None if database is None else DatabaseFactsRepresentation.from_value(database),
    )


OPERATIONS = (
    ApiResource[None]("system_report", SystemReportRepresentation, permission_subject="instance").get(
        INSTANCE / "instance/system-report",
        "Shows the results of the checks, and facts of the database.",
        _represent,
    ),
)

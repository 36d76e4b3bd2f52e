"""The final table, with details of failures."""

from collections.abc import Sequence

from faults.fault_run import FaultReport
from faults.http_client import ResponseClass

_COLUMNS = (
    "fault",
    "storage",
    "requests",
    "503",
    "refused",
    "other",
    "slowest s",
    "recovery s",
    "checked",
    "lost",
    "doubled",
)


def format_reports(reports: Sequence[FaultReport]) -> str:
    """All reports as a table, followed by details of those that failed."""
    rows = [_COLUMNS, *(_format_row(report) for report in reports)]
    widths = [max(len(row[number]) for row in rows) for number in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for report in reports:
        if report.skipped:
            lines.append(f"not tried: {report.fault.title}: {report.skipped}")
        if not report.is_passed:
            lines += ["", f"NOT WELL: {report.fault.title} ({report.storage})", *list_failures(report)]
    return "\n".join(lines)


def list_failures(report: FaultReport) -> Sequence[str]:
    """Failures as lines; empty without any."""
    lines = []
    if report.recovery > report.allowed:
        lines.append(f"  recovery took {report.recovery:.1f} s, {report.allowed:.1f} s are allowed")
    if report.slowest > report.fault.max_latency:
        lines.append(f"  somebody waited for {report.slowest:.1f} s, {report.fault.max_latency:.1f} s are allowed")
    return lines + [f"  {item}" for item in (*report.lost[:10], *report.duplicated[:10], *report.violations[:10])]


def _format_row(report: FaultReport) -> tuple[str, ...]:
    def count(*kinds: ResponseClass) -> str:
        return str(sum(report.counts.get(kind, 0) for kind in kinds))

    if report.skipped:
        return (report.fault.name, report.storage, "not tried", *[""] * (len(_COLUMNS) - 3))
    return (
        report.fault.name,
        report.storage,
        str(report.requests),
        count(ResponseClass.BUSY),
        count(ResponseClass.REFUSED),
        count(ResponseClass.CUT, ResponseClass.SILENT, ResponseClass.WRONG),
        f"{report.slowest:.1f}",
        f"{report.recovery:.1f}",
        str(report.checked),
        str(len(report.lost)),
        str(len(report.duplicated)),
    )

"""identity audit: print audit events as JSON lines."""

import json
import select
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from itertools import islice
from typing import TYPE_CHECKING

from identity.cli.command_context import CommandError, add_ini_arguments, open_application
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication
    from identity.domain.audit import AuditEvent, AuditFilter

_BATCH_SIZE = 500
_INTERVAL_SECONDS = 1


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--follow", action="store_true", help="print new events until Ctrl-C or SIGTERM")
    parser.add_argument("--organization", metavar="ID|DOMAIN", help="only events of this organization")
    parser.add_argument("--event", metavar="NAME", default="", help='such as "project.created", or "project" for all')
    parser.add_argument("--actor", metavar="LOGIN_NAME|ID", default="", help="events caused by this user or client")
    parser.add_argument("--object", metavar="LOGIN_NAME|ID", default="", help="events about this user or object")
    parser.add_argument("--since", metavar="MOMENT", help="events since this time, such as 2027-01-31T23:59:59Z")
    parser.add_argument("--after", metavar="SEQUENCE", type=_parse_number, help="events after this sequence number")
    parser.add_argument("--limit", metavar="N", type=_parse_number, help="the last N events; 0 prints only new ones")


def run(arguments: Namespace) -> int:
    """Print the events, oldest first, one JSON object per line."""
    with open_application(arguments) as identity:
        audit_filter = _build_filter(identity, arguments)
        if arguments.follow:
            _follow_until_stopped(identity, audit_filter, _start_sequence(identity, audit_filter, arguments))
        else:
            _print_until_now(identity, audit_filter, arguments)
    return 0


def _build_filter(identity: "IdentityApplication", arguments: Namespace) -> "AuditFilter":
    from identity.domain.audit import AuditEvent, AuditFilter
    from identity.services.commands import Command as Given
    from identity.services.commands.field_types import Timestamp

    class Since(Given):
        since: Timestamp | None

    event = arguments.event
    if event and event not in AuditEvent.NAMES | {name.partition(".")[0] for name in AuditEvent.NAMES}:
        raise CommandError(
            f"There is no audit event {event}. Give a name such as project.created, or project for all of it."
        )
    organization_id = None
    if arguments.organization is not None:
        organization_id = _resolve_organization_id(identity, arguments.organization)
    since = Since.decode({"since": arguments.since}).since
    actor_id, object_id = (_involved_id(identity, name) for name in (arguments.actor, arguments.object))
    return AuditFilter(
        organization_id=organization_id, event=event, actor_id=actor_id, object_id=object_id, since=since
    )


def _involved_id(identity: "IdentityApplication", name: str) -> str:
    """The id of the user with this login name; any other text is an id. Raises CommandError."""
    if "@" not in name:
        return name
    with identity.read_session() as services:
        subject = services.storage.users.find_by_login_name(name)
    if subject is None:
        raise CommandError(f"There is no user {name}. Give a login name, or an id.")
    return subject.user.id


def _resolve_organization_id(identity: "IdentityApplication", name: str) -> str:
    """The organization's id. Unknown ids are accepted, because events outlive their organization. Raises
    CommandError.
    """
    from identity.crypto.secrets import is_id

    with identity.read_session() as services:
        organization = services.storage.organizations.find_by_domain(name)
    if organization is None and not is_id(name):
        raise CommandError(f"There is no organization {name}. Give its id or its primary domain.")
    return name if organization is None else organization.id


def _start_sequence(identity: "IdentityApplication", audit_filter: "AuditFilter", arguments: Namespace) -> int:
    from identity.storage.paging import iterate_rows

    after: int = arguments.after or 0
    if arguments.limit is None:
        return after
    with identity.read_session() as services:
        newest = iterate_rows(lambda request: services.storage.audit.page(request, audit_filter))
        last = next(islice(newest, max(arguments.limit - 1, 0), None), None)
    if last is None or last.sequence is None:
        return after
    return max(after, last.sequence - 1 if arguments.limit else last.sequence)


def _print_until_now(identity: "IdentityApplication", audit_filter: "AuditFilter", arguments: Namespace) -> None:
    from identity.storage.paging import PageRequest

    with identity.read_session() as services:
        newest = services.storage.audit.page(PageRequest(limit=1), audit_filter).items
    last = (newest[0].sequence or 0) if newest else 0
    sequence = _start_sequence(identity, audit_filter, arguments)
    while sequence < last:
        before = sequence
        sequence = _print_after(identity, audit_filter, sequence)
        if sequence == before:
            # An event with a lower number may not be committed yet.
            time.sleep(_INTERVAL_SECONDS)


def _follow_until_stopped(identity: "IdentityApplication", audit_filter: "AuditFilter", sequence: int) -> None:
    """Print new events until Ctrl-C or SIGTERM."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _follow(identity, audit_filter, sequence)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _follow(identity: "IdentityApplication", audit_filter: "AuditFilter", sequence: int) -> None:
    from identity.storage.errors import StorageUnavailable

    away = False
    while True:
        try:
            before, sequence = sequence, _print_after(identity, audit_filter, sequence)
        except StorageUnavailable as problem:
            if not away:
                print(f"identity: {problem} Trying again until it is back.", file=sys.stderr, flush=True)
            away, before = True, sequence
        else:
            away = False
        if sequence == before:
            _wait_or_detect_closed_pipe()


def _print_after(identity: "IdentityApplication", audit_filter: "AuditFilter", sequence: int) -> int:
    """Print a batch of events after this sequence number; returns the last number printed."""
    with identity.read_session() as services:
        events = services.storage.audit.list_after(sequence, _BATCH_SIZE, audit_filter)
    for event in events:
        print(_event_line(event))
    sys.stdout.flush()
    return sequence if not events else events[-1].sequence or sequence


def _event_line(event: "AuditEvent") -> str:
    """The event as the management API represents it, and its sequence number."""
    from identity.services.audit import event_to_dict

    return json.dumps({"sequence": event.sequence, **event_to_dict(event)}, ensure_ascii=False)


def _wait_or_detect_closed_pipe() -> None:
    """Wait, unless the reader of our output is closed. Raises BrokenPipeError then."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:
        time.sleep(_INTERVAL_SECONDS)
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    for _, event in poll.poll(_INTERVAL_SECONDS * 1000):
        if event & select.POLLERR:
            raise BrokenPipeError


def _parse_number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


COMMAND = CliCommand(
    "audit", "print audit events as JSON lines; --follow prints new ones as they arrive", add_arguments, run
)

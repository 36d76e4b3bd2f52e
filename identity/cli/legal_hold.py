"""identity legal-hold: protect users or organizations against deletion during legal proceedings."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from identity.cli.command_context import CommandError, add_ini_arguments, find_organization, open_application
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.domain.legal_holds import LegalHold
    from identity.services.container import Services


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--user", metavar="ID|LOGIN_NAME", help="a user and their events")
    target.add_argument("--organization", metavar="ID|DOMAIN", help="an organization, its users and its events")
    target.add_argument("--everything", action="store_true", help="the whole instance")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--reason", metavar="TEXT", help="place a hold for this reason, which the audit trail records")
    action.add_argument("--release", action="store_true", help="release the hold; the retention settings apply again")


def run(arguments: Namespace) -> int:
    """Place or release a hold, then list all holds."""
    chosen = arguments.user or arguments.organization or arguments.everything
    if bool(chosen) != bool(arguments.reason or arguments.release):
        raise CommandError(
            "Say both which (--user, --organization or --everything) and what (--reason TEXT or --release), or neither."
        )
    with open_application(arguments) as identity:
        if chosen:
            with identity.transaction() as services:
                _create_or_release(services, arguments)
        with identity.read_session() as services:
            holds = services.legal_holds.list_holds().values()
            lines = [
                f"{hold.since:%Y-%m-%d %H:%M:%S} UTC  {_hold_label(services, hold)}: {hold.reason}" for hold in holds
            ]
    print("\n".join(lines) or "Nothing is under a legal hold.")
    return 0


def _create_or_release(services: "Services", arguments: Namespace) -> None:
    from identity.domain.legal_holds import ALL_TARGETS, LegalHoldKind
    from identity.services.commands.legal_holds import CreateLegalHold

    if arguments.user:
        kind, target_id = LegalHoldKind.USER, _find_user(services, arguments.user)
    elif arguments.organization:
        kind, target_id = LegalHoldKind.ORGANIZATION, find_organization(services, arguments.organization).id
    else:
        kind, target_id = LegalHoldKind.INSTANCE, None
    if arguments.reason:
        services.legal_holds.create(CreateLegalHold(kind=kind, held_id=target_id, reason=arguments.reason))
        return
    hold = services.legal_holds.list_holds().get(target_id or ALL_TARGETS)
    if hold is None:
        raise CommandError("This is not held.")
    services.legal_holds.release(hold.id)


def _find_user(services: "Services", name: str) -> str:
    subject = services.storage.users.find_by_login_name(name) or services.storage.users.find_subject(name)
    if subject is None:
        raise CommandError(f"There is no user {name}. Give an id or a login name.")
    return subject.user.id


def _hold_label(services: "Services", hold: "LegalHold") -> str:
    from identity.domain.legal_holds import LegalHoldKind

    if hold.kind is LegalHoldKind.INSTANCE:
        return "everything"
    if hold.kind is LegalHoldKind.USER:
        subject = services.storage.users.find_subject(hold.target_id)
        return hold.target_id if subject is None else subject.login_name
    organization = services.storage.organizations.find(hold.target_id)
    return hold.target_id if organization is None else f"{organization.name} ({organization.primary_domain})"


COMMAND = CliCommand(
    "legal-hold", "protect a user or an organization against deletion, or list all holds", add_arguments, run
)

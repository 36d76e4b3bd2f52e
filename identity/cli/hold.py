"""identity hold: what is not to be deleted, for as long as a court or an inquiry needs it."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from identity.cli.program import Failed, add_ini_arguments, opened
from identity.operations import Command

if TYPE_CHECKING:
    from identity.domain.legal_holds import Hold
    from identity.services.bundle import Services


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --user, --organization or --everything, --reason or --release."""
    add_ini_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--user", metavar="ID|LOGIN_NAME", help="a person, with their events")
    what.add_argument("--organization", metavar="ID|DOMAIN", help="an organization, with its people and its events")
    what.add_argument("--everything", action="store_true", help="all organizations, and what is of none")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--reason", metavar="TEXT", help="place a hold, for this reason, which the audit trail keeps")
    how.add_argument("--release", action="store_true", help="let it go as the settings say")


def run(arguments: Namespace) -> int:
    """Place or release one, then list all that there are."""
    chosen = arguments.user or arguments.organization or arguments.everything
    if bool(chosen) != bool(arguments.reason or arguments.release):
        raise Failed(
            "Say both which (--user, --organization or --everything) and what (--reason TEXT or --release), or neither."
        )
    with opened(arguments) as identity:
        if chosen:
            with identity.transaction() as services:
                _change(services, arguments)
        with identity.reading() as services:
            holds = services.legal_holds.all().values()
            lines = [f"{hold.since:%Y-%m-%d %H:%M:%S} UTC  {_name(services, hold)}: {hold.reason}" for hold in holds]
    print("\n".join(lines) or "Nothing is under a legal hold.")
    return 0


def _change(services: "Services", arguments: Namespace) -> None:
    from identity.domain.legal_holds import EVERYTHING, Held
    from identity.services.commands.legal_holds import PlaceLegalHold

    if arguments.user:
        kind, held = Held.USER, _user(services, arguments.user)
    elif arguments.organization:
        kind, held = Held.ORGANIZATION, _organization(services, arguments.organization)
    else:
        kind, held = Held.INSTANCE, None
    if arguments.reason:
        services.legal_holds.place(PlaceLegalHold(kind=kind, held_id=held, reason=arguments.reason))
        return
    hold = services.legal_holds.all().get(held or EVERYTHING)
    if hold is None:
        raise Failed("This is not held.")
    services.legal_holds.release(hold.id)


def _user(services: "Services", given: str) -> str:
    subject = services.storage.users.find_by_login_name(given) or services.storage.users.find_subject(given)
    if subject is None:
        raise Failed(f"There is no user {given}. Give an id or a login name.")
    return subject.user.id


def _organization(services: "Services", given: str) -> str:
    organizations = services.storage.organizations
    found = organizations.find_by_domain(given) or organizations.find(given)
    if found is None:
        raise Failed(f"There is no organization {given}. Give its id or its primary domain.")
    return found.id


def _name(services: "Services", hold: "Hold") -> str:
    from identity.domain.legal_holds import Held

    if hold.kind is Held.INSTANCE:
        return "everything"
    if hold.kind is Held.USER:
        subject = services.storage.users.find_subject(hold.held)
        return hold.held if subject is None else subject.login_name
    organization = services.storage.organizations.find(hold.held)
    return hold.held if organization is None else f"{organization.name} ({organization.primary_domain})"


COMMAND = Command("hold", "keep everything of a person or an organization, or list what is kept", add_arguments, run)

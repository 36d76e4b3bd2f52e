"""identity hold: what is not to be deleted by itself, for as long as a court or an inquiry needs it."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from identity.cli.program import Failed, add_ini_arguments, opened
from identity.operations import Command

if TYPE_CHECKING:
    from identity.services.bundle import Services


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --organization or --everything, --reason or --release."""
    add_ini_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--organization", metavar="ID|DOMAIN", help="an organization, with its people and its events")
    what.add_argument("--everything", action="store_true", help="all organizations, and what is of none")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--reason", metavar="TEXT", help="place a hold, for this reason, which the audit trail keeps")
    how.add_argument("--release", action="store_true", help="let it go as the settings say")


def run(arguments: Namespace) -> int:
    """Place or release one, then list all that there are."""
    chosen, change = arguments.organization or arguments.everything, arguments.reason or arguments.release
    if bool(chosen) != bool(change):
        raise Failed(
            "Say both which (--organization or --everything) and what (--reason TEXT or --release), or neither."
        )
    with opened(arguments) as identity:
        if chosen:
            with identity.transaction() as services:
                _change(services, arguments)
        with identity.reading() as services:
            holds = services.legal_holds.all()
            names = {id_: _name(services, id_) for id_ in holds}
    for id_, hold in sorted(holds.items(), key=lambda one: one[1].since):
        print(f"{hold.since:%Y-%m-%d %H:%M:%S} UTC  {names[id_]}: {hold.reason}")
    if not holds:
        print("Nothing is under a legal hold.")
    return 0


def _change(services: "Services", arguments: Namespace) -> None:
    from identity.services.legal_holds import EVERYTHING

    held = EVERYTHING
    if not arguments.everything:
        organizations = services.storage.organizations
        # One that is gone may still be held: its events are there.
        given = arguments.organization
        found = organizations.find_by_domain(given) or organizations.find(given)
        if found is None and given not in services.legal_holds.all():
            raise Failed(f"There is no organization {given}. Give its id or its primary domain.")
        held = given if found is None else found.id
    if arguments.release:
        services.legal_holds.release(held)
    else:
        services.legal_holds.place(held, arguments.reason)


def _name(services: "Services", id_: str) -> str:
    from identity.services.legal_holds import EVERYTHING

    if id_ == EVERYTHING:
        return "everything"
    organization = services.storage.organizations.find(id_)
    return id_ if organization is None else f"{organization.name} ({organization.primary_domain})"


COMMAND = Command("hold", "keep everything of an organization, or list what is kept so", add_arguments, run)

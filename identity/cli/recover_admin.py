"""identity recover-admin: a locked-out owner let back in."""

from argparse import ArgumentParser, Namespace

from identity.cli.add_manager import find_user, give_roles
from identity.cli.program import Failed, add_ini_arguments, opened, show
from identity.operations import Command


def add_arguments(parser: ArgumentParser) -> None:
    """-c INI, --user, --reset-factors, --email."""
    add_ini_arguments(parser)
    parser.add_argument("--user", metavar="LOGIN_NAME", required=True, help="the person's login name or id")
    parser.add_argument(
        "--reset-factors", action="store_true", help="also remove the person's second factors, if those are lost too"
    )
    parser.add_argument(
        "--email", metavar="ADDRESS", help="also give the person this email address; it counts as confirmed"
    )


def run(arguments: Namespace) -> int:
    """Reactivate the person, end their tokens, make sure of IAM_OWNER, and print a new one-time password once."""
    with opened(arguments) as identity:
        from identity.domain.permissions import INSTANCE
        from identity.domain.policies import Policy
        from identity.domain.users import HumanUser
        from identity.services.commands import decode
        from identity.services.commands.users import ChangeProfile
        from identity.services.managers import OWNER

        with identity.transaction() as services:
            subject = find_user(services, arguments.user)
            if not isinstance(subject.user, HumanUser):
                raise Failed(f"{subject.login_name} is a service user. Name a person.")
            if not subject.organization.active:
                raise Failed(
                    f"The organization {subject.organization.name} is deactivated, so none of its users can sign in."
                    " Name a person of another one."
                )
            password = services.users.recover(subject.user.id, reset_factors=arguments.reset_factors)
            if arguments.email:
                services.users.set_proven_email(subject.user.id, decode(ChangeProfile, {"email": arguments.email}))
            give_roles(services, subject, INSTANCE, frozenset({OWNER}))

            def can_prove(held: Policy) -> bool:
                """True if the person has a second factor that they may use, or can set one up."""
                had = {one.factor for one in services.factors.of(subject.user.id)}
                return any(
                    one.name in had or one.possible(subject, services)
                    for one in identity.protocol.factors.values()
                    if not one.spare and (held.factors is None or one.name in held.factors)
                )

            to_change = services.passwords.changed_after_reset(subject.organization.id)
            taken_back = services.policies.make_way(subject, can_prove)
            kept_out = services.policies.asks_second_factor(subject) and not can_prove(
                services.policies.of(subject.organization.id)
            )
    show("user", f"{subject.login_name}, active, {OWNER}")
    show("password", f"{password}   ({'one-time' if to_change else 'good until it is changed'}; shown only now)")
    if taken_back:
        show("policy", f"taken back, as it kept everybody out: {', '.join(taken_back)}")
    if kept_out:
        show("note", "identity.second_factor asks for a factor that no plugin offers: this password opens nothing yet")
    return 0


COMMAND = Command("recover-admin", "let a locked-out owner back in with a new one-time password", add_arguments, run)

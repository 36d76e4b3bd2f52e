"""identity recover-admin: let a locked-out owner in again."""

from argparse import ArgumentParser, Namespace

from identity.cli.add_manager import assign_manager_roles, find_user
from identity.cli.command_context import CommandError, add_ini_arguments, open_application, print_field
from identity.extension_points import CliCommand


def add_arguments(parser: ArgumentParser) -> None:
    add_ini_arguments(parser)
    parser.add_argument("--user", metavar="LOGIN_NAME", required=True, help="the user's login name or id")
    parser.add_argument(
        "--reset-factors", action="store_true", help="also remove the user's second factors, if those are lost, too"
    )
    parser.add_argument("--email", metavar="ADDRESS", help="also set this email address; it counts as verified")


def run(arguments: Namespace) -> int:
    """Reactivate the user, end their tokens, grant IAM_OWNER, and print a new one-time password."""
    with open_application(arguments) as identity:
        from identity.domain.permissions import Resource
        from identity.domain.policies import Policy
        from identity.domain.users import HumanUser
        from identity.services.commands.users import ChangeProfile
        from identity.services.managers import INSTANCE_OWNER_ROLE

        with identity.transaction() as services:
            subject = find_user(services, arguments.user)
            if not isinstance(subject.user, HumanUser):
                raise CommandError(f"{subject.login_name} is a service user. Name a person.")
            if not subject.organization.active:
                raise CommandError(
                    f"The organization {subject.organization.name} is deactivated, so none of its users can sign in."
                    " Name a person of another one."
                )
            password = services.users.recover(subject.user.id, reset_factors=arguments.reset_factors)
            if arguments.email:
                services.users.set_verified_email(subject.user.id, ChangeProfile.decode({"email": arguments.email}))
            assign_manager_roles(
                services, subject, Resource.INSTANCE, frozenset({INSTANCE_OWNER_ROLE}), is_recovery=True
            )

            def can_prove(policy: Policy) -> bool:
                """True if the user has an allowed second factor or can enrol one."""
                had = {enrolment.factor for enrolment in services.factors.list_enrolments(subject.user.id)}
                return any(
                    factor.name in had or factor.can_enrol(subject, services)
                    for factor in identity.protocol_registry.factors.values()
                    if not factor.is_backup and (policy.factors is None or factor.name in policy.factors)
                )

            to_change = services.passwords.requires_change_after_reset(subject)
            taken_back = services.policies.relax_for_recovery(subject, can_prove)
            kept_out = services.policies.requires_second_factor(subject) and not can_prove(
                services.policies.subject_policy(subject)
            )
    print_field("user", f"{subject.login_name}, active, {INSTANCE_OWNER_ROLE}")
    print_field("password", f"{password}   ({'one-time' if to_change else 'good until it is changed'}; shown only now)")
    if taken_back:
        print_field("policy", f"taken back, as it kept everybody out: {', '.join(taken_back)}")
    if kept_out:
        print_field(
            "note", "identity.second_factor asks for a factor that no plugin offers: this password opens nothing yet"
        )
    return 0


COMMAND = CliCommand("recover-admin", "let a locked-out owner back in with a new one-time password", add_arguments, run)

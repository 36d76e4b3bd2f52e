"""identity check: what an operator has to fix."""

from argparse import Namespace

from identity.cli.program import add_ini_arguments, opened
from identity.operations import Command


def run(arguments: Namespace) -> int:
    """Run every check, the plugins' among them; 1 if one fails."""
    with opened(arguments) as identity:
        failed = identity.checks.failed()
        for check in identity.checks:
            print(f"FAILED  {check.name}: {failed[check.name]}" if check.name in failed else f"ok      {check.name}")
    return 1 if failed else 0


COMMAND = Command("check", "run all checks and say what to fix", add_ini_arguments, run)

"""identity serve: the service under gunicorn."""

from argparse import Namespace

from identity.cli.program import Failed, add_ini_arguments, variables_of
from identity.operations import Command


def run(arguments: Namespace) -> int:
    """Answer requests until told to stop."""
    from identity.serving.gunicorn import Application

    variables = variables_of(arguments)
    server = Application(arguments.ini, variables)
    try:
        server.check_addresses()
    except OSError as problem:
        raise Failed(
            f"It cannot listen on {problem.filename}: {problem.strerror}. Stop the program that is there, or choose"
            " another address ([server:main] in the ini file; make run: PORT=…)."
        ) from None
    server.run()
    return 0


COMMAND = Command("serve", "answer requests until told to stop, under gunicorn", add_ini_arguments, run)

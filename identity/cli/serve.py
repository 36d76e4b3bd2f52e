"""identity serve: run the service with gunicorn."""

from argparse import Namespace

from identity.cli.command_context import CommandError, add_ini_arguments, read_variables
from identity.extension_points import CliCommand


def run(arguments: Namespace) -> int:
    from identity.serving.gunicorn_server import GunicornApplication

    variables = read_variables(arguments)
    server = GunicornApplication(arguments.ini, variables)
    try:
        server.require_free_addresses()
    except OSError as problem:
        raise CommandError(
            f"It cannot listen on {problem.filename}: {problem.strerror}. Stop the program that is there, or choose"
            " another address ([server:main] in the ini file; make run: PORT=…)."
        ) from None
    server.run()
    return 0


COMMAND = CliCommand("serve", "run the service with gunicorn", add_ini_arguments, run)

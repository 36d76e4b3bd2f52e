"""identity status: show worker processes and their status."""

from argparse import Namespace

from identity.cli.command_context import CommandError, add_ini_arguments, read_variables
from identity.extension_points import CliCommand

#: Seconds; workers send a heartbeat each second.
_MAX_HEARTBEAT_AGE = 5.0


def run(arguments: Namespace) -> int:
    """Query the arbiter's control socket. Returns 1 unless all configured workers respond."""
    from gunicorn.ctl.client import ControlClient, ControlClientError

    from identity.serving.gunicorn_server import GunicornApplication

    path = GunicornApplication(arguments.ini, read_variables(arguments)).cfg.control_socket
    try:
        with ControlClient(path, timeout=10) as control:
            stats = control.send_command("show stats")
            workers = control.send_command("show workers")["workers"]
            listeners = control.send_command("show listeners")["listeners"]
    except ControlClientError:
        raise CommandError(f"No service of {arguments.ini} answers at {path}, or it runs as another user.") from None
    where = ", ".join(listener["address"] for listener in listeners)
    uptime = round(stats["uptime"] or 0)
    print(f"arbiter  process {stats['pid']:<8} up {uptime} s, {stats['reloads']} reloads  {where}")
    alive = 0
    for worker in workers:
        # None or negative before the first heartbeat.
        age = -1 if worker["last_heartbeat"] is None else worker["last_heartbeat"]
        print(f"worker   process {worker['pid']:<8} {'starting' if age < 0 else f'last heartbeat {age:.1f} s ago'}")
        alive += 0 <= age < _MAX_HEARTBEAT_AGE
    return 0 if alive >= stats["workers_target"] else 1


COMMAND = CliCommand("status", "show worker processes and their status", add_ini_arguments, run)

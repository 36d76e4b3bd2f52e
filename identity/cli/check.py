"""identity check: report problems that an operator must fix."""

import logging
import os
from argparse import Namespace
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from identity.cli.command_context import add_ini_arguments, read_app_settings, read_variables, translate_errors
from identity.extension_points import CliCommand

if TYPE_CHECKING:
    from identity.application import IdentityApplication

#: Similarity above which a name counts as a typing error.
_SIMILARITY_CUTOFF = 0.8


#: Checks that need the configured master keys.
_KEY_CHECKS = frozenset({"signing key", "master keys"})
_MASTER_KEYS_SETTING = "identity.master_keys"


def run(arguments: Namespace) -> int:
    """Report every invalid setting and run every check that can run, including those of plugins. Returns 1 if one
    fails.
    """
    # Commands print their results; warnings in the log are meant for the service.
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    failed = False
    with translate_errors(), TemporaryDirectory() as folder:
        from identity import cpu_count
        from identity.ini_file import read_server_section

        settings, server = read_app_settings(arguments), read_server_section(arguments.ini, read_variables(arguments))
        identity, wrong = _assemble_despite_errors(settings, server, Path(folder) / "master.key")
        for sentence in (*wrong, *_find_invalid_settings(settings, server)):
            failed = True
            print(f"FAILED  {sentence}")
        if identity is None:
            return 1
        try:
            alone = failed or identity.backend.has_single_writer
            workers = server.get("workers") or os.environ.get("WEB_CONCURRENCY") or cpu_count.available_cpus()
            identity.process_count = 1 if alone else int(workers)
            return int(_run_checks(identity, _KEY_CHECKS if wrong else frozenset()) or failed)
        finally:
            identity.close()


def _run_checks(identity: "IdentityApplication", left_out: Container[str]) -> bool:
    """Run the checks and print their results and overdue background work; True if one failed."""
    from identity.system_checks import STORAGE_CHECK

    found = {name: problem for name, problem in identity.system_checks.failures().items() if name not in left_out}
    for check in identity.system_checks:
        if check.name in found:
            print(f"FAILED  {check.name}: {found[check.name]}")
        elif check.name not in left_out:
            print(f"ok      {check.name}")
    # Not a failure by itself: the command cannot see whether a process is already working on it.
    late = {} if STORAGE_CHECK in found or left_out else identity.background_monitor.overdue()
    for name, age in late.items():
        print(f"late    {name}: the oldest item has waited for {age}. Does a process serve, and what does its log say?")
    return bool(found)


def _assemble_despite_errors(
    settings: Mapping[str, str], server: Mapping[str, str], key: Path
) -> "tuple[IdentityApplication | None, list[str]]":
    """The service and its invalid settings. If only the master keys are invalid, it gets ``key`` instead, so that
    the other checks can run. Nothing is opened.
    """
    from identity.application_factory import create_application
    from identity.crypto.sealing import create_master_key_file
    from identity.plugin_host import PluginError
    from identity.server_settings import is_loopback_only
    from identity.settings_parser import InvalidSetting

    listens_locally = is_loopback_only(server)
    try:
        return create_application(settings, create_missing_key=False, is_loopback_only=listens_locally), []
    except PluginError as problem:
        return None, [str(problem)]
    except InvalidSetting as problem:
        wrong = problem.errors
    if any(invalid_setting.key != _MASTER_KEYS_SETTING for invalid_setting in wrong):
        return None, [str(invalid_setting) for invalid_setting in wrong]
    create_master_key_file(key)
    complete = {**settings, _MASTER_KEYS_SETTING: f"1:{key}"}
    return create_application(complete, is_loopback_only=listens_locally), [
        str(invalid_setting) for invalid_setting in wrong
    ]


def _find_invalid_settings(settings: Mapping[str, str], server: Mapping[str, str]) -> Iterator[str]:
    """Invalid settings in [server:main] and unknown ones in [app:main]. Nothing listens."""
    from identity.server_settings import find_invalid_settings

    yield from _find_misspelt_settings(settings)
    yield from map(str, find_invalid_settings(server))


def _find_misspelt_settings(settings: Iterable[str]) -> Iterator[str]:
    """Names that differ from our settings only in their prefix, so that nothing reads or refuses them."""
    from difflib import get_close_matches

    from identity.settings import PREFIX

    ours = PREFIX.rstrip(".")
    for name in settings:
        beginning, _, rest = name.partition(".")
        if rest and beginning != ours and get_close_matches(beginning.lower(), [ours], cutoff=_SIMILARITY_CUTOFF):
            yield f"{name}: is not read by anybody; is {PREFIX}{rest} meant?"


COMMAND = CliCommand("check", "run all checks and report what to fix", add_ini_arguments, run)

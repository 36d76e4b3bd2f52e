"""identity check: what an operator has to fix."""

import logging
import os
from argparse import Namespace
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from identity.cli.program import add_ini_arguments, problems_told, settings_of, variables_of
from identity.operations import Command

if TYPE_CHECKING:
    from identity.process import Identity

#: How much of a word has to be that of another one for a slip of the pen.
_NEAR = 0.8


#: What cannot be looked at without the master keys that the settings name.
_NEED_KEYS = frozenset({"signing key", "master keys"})
_MASTER_KEYS = "identity.master_keys"


def run(arguments: Namespace) -> int:
    """Tell every setting that will not do, and run every check that can be run, the plugins' among them. 1 if one
    fails."""
    # What a command has to say it prints; warnings in the log are for the service.
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    failed = False
    with problems_told(), TemporaryDirectory() as folder:
        from identity import processors
        from identity.ini_file import server_section

        settings, server = settings_of(arguments), server_section(arguments.ini, variables_of(arguments))
        identity, wrong = _assembled(settings, server, Path(folder) / "master.key")
        for sentence in (*wrong, *_wrong_settings(settings, server)):
            failed = True
            print(f"FAILED  {sentence}")
        if identity is None:
            return 1
        try:
            alone = failed or identity.backend.single_writer
            workers = server.get("workers") or os.environ.get("WEB_CONCURRENCY") or processors.available()
            identity.processes = 1 if alone else int(workers)
            return int(_run(identity, _NEED_KEYS if wrong else frozenset()) or failed)
        finally:
            identity.close()


def _run(identity: "Identity", left_out: Container[str]) -> bool:
    """Run the checks and tell what each found, and what waits; True if one failed."""
    from identity.checks import STORAGE

    found = {name: said for name, said in identity.checks.failed().items() if name not in left_out}
    for check in identity.checks:
        if check.name in found:
            print(f"FAILED  {check.name}: {found[check.name]}")
        elif check.name not in left_out:
            print(f"ok      {check.name}")
    # Whether a process runs that works it off cannot be seen from here: that alone is no failure.
    late = {} if STORAGE in found or left_out else identity.backlogs.late()
    for name, age in late.items():
        print(f"late    {name}: the oldest item has waited for {age}. Does a process serve, and what does its log say?")
    return bool(found)


def _assembled(
    settings: Mapping[str, str], server: Mapping[str, str], key: Path
) -> "tuple[Identity | None, list[str]]":
    """The service, and what will not do in its settings. Where that is the master keys alone it has one of ``key``, so
    that the rest is looked at all the same. Nothing is opened."""
    from identity.app import assemble
    from identity.crypto.sealing import create_master_key_file
    from identity.ini_values import BadSetting
    from identity.plugin_host import PluginProblem
    from identity.server_settings import listens_on_loopback

    listens_locally = listens_on_loopback(server)
    try:
        return assemble(settings, may_make_key=False, listens_locally=listens_locally), []
    except PluginProblem as problem:
        return None, [str(problem)]
    except BadSetting as problem:
        wrong = problem.each
    if any(one.key != _MASTER_KEYS for one in wrong):
        return None, [str(one) for one in wrong]
    create_master_key_file(key)
    given = {**settings, _MASTER_KEYS: f"1:{key}"}
    return assemble(given, listens_locally=listens_locally), [str(one) for one in wrong]


def _wrong_settings(settings: Mapping[str, str], server: Mapping[str, str]) -> Iterator[str]:
    """What will not do in [server:main], and what nobody reads in [app:main]. Nothing listens."""
    from identity.server_settings import bad_settings

    yield from _misspelt(settings)
    yield from map(str, bad_settings(server))


def _misspelt(settings: Iterable[str]) -> Iterator[str]:
    """Names that look like settings of ours but for their beginning: nobody reads them, and nobody refuses them."""
    from difflib import get_close_matches

    from identity.settings import PREFIX

    ours = PREFIX.rstrip(".")
    for name in settings:
        beginning, _, rest = name.partition(".")
        if rest and beginning != ours and get_close_matches(beginning.lower(), [ours], cutoff=_NEAR):
            yield f"{name}: is not read by anybody; is {PREFIX}{rest} meant?"


COMMAND = Command("check", "run all checks and say what to fix", add_ini_arguments, run)

"""identity check: what an operator has to fix."""

from argparse import Namespace
from collections.abc import Iterable, Iterator

from identity.cli.program import add_ini_arguments, opened, problems_told, settings_of, variables_of
from identity.operations import Command

#: How much of a word has to be that of another one for a slip of the pen.
_NEAR = 0.8


def run(arguments: Namespace) -> int:
    """Tell every setting that will not do; where all do, run every check, the plugins' among them. 1 if one fails."""
    wrong = list(_wrong_settings(arguments))
    for sentence in wrong:
        print(f"FAILED  {sentence}")
    if wrong:
        return 1
    from identity.checks import STORAGE

    with opened(arguments) as identity:
        identity.processes = _processes(arguments)
        failed = identity.checks.failed()
        for check in identity.checks:
            print(f"FAILED  {check.name}: {failed[check.name]}" if check.name in failed else f"ok      {check.name}")
        # Whether a process runs that works it off cannot be seen from here: that alone is no failure.
        late = {} if STORAGE in failed else identity.backlogs.late()
    for name, age in late.items():
        print(f"late    {name}: the oldest item has waited for {age}. Does a process serve, and what does its log say?")
    return 1 if failed else 0


def _processes(arguments: Namespace) -> int:
    """How many [server:main] starts."""
    from identity.ini_file import server_words
    from identity.server.listening import WORKERS, read_workers

    return read_workers(server_words(arguments.ini, variables_of(arguments)).get(WORKERS, "")) or 1


def _wrong_settings(arguments: Namespace) -> Iterator[str]:
    """What will not do in [app:main] and [server:main]; nothing is opened and nothing listens. Raises Failed."""
    from identity.app import assemble
    from identity.ini_file import server_words
    from identity.ini_values import BadSetting
    from identity.plugin_host import PluginProblem
    from identity.server.words import bad_words, differing_proxy

    with problems_told():
        settings, words = settings_of(arguments), server_words(arguments.ini, variables_of(arguments))
        try:
            identity = assemble(settings, may_make_key=False)
            identity.close()
            yield from map(str, differing_proxy(words, identity.settings.trusted_proxy))
        except BadSetting as problem:
            yield from map(str, problem.each)
        except PluginProblem as problem:
            yield str(problem)
        yield from _misspelt(settings)
        yield from map(str, bad_words(words))


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

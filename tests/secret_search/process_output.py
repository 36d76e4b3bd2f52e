"""Records what processes of tests write to files and to standard error.

A pipe to standard output is not recorded: its reader may have requested a secret, as with `identity token`.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.secret_search.search import SecretSearch

_AT_ONCE = 1 << 20

#: Lines that end like this show a secret on purpose, once, to the operator.
_MEANT = "shown only now)"

#: A folder on the PYTHONPATH of servers, whose sitecustomize module Python imports first.
_DEBUG_LOGGING = Path(__file__).with_name("debug_logging")
#: Arguments by which the command of a server is recognized.
_SERVERS = frozenset({"serve", "pyramid.scripts.pserve"})
#: Servers of relying parties, whose access logs contain the authorization codes that browsers bring.
_RELYING_PARTIES = frozenset({"uvicorn", "flask", "manage.py"})


class _CapturedProcess:
    """The output file of a process, read from its current end. It stays open because tests delete their files."""

    def __init__(self, path: str) -> None:
        # A file descriptor, because an unclosed file object would cause a ResourceWarning at the end.
        self._file = os.open(path, os.O_RDONLY)
        os.lseek(self._file, 0, os.SEEK_END)
        self.process: Any = None

    def new(self) -> tuple[bool, str]:
        """Whether the process has ended, and the text since the last call."""
        over = self.process is None or self.process.returncode is not None
        return over, b"".join(iter(lambda: os.read(self._file, _AT_ONCE), b"")).decode("utf-8", "replace")

    def close(self) -> None:
        os.close(self._file)


def wrap(search: SecretSearch) -> None:
    """Record the output of processes that start from now on."""
    followed: list[_CapturedProcess] = []
    start, communicate, read = (
        subprocess.Popen.__init__,
        subprocess.Popen.communicate,
        pytest.CaptureFixture.readouterr,
    )

    def started(process: Any, *arguments: Any, **named: Any) -> None:
        command = {*map(str, arguments[0] if arguments else named["args"])}
        paths = {_file(named.get("stdout")), _file(named.get("stderr"))} - {None}
        files = [_CapturedProcess(str(path)) for path in paths if not command & _RELYING_PARTIES]
        followed.extend(files)
        if command & _SERVERS:
            named["env"] = _with_debug_logging(named.get("env"))
        start(process, *arguments, **named)
        for captured_process in files:
            captured_process.process = process

    def communicated(process: Any, *arguments: Any, **named: Any) -> Any:
        out, err = communicate(process, *arguments, **named)
        search.lines += _lines(err)
        return out, err

    def was_read(capture: Any) -> Any:
        captured = read(capture)
        search.lines += _lines(captured.err)
        return captured

    def outputs() -> Iterator[str]:
        for captured_process in list(followed):
            over, text = captured_process.new()
            yield from _lines(text)
            if over:
                captured_process.close()
                followed.remove(captured_process)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    subprocess.Popen.communicate = communicated  # type: ignore[method-assign]
    pytest.CaptureFixture.readouterr = was_read  # type: ignore[method-assign]
    search.sources.append(outputs)


def _with_debug_logging(environ: Mapping[str, str] | None) -> dict[str, str]:
    environ = os.environ if environ is None else environ
    path = [str(_DEBUG_LOGGING), *filter(None, [environ.get("PYTHONPATH")])]
    return {**environ, "PYTHONPATH": os.pathsep.join(path)}


def _file(target: Any) -> str | None:
    """The regular file behind an argument of Popen; None if there is none."""
    with suppress(OSError, ValueError, AttributeError):
        number = target if isinstance(target, int) else target.fileno()
        # Negative values are PIPE, STDOUT and DEVNULL.
        if number >= 0 and os.path.isfile(path := os.readlink(f"/proc/self/fd/{number}")):
            return path
    return None


def _lines(text: Any) -> list[str]:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return [line for line in (text or "").splitlines() if not line.endswith(_MEANT)]

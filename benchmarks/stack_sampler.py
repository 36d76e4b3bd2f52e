"""Samples the stack of a process and its forks every millisecond of CPU time.

Only the main thread is sampled, where the event loop runs. SIGRTMIN resets; SIGRTMIN+1 writes a file named by
BENCHMARK_SAMPLES and the process id, each line JSON of a stack, outermost frame first, and its number of samples.
"""

import json
import os
import signal
from collections import Counter
from types import FrameType

RESET, DUMP = signal.SIGRTMIN, signal.SIGRTMIN + 1
_INTERVAL_SECONDS = 0.001
_MAX_DEPTH = 200

_stacks: Counter[tuple[str, ...]] = Counter()


def _sample(_: int, frame: FrameType | None) -> None:
    stack: list[str] = []
    while frame is not None and len(stack) < _MAX_DEPTH:
        code = frame.f_code
        stack.append(f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}")
        frame = frame.f_back
    _stacks[tuple(reversed(stack))] += 1


def _dump(*_: object) -> None:
    with open(f"{os.environ['BENCHMARK_SAMPLES']}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.writelines(json.dumps([stack, number]) + "\n" for stack, number in _stacks.items())


def start_sampling() -> None:
    """Sample this process, and its forks."""
    signal.signal(signal.SIGPROF, _sample)
    signal.signal(DUMP, _dump)
    signal.signal(RESET, lambda *_: _stacks.clear())
    os.register_at_fork(after_in_child=_set_timer)
    _set_timer()


def _set_timer() -> None:
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL_SECONDS, _INTERVAL_SECONDS)

"""identity serve with several workers: what dies is replaced, and nobody who asks notices more than they must."""

import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from identity.cli.token import read_key_file
from identity.testing.processes import family
from tests.house.answering import CROWDED
from tests.house.asking import answers, note_tokens, password_is_right, userinfo_of
from tests.house.served import DEVELOPMENT
from tests.house.workers import LONG, Asking, Serving, end, port_is_free, refuses, start, under_load, wait_for

Start = Callable[..., Serving]
loaded = contextmanager(under_load)
THOROUGH = partial(pytest.param, marks=pytest.mark.thorough)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Start]:
    """Starts it and returns at once."""
    started: list[Serving] = []

    def begin(*words: str, **settings: object) -> Serving:
        started.append(start(tmp_path, *(words or ("--workers", "2")), **settings))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for one in started:
        end(one)


@pytest.fixture
def serve(begin: Start) -> Start:
    """Starts it and returns once all workers answer."""

    def serve(*words: str, **settings: object) -> Serving:
        serving = begin(*words, **settings)
        serving.says("workers\n")
        return serving

    return serve


TOLD = "the one before it goes on"


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=LONG)
    return not alive


@pytest.mark.parametrize("server", ["waitress", THOROUGH("granian")])
def test_all_workers_answer_at_one_address(serve: Start, server: str) -> None:
    serving = serve("--workers", "2", "--server", server)
    workers = serving.workers()
    assert set(wait_for(lambda: {serving.ask()[0] for _ in range(20)}, lambda found: len(found) == 2)) == set(workers)
    serving.signal(signal.SIGTERM)
    assert serving.process.wait(LONG) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, THOROUGH(signal.SIGINT)])
def test_all_end_in_order_when_the_supervisor_is_told(serve: Start, number: int) -> None:
    serving = serve()
    processes = serving.all_processes()
    assert len(processes) == 4
    serving.signal(number)
    assert serving.process.wait(LONG) == 0
    assert gone(processes)
    assert port_is_free(serving.port)
    assert serving.log.count("stopped") == 2
    assert "Traceback" not in serving.log


def test_while_they_finish_what_they_are_answering_no_new_connection_is_taken(serve: Start) -> None:
    serving = serve()
    with socket.create_connection(("127.0.0.1", serving.port), timeout=LONG) as half:
        half.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        serving.ask()
        serving.signal(signal.SIGTERM)
        wait_for(lambda: refuses(serving.port), bool)
        assert serving.process.poll() is None
        half.sendall(b"\r\n")
        assert half.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert serving.process.wait(LONG) == 0


@pytest.mark.thorough
def test_told_twice_it_waits_for_nobody(serve: Start) -> None:
    serving = serve()
    with socket.create_connection(("127.0.0.1", serving.port)) as half:
        half.sendall(b"POST / HTTP/1.1\r\n")
        serving.ask()
        serving.signal(signal.SIGTERM)
        serving.says("told to stop")
        serving.signal(signal.SIGTERM)
        assert serving.process.wait(LONG) == 0
    assert "had no answer yet" in serving.log


@pytest.mark.parametrize("kept", [THOROUGH(True), False], ids=["kept connections", "new connections"])
def test_a_killed_worker_takes_its_own_connections_with_it_and_no_others(serve: Start, kept: bool) -> None:
    serving = serve()
    with loaded(serving, kept=kept) as asking:
        victim = wait_for(lambda: [one.answers[-1][0] for one in asking], bool)[0]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: victim not in serving.workers(), bool)
        for one in asking:
            one.more()
        assert len({process for one in asking for process, _ in one.answers[-1:]} - {victim}) >= 1
    lost = [what for one in asking for what in one.lost]
    assert not [what for what in lost if "refused" in what[1]]
    assert {process for process, _ in lost} <= ({victim} if kept else {0})
    # Of each connection one request at most.
    assert len(lost) <= len(asking)
    assert f"(process {victim}) was ended by SIGKILL; another one takes its place" in serving.log


@pytest.mark.thorough
def test_what_waits_for_a_worker_that_is_gone_is_answered_by_its_successor(serve: Start) -> None:
    serving = serve("--workers", "1")
    (worker,) = serving.workers(1)
    os.kill(worker, signal.SIGSTOP)
    with socket.create_connection(("127.0.0.1", serving.port), timeout=LONG) as waiting:
        waiting.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        os.kill(worker, signal.SIGKILL)
        assert waiting.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert serving.workers(1) != [worker]


@pytest.mark.parametrize("server", ["waitress", THOROUGH("granian")])
def test_workers_answer_until_the_process_that_forked_them_was_replaced(serve: Start, server: str) -> None:
    """However long that takes: here until there are settings again with which another one can start."""
    serving = serve("--workers", "2", "--server", server)
    generation = serving.generation()
    workers = generation.children()
    old = {one.pid for one in workers}
    serving.write(threads="none")
    with loaded(serving, kept=True) as asking:
        generation.kill()
        serving.says("another attempt")
        for one in asking:
            one.more()
            assert one.answers[-1][0] in old
        assert serving.ask()[0] in old
        serving.write(word="second")
        serving.says("workers\n", 2)
        assert gone([generation, *workers])
        for one in asking:
            wait_for(lambda one=one: one.answers[-1][1], lambda word: word == "second")  # type: ignore[misc]
    assert [what for one in asking for what in one.lost] == []


@pytest.mark.parametrize("times", [1, 2])
def test_a_stop_ends_workers_whose_process_was_not_replaced_yet(serve: Start, times: int) -> None:
    serving = serve()
    generation = serving.generation()
    workers = generation.children()
    serving.write(threads="none")
    generation.kill()
    serving.says("another attempt")
    for _ in range(times):
        serving.signal(signal.SIGTERM)
    assert serving.process.wait(LONG) == 0
    assert [one for one in workers if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.skipif(sys.platform != "linux", reason="another system")
def test_as_the_first_process_of_a_container_it_leaves_no_dead_workers_behind(serve: Start) -> None:
    # Whoever is told so is given the orphans among its descendants, as the first process is (prctl(2)).
    serving = serve(first="import ctypes; ctypes.CDLL(None).prctl(36, 1)")
    generation = serving.generation()
    workers = generation.children()
    generation.kill()
    assert gone([generation, *workers])
    serving.says("workers\n", 2)
    assert [one.status() for one in serving.all_processes() if one.status() == psutil.STATUS_ZOMBIE] == []


def test_nothing_outlives_a_killed_supervisor(serve: Start) -> None:
    serving = serve()
    processes = serving.all_processes()
    os.kill(serving.process.pid, signal.SIGKILL)
    serving.process.wait(LONG)
    assert gone(processes[1:])
    assert port_is_free(serving.port)
    assert "the supervisor is gone" in serving.log


@pytest.mark.parametrize("kept", [True, THOROUGH(False)], ids=["kept connections", "new connections"])
def test_a_reload_brings_new_settings_and_loses_no_request(serve: Start, kept: bool) -> None:
    serving = serve()
    before = serving.workers()

    def has_changed(one: Asking) -> bool:
        return one.answers[-1][1] == "second"

    with loaded(serving, kept=kept) as asking:
        serving.write(word="second")
        serving.signal(signal.SIGHUP)
        for one in asking:
            wait_for(lambda one=one: has_changed(one), bool)  # type: ignore[misc]
        assert gone([one for number in before for one in family(number)])
        for one in asking:
            one.more()
            assert has_changed(one)
    assert [what for one in asking for what in one.lost] == []
    assert not set(serving.workers()) & set(before)


def test_a_variable_that_left_the_file_stops_no_reload(serve: Start) -> None:
    """It was given when the supervisor was started, which hands it on."""
    serving = serve()
    serving.write(word="second", listen=f"127.0.0.1:{serving.port}")
    ini = serving.folder / "service.ini"
    ini.write_text(ini.read_text().replace("http_port = 0\n", ""))
    serving.signal(signal.SIGHUP)
    serving.says("workers\n", 2)
    wait_for(lambda: serving.ask()[1], lambda word: word == "second")


@pytest.mark.parametrize("words", [(), ("--workers", "2")], ids=["by the file", "by the command line"])
def test_what_a_reload_cannot_change_is_told(serve: Start, words: tuple[str, ...]) -> None:
    serving = serve("-c", "service.ini", *words, workers=2)
    serving.write(workers=3)
    serving.signal(signal.SIGHUP)
    serving.says("workers\n", 2)
    told = "names another number of workers than the 2 that serve: that takes a new start"
    assert serving.log.count(told) == (0 if words else 1)
    serving.write(workers=2, listen=f"127.0.0.2:{serving.port}")
    serving.signal(signal.SIGHUP)
    serving.says("workers\n", 3)
    assert serving.log.count("names another address") == 1
    assert serving.log.count(told) == (0 if words else 1)


def test_settings_that_do_not_fit_leave_the_workers_that_are_there(serve: Start) -> None:
    serving = serve()
    before = serving.workers()
    unfit = ({"word": "broken"}, {"threads": "many"}, {"no_such_word": "1"}, {"worker_timeout": "1"}, None)
    for count, settings in enumerate(unfit, start=1):
        if settings is None:
            (serving.folder / "service.ini").unlink()
        else:
            serving.write(**settings)
        serving.signal(signal.SIGHUP)
        serving.says(TOLD, count)
    assert serving.workers() == before
    assert serving.ask()[1] == "first"
    assert "Traceback" not in serving.log


def environment(folder: Path) -> Path:
    """The interpreter of another environment with the same packages."""
    own = Path(sys.prefix)
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text((own / "pyvenv.cfg").read_text())
    (folder / "lib").symlink_to(own / "lib")
    interpreter = folder / "bin" / "python"
    interpreter.symlink_to(sys.executable)
    return interpreter


def test_a_reload_without_an_interpreter_leaves_the_workers_that_are_there(begin: Start, tmp_path: Path) -> None:
    """As while an environment is made anew; systemd waits for no reload in vain."""
    interpreter = environment(tmp_path / "environment")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(LONG)
        systemd.bind(str(tmp_path / "notify"))
        told = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        serving = begin(first=f"sys.argv.insert(1, {str(interpreter)!r})", environment=told)
        assert systemd.recv(100) == b"READY=1"
        before = serving.workers()
        interpreter.unlink()
        files = psutil.Process(serving.process.pid).num_fds()
        for count in (1, 2):
            serving.signal(signal.SIGHUP)
            serving.says(TOLD, count)
            assert systemd.recv(100).startswith(b"RELOADING=1\n")
            assert systemd.recv(100) == b"READY=1"
        assert serving.workers() == before
        assert serving.ask()[1] == "first"
        # Two reloads would have left more than the one that was about to be closed at the first look.
        assert psutil.Process(serving.process.pid).num_fds() <= files
        interpreter.symlink_to(sys.executable)
        serving.signal(signal.SIGHUP)
        serving.says("workers\n", 2)
    assert not set(serving.workers()) & set(before)
    assert "Traceback" not in serving.log


def test_without_workers_or_an_interpreter_it_is_tried_again(serve: Start, tmp_path: Path) -> None:
    interpreter = environment(tmp_path / "environment")
    serving = serve(first=f"sys.argv.insert(1, {str(interpreter)!r})")
    generation = serving.generation()
    interpreter.unlink()
    generation.kill()
    serving.says("another attempt in")
    interpreter.symlink_to(sys.executable)
    serving.says("workers\n", 2)


def test_where_no_worker_can_be_forked_it_is_tried_again(serve: Start, tmp_path: Path) -> None:
    crowded = tmp_path / CROWDED
    serving = serve(word="crowded")
    first, second = serving.workers()
    crowded.touch()
    os.kill(first, signal.SIGKILL)
    serving.says("cannot be forked")
    serving.says("another one takes its place in 0.5 s")
    assert serving.workers(1) == [second]
    serving.generation().send_signal(signal.SIGUSR1)
    serving.says(f"process {second}, ")
    crowded.unlink()
    assert second in serving.workers()


def test_a_reload_that_can_fork_no_worker_leaves_those_that_are_there(serve: Start, tmp_path: Path) -> None:
    serving = serve(word="crowded")
    before = serving.workers()
    (tmp_path / CROWDED).touch()
    serving.signal(signal.SIGHUP)
    serving.says(TOLD)
    assert "cannot be forked" in serving.log
    assert serving.workers() == before


def test_a_worker_that_hangs_is_replaced(serve: Start) -> None:
    serving = serve(worker_timeout=4)
    hanging, _ = serving.workers()
    os.kill(hanging, signal.SIGSTOP)
    serving.says(f"(process {hanging}) hangs")
    wait_for(lambda: hanging not in serving.workers(), bool)


@pytest.mark.thorough
def test_one_that_dies_again_and_again_is_started_less_often_each_time(serve: Start) -> None:
    serving = serve("--workers", "1", word="dies")
    for pause in ("0.1 s", "0.5 s"):
        (worker,) = serving.workers(1)
        with socket.create_connection(("127.0.0.1", serving.port), timeout=LONG) as asking:
            asking.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert asking.recv(100) == b""
        serving.says(f"worker 0 (process {worker}) ended with status 7; another one takes its place in {pause}")


@pytest.mark.thorough
def test_a_stop_that_all_processes_are_told_is_an_orderly_one(serve: Start) -> None:
    """As systemd does it."""
    serving = serve()
    processes = serving.all_processes()
    with socket.create_connection(("127.0.0.1", serving.port), timeout=LONG) as half:
        half.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        serving.ask()
        for one in reversed(processes):
            one.send_signal(signal.SIGTERM)
        serving.says("told to stop")
        half.sendall(b"\r\n")
        assert half.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert serving.process.wait(LONG) == 0
    assert gone(processes)


def test_an_address_that_is_taken_is_told(serve: Start, tmp_path: Path) -> None:
    first = serve()
    (tmp_path / "second").mkdir()
    for workers in ("1", "2"):
        second = start(tmp_path / "second", "--workers", workers, port=first.port)
        try:
            assert second.process.wait(LONG) == 1
            assert f"It cannot listen on 127.0.0.1:{first.port}: Address already in use" in second.log
            assert "Traceback" not in second.log
        finally:
            end(second)


@pytest.mark.parametrize(
    ("words", "settings", "told"),
    [
        (("--workers", "none"), {}, "workers: must be auto, or a whole number of 1 or more, not none"),
        (("--workers", "0"), {}, "workers: must be auto"),
        ((), {"workers": "-1"}, "workers: must be auto"),
        (("--workers", "2"), {"threads": "many"}, "identity cannot start. [server:main]: "),
        (("--workers", "2"), {"listen": "nowhere at all"}, "identity cannot start. [server:main]: "),
        (("--workers", "2"), {"worker_timeout": "soon"}, "worker_timeout"),
        (("--workers", "2"), {"word": "broken"}, "the word is broken"),
    ],
)
def test_a_start_that_cannot_be_is_told_once(
    begin: Start, words: tuple[str, ...], settings: dict[str, str], told: str
) -> None:
    serving = begin(*(words or ("-c", "service.ini")), **settings)
    assert serving.process.wait(LONG) != 0
    assert serving.log.count(told) == 1, serving.log
    assert "Traceback" not in serving.log


@pytest.mark.thorough
def test_workers_share_a_socket_in_the_file_system(serve: Start, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    serving = serve(listen=None, unix_socket=path)
    serving.signal(signal.SIGHUP)
    serving.says("workers\n", 2)
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(LONG)
            asking.connect(str(path))
            asking.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert asking.recv(100).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.thorough
def test_systemd_is_told(begin: Start, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(LONG)
        systemd.bind(str(tmp_path / "notify"))
        serving = begin(environment={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert systemd.recv(100) == b"READY=1"
        serving.signal(signal.SIGHUP)
        assert systemd.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert systemd.recv(100) == b"READY=1"
        serving.signal(signal.SIGTERM)
        assert systemd.recv(100) == b"STOPPING=1"


class TestOneProcess:
    """Without a supervisor."""

    @pytest.mark.parametrize("server", ["waitress", THOROUGH("granian")])
    def test_systemd_is_told_and_a_reload_ends_nothing(self, begin: Start, tmp_path: Path, server: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.settimeout(LONG)
            systemd.bind(str(tmp_path / "notify"))
            told = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
            serving = begin("--server", server, environment=told)
            assert systemd.recv(100) == b"READY=1"
            assert serving.ask() == (serving.process.pid, "first")
            serving.signal(signal.SIGHUP)
            assert systemd.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert systemd.recv(100) == b"READY=1"
            serving.says("one process without a supervisor cannot, and goes on")
            assert serving.ask() == (serving.process.pid, "first")
            serving.signal(signal.SIGTERM)
            assert systemd.recv(100) == b"STOPPING=1"
        assert serving.process.wait(LONG) == 0

    def test_it_ends_with_its_terminal(self, begin: Start) -> None:
        terminal, its_end = os.openpty()
        # Whoever started these tests may have been told to go on without a terminal, which is inherited.
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            serving = begin("-c", "service.ini", terminal=its_end)
            serving.says("Serving on")
            serving.signal(signal.SIGHUP)
            assert serving.process.wait(LONG) == -signal.SIGHUP
        finally:
            signal.signal(signal.SIGHUP, before)
            os.close(its_end)
            os.close(terminal)


def test_an_operator_can_ask_for_the_workers(serve: Start) -> None:
    serving = serve("-c", "service.ini", workers=2)
    serving.signal(signal.SIGUSR1)
    for number, worker in enumerate(serving.workers()):
        serving.says(f"worker {number}: process {worker}, 0:00:")
    assert "replaced 0 times" in serving.log


def more(ledger: list[str], asking: list[Future[int]], count: int = 20) -> None:
    """Wait until it holds so many more, or those who ask have given up."""
    wanted = len(ledger) + count
    wait_for(lambda: len(ledger) >= wanted or any(one.done() for one in asking), bool)


class TestTheService:
    """The real one."""

    def test_workers_share_what_is_stored_and_lose_nothing_that_was_acknowledged(
        self, begin: Start, tmp_path: Path
    ) -> None:
        serving = begin("--workers", "2", f"data={tmp_path / 'data'}", ini=DEVELOPMENT)
        issuer = f"http://localhost:{serving.port}"
        wait_for(lambda: answers(issuer), bool)
        key_file = read_key_file(tmp_path / "data" / "example-service-user.json")
        ledger: list[str] = []
        enough = threading.Event()
        with ThreadPoolExecutor(4) as threads:
            asking = [threads.submit(note_tokens, issuer, key_file, ledger, enough) for _ in range(4)]
            for worker in serving.workers():
                more(ledger, asking)
                os.kill(worker, signal.SIGKILL)
            more(ledger, asking)
            serving.signal(signal.SIGHUP)
            serving.says("identity is served at", 2)
            more(ledger, asking, 100)
            enough.set()
            broken = sum(one.result() for one in asking)
        assert len(set(ledger)) == len(ledger)
        assert {userinfo_of(issuer, token) for token in ledger[::5]} == {200}
        # Each connection had one request under way when its worker was killed, or none.
        assert broken <= 8
        # The password was hashed before they were forked, and told once.
        (password,) = re.findall(r"password +(\S+) +\(one-time", serving.log)
        assert [password_is_right(issuer, "admin@identity.localhost", password) for _ in range(4)] == [True] * 4
        assert not password_is_right(issuer, "admin@identity.localhost", "another one")
        serving.signal(signal.SIGTERM)
        assert serving.process.wait(LONG) == 0
        assert "Traceback" not in serving.log

    def test_a_storage_that_they_cannot_share_is_refused(self, begin: Start, tmp_path: Path) -> None:
        ini = tmp_path / "memory.ini"
        text = DEVELOPMENT.read_text().replace("identity.storage = sql", "identity.storage = memory")
        ini.write_text(text.replace("identity.plugins = sql ", "identity.plugins = memory sql "))
        serving = begin("--workers", "2", f"data={tmp_path / 'data'}", ini=ini)
        assert serving.process.wait(LONG) == 1
        assert serving.log.count("Several workers cannot share the storage memory") == 1

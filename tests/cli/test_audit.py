"""identity audit: stored and new events as JSON lines."""

import json
import select
import signal
import subprocess
import sys

import pytest

from identity.cli import audit
from identity.domain.audit import UNFILTERED
from identity.plugins.management.resources.audit_events import AuditEventRepresentation
from identity.storage.errors import StorageUnavailable
from identity.testing.fixtures import WorldFactory


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


class TestList:
    def test_events_are_listed_oldest_first(self, on_data):
        ran = on_data("audit")
        events = lines(ran.out)
        assert (ran.status, ran.err) == (0, "")
        assert [event["sequence"] for event in events] == sorted(event["sequence"] for event in events)
        first = events[0]
        assert first["event"] == "organization.created"
        assert first["at"].endswith("Z")
        nobody = dict.fromkeys(("id", "client_id", "session_id", "client_address", "request_id"))
        assert first["actor"] == {"kind": "operator", **nobody}
        assert set(first) == {"sequence", *AuditEventRepresentation.model_fields}

    def test_limit_selects_the_newest_events(self, on_data):
        events = lines(on_data("audit").out)
        assert lines(on_data("audit", "--limit", 3).out) == events[-3:]
        assert lines(on_data("audit", "--limit", len(events) + 5).out) == events
        assert on_data("audit", "--limit", 0).out == ""

    def test_after_option_resumes(self, on_data):
        events = lines(on_data("audit").out)
        assert lines(on_data("audit", "--after", events[1]["sequence"]).out) == events[2:]

    def test_filters(self, on_data):
        events = lines(on_data("audit").out)
        domain = "identity.localhost"
        assert lines(on_data("audit", "--event", "manager").out) == [
            event for event in events if event["event"].startswith("manager.")
        ]
        assert lines(on_data("audit", "--organization", domain).out) == [
            event for event in events if event["organization_id"] is not None
        ]
        assert on_data("audit", "--since", "2999-01-01T00:00:00Z").out == ""
        assert lines(on_data("audit", "--since", events[0]["at"]).out) == events
        [owner] = [event for event in events if event["event"] == "user.created"]
        for name in ("admin@identity.localhost", owner["object_id"]):
            of_owner = lines(on_data("audit", "--object", name).out)
            assert owner in of_owner
            # Events of the user's roles are included.
            assert all(owner["object_id"] in (event["object_id"], event["user_id"]) for event in of_owner)
            assert on_data("audit", "--actor", name).out == ""

    def test_invalid_filter_is_reported(self, on_data):
        for option, value, status, sentence in (
            ("--event", "projects", 1, "There is no audit event projects."),
            ("--organization", "none.example", 1, "There is no organization none.example."),
            ("--actor", "nobody@none.example", 1, "There is no user nobody@none.example."),
            ("--since", "yesterday", 1, "Enter a date and time such as"),
            ("--limit", "-1", 2, "--limit"),
        ):
            ran = on_data("audit", option, value)
            assert (ran.status, ran.out) == (status, "")
            assert sentence in ran.err


class Following:
    """`identity audit --follow` in a separate process."""

    def __init__(self, ini, data, *arguments):
        command = ["audit", "-c", ini, f"data={data}", "--follow", *arguments]
        # Background jobs of a shell script, and so their child processes, ignore SIGINT.
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{heed}; import sys; from identity.cli import main; sys.exit(main({command!r}))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def next(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 90)
        assert ready, "no event came"
        return json.loads(self.process.stdout.readline())

    def end(self, number):
        self.process.send_signal(number)
        rest, errors = self.process.communicate(timeout=90)
        return self.process.returncode, rest, errors


@pytest.fixture
def follow(ini, data):
    """Starts following. Ends processes that a failed test left behind, whose open pipes would make later tests fail."""
    started = []

    def follow(*arguments):
        started.append(Following(ini, data, *arguments))
        return started[-1]

    yield follow
    for following in started:
        with following.process as process:
            process.kill()


class TestFollow:
    @pytest.mark.thorough
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_follows_new_events_until_interrupted(self, on_data, follow, number):
        last = lines(on_data("audit", "--limit", 1).out)
        following = follow("--limit", "1")
        assert [following.next()] == last
        assert on_data("registration", "--organization", "identity.localhost", "--off").status == 0
        assert following.next()["event"] == "organization.changed"
        assert following.end(number) == (0, "", "")

    @pytest.mark.thorough
    def test_ends_when_output_is_closed(self, follow):
        following = follow("--limit", "1")
        following.next()
        following.process.stdout.close()
        assert following.process.wait(90) == 1
        assert following.process.stderr.read() == ""

    @pytest.mark.storages("sqlite")
    def test_database_outage_is_reported_once_and_waited_for(self, make_world: WorldFactory, monkeypatch, capsys):
        identity = make_world().identity
        calls = []
        reading = identity.backend.read_session

        def sometimes():
            calls.append(1)
            if len(calls) in (2, 3):
                raise StorageUnavailable("The database does not answer.")
            return reading()

        def wait():
            if len(calls) > 4:
                raise KeyboardInterrupt

        monkeypatch.setattr(identity.backend, "read_session", sometimes)
        monkeypatch.setattr(audit, "_wait_or_detect_closed_pipe", wait)
        audit._follow_until_stopped(identity, UNFILTERED, 0)
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert "The database does not answer. Trying again" in captured.err
        assert len({line["sequence"] for line in lines(captured.out)}) == len(lines(captured.out)) > 0

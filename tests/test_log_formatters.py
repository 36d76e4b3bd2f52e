"""How log records are written."""

import json
import logging

from identity.log_formatters import JsonFormatter, PlainFormatter, log_context


def make_log_record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    record = logging.LogRecord("some.logger", logging.WARNING, __file__, 1, message, arguments, None)
    record.__dict__.update(extra)
    return record


class TestJsonLines:
    def test_json_line_has_the_record(self):
        line = json.loads(JsonFormatter().format(make_log_record("hello %s", "you", created=0.25)))
        assert line == {
            "time": "1970-01-01T00:00:00.250+00:00",
            "level": "WARNING",
            "logger": "some.logger",
            "message": "hello you",
        }

    def test_json_line_has_the_request_context(self):
        before = log_context.set(lambda: {"request_id": "42", "trace_id": "43"})
        line = json.loads(JsonFormatter().format(make_log_record("hello")))
        log_context.reset(before)
        assert (line["request_id"], line["trace_id"]) == ("42", "43")
        assert "request_id" not in json.loads(JsonFormatter().format(make_log_record("hello")))

    def test_json_line_has_the_exception_text(self):
        try:
            raise ValueError("wrong")
        except ValueError as problem:
            record = make_log_record("failed", exc_info=(ValueError, problem, problem.__traceback__))
        line = JsonFormatter().format(record)
        assert "\n" not in line
        assert json.loads(line)["exception"].endswith("ValueError: wrong")

    def test_json_line_is_printable_ascii(self):
        text = "".join(map(chr, range(0x250))) + "\u2028\u2029\ud800"
        line = JsonFormatter().format(make_log_record("%s", text))
        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line)["message"] == text


class TestPlainLines:
    def test_plain_line_escapes_control_characters(self):
        lines = PlainFormatter("%(levelname)s %(message)s")
        assert lines.format(make_log_record("a\nb\x1b[31m\x7f\x85")) == r"WARNING a\nb\x1b[31m\x7f\x85"

    def test_plain_line_keeps_text(self):
        assert PlainFormatter("%(message)s").format(make_log_record("Ärger é 漢")) == "Ärger é 漢"

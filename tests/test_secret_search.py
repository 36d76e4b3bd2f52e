"""The search for secrets in what is logged finds them."""

import logging

import pytest

from tests.secret_search import Search


def line(message: str, *arguments: object, failed: BaseException | None = None) -> logging.LogRecord:
    told = None if failed is None else (type(failed), failed, failed.__traceback__)
    return logging.LogRecord("some.logger", logging.DEBUG, __file__, 1, message, arguments, told)


@pytest.mark.parametrize(
    "record",
    [
        line("got %s", "Zq8-a-secret-token"),
        line("got %r", {"code": b"Zq8-a-secret-token"}),
        line("failed", failed=ValueError("Zq8-a-secret-token")),
        line("code %s", "123456"),
        line("-----BEGIN PRIVATE KEY-----"),
    ],
)
def test_a_line_with_a_secret_is_found_once(record: logging.LogRecord) -> None:
    search = Search()
    search.note("Zq8-a-secret-token")
    search.note_sealed(b'{"code": "123456", "to": "ada@example.com"}')
    search.hear(line("nothing of it"))
    search.hear(record)
    assert len(search.found()) == 1
    assert search.found() == []


def test_words_and_parts_of_numbers_are_no_secrets() -> None:
    search = Search()
    for one in ("short", "password", "123456", None):
        search.note(one)
    for text in ("short password", "at 1234567 ms", "in a123456b"):
        search.hear(line(text))
    assert search.found() == []

"""Operators may enable any log: the statement log contains neither parameters nor results."""

import logging

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from identity.plugins.sql.log_redaction import create_redacted_engine

PARAMETER, STORED = "given-to-a-statement", "kept-in-a-row"


def test_sqlalchemy_log_contains_only_statements(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sqlalchemy.engine")
    with create_redacted_engine(make_url("sqlite://")).connect() as connection:
        rows = connection.execute(text("SELECT 'kept-in-' || 'a-row', :value"), {"value": PARAMETER}).all()
        with pytest.raises(DBAPIError) as failed:
            connection.execute(text("SELECT abs(-9223372036854775807 - 1), :value"), {"value": PARAMETER}).all()
    assert rows == [(STORED, PARAMETER)]
    assert "SELECT 'kept-in-'" in caplog.text
    for message in (caplog.text, str(failed.value)):
        assert PARAMETER not in message
        assert STORED not in message

"""An operator may turn on any log: that of statements tells no value that is given to one, and none that comes back."""

import logging

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from identity.plugins.sql.log_redaction import create_redacted_engine

GIVEN, KEPT = "given-to-a-statement", "kept-in-a-row"


def test_the_log_of_sqlalchemy_holds_statements_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sqlalchemy.engine")
    with create_redacted_engine(make_url("sqlite://")).connect() as connection:
        rows = connection.execute(text("SELECT 'kept-in-' || 'a-row', :value"), {"value": GIVEN}).all()
        with pytest.raises(DBAPIError) as failed:
            connection.execute(text("SELECT abs(-9223372036854775807 - 1), :value"), {"value": GIVEN}).all()
    assert rows == [(KEPT, GIVEN)]
    assert "SELECT 'kept-in-'" in caplog.text
    for told in (caplog.text, str(failed.value)):
        assert GIVEN not in told
        assert KEPT not in told

"""Expiration of keys and personal access tokens: a time, or never."""

from datetime import UTC, datetime

#: How "never" is stored.
NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

#: How "never" is written in requests and responses.
NEVER_TEXT = "never"

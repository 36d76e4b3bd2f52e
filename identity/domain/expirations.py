"""When a key or a personal access token ends: at a moment, or never."""

from datetime import UTC, datetime

#: How "never" is kept: no moment comes after it.
NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

#: How it is said, by whoever wants it and to whoever asks.
NEVER_TEXT = "never"

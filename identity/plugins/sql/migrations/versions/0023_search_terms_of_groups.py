"""Groups are found by the starts of words of their names."""

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
oldest = "0006"

_BATCH = 1000
_TYPES = {
    "postgresql": ('TEXT COLLATE "C"', 'TEXT COLLATE "C"'),
    "sqlite": ("TEXT", "TEXT"),
    "mariadb": ("VARCHAR(64)", "VARBINARY(240)"),
}
_OPTIONS = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"
_INDEXES = (("term", "group_id"), ("organization_id", "term", "group_id"))

# --- words of what is there --------------------------------------------------------------------------------------

_PUNCTUATION = re.compile(r"[\W_]+")
_PAGE = "SELECT id, search_text, organization_id FROM groups WHERE id > :after ORDER BY 1 LIMIT :limit"
# Words that the program has written meanwhile stay; a row that is gone meanwhile gets none.
_ADD = """
    INSERT INTO group_search_terms (group_id, term, organization_id) SELECT :group_id, :term, :organization_id
    FROM groups WHERE id = :group_id AND NOT EXISTS
    (SELECT 1 FROM group_search_terms known WHERE known.group_id = :group_id AND known.term = :term)
"""


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for token in text.split():
        terms += [token.rstrip("@"), *_PUNCTUATION.split(token.partition("@")[0])]
    known = sorted({term[:60] for term in terms if term})
    pairs = zip(known, [*known[1:], ""], strict=True)
    longest = [term for term, following in pairs if not following.startswith(term)]
    return longest[:30]


def _fill(connection: Any) -> None:
    after = ""
    while True:
        rows = connection.execute(sa.text(_PAGE), {"after": after, "limit": _BATCH}).all()
        terms = [
            {"group_id": row[0], "term": term, "organization_id": row[2]}
            for row in rows
            for term in _terms(row[1].decode() if isinstance(row[1], bytes) else row[1])
        ]
        if terms:
            connection.execute(sa.text(_ADD), terms)
        if len(rows) < _BATCH:
            break
        after = rows[-1][0]


def upgrade() -> None:
    """Programs before write no words: groups that they add or rename are found by the old name until the next
    change."""
    context = op.get_context()
    text, term = _TYPES[context.dialect.name]
    op.execute(
        f"CREATE TABLE IF NOT EXISTS group_search_terms (group_id {text} NOT NULL, term {term} NOT NULL,"
        f" organization_id {text} NOT NULL, CONSTRAINT pk_group_search_terms PRIMARY KEY (group_id, term),"
        " CONSTRAINT fk_group_search_terms_group_id FOREIGN KEY (group_id) REFERENCES groups (id) ON DELETE CASCADE)"
        f" {_OPTIONS if context.dialect.name == 'mariadb' else ''}"
    )
    for names in _INDEXES:
        name = f"ix_group_search_terms_{'_'.join(names)}"
        op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON group_search_terms ({', '.join(names)})")
    if context.as_sql:
        op.execute("INSERT INTO group_search_terms … -- the words of each search_text, in batches")
    elif context.opts["transaction_per_migration"]:
        with context.autocommit_block():
            _fill(op.get_bind())
    else:
        _fill(op.get_bind())

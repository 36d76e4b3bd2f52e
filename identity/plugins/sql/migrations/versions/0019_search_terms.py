"""Users, applications, projects and organizations are found by the starts of words of their names."""

import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
oldest = "0006"

_BATCH = 1000

#: Owner, other columns, what leads in each index before the term.
_TABLES: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...] = (
    ("organization", (), ((),)),
    ("project", ("organization_id",), ((), ("organization_id",))),
    ("application", ("project_id", "organization_id"), ((), ("organization_id",), ("project_id",))),
    ("user", ("organization_id", "kind"), (("kind",), ("organization_id", "kind"))),
)
_TYPES = {
    "postgresql": ('TEXT COLLATE "C"', 'TEXT COLLATE "C"'),
    "sqlite": ("TEXT", "TEXT"),
    "mariadb": ("VARCHAR(64)", "VARBINARY(240)"),
}
_OPTIONS = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"


def _statements(dialect: str) -> Iterator[str]:
    text, term = _TYPES[dialect]
    for owner, others, indexes in _TABLES:
        table, key = f"{owner}_search_terms", f"{owner}_id"
        columns = "".join(f", {name} {text} NOT NULL" for name in others)
        yield (
            f"CREATE TABLE IF NOT EXISTS {table} ({key} {text} NOT NULL, term {term} NOT NULL{columns},"
            f" CONSTRAINT pk_{table} PRIMARY KEY ({key}, term), CONSTRAINT fk_{table}_{key} FOREIGN KEY ({key})"
            f" REFERENCES {owner}s (id) ON DELETE CASCADE) {_OPTIONS if dialect == 'mariadb' else ''}"
        )
        for leading in indexes:
            names = (*leading, "term", key)
            yield f"CREATE INDEX IF NOT EXISTS ix_{table}_{'_'.join(names)} ON {table} ({', '.join(names)})"


# --- words of what is there --------------------------------------------------------------------------------------

_PUNCTUATION = re.compile(r"[\W_]+")
_PAGES = {
    "organization": "SELECT id, search_text FROM organizations WHERE id > :after",
    "project": "SELECT id, search_text, organization_id FROM projects WHERE id > :after",
    "application": (
        "SELECT applications.id, applications.search_text, project_id, organization_id FROM applications"
        " JOIN projects ON projects.id = project_id WHERE applications.id > :after"
    ),
    "user": "SELECT id, search_text, organization_id, kind FROM users WHERE id > :after",
}


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for token in text.split():
        terms += [token.rstrip("@"), *_PUNCTUATION.split(token.partition("@")[0])]
    known = sorted({term[:60] for term in terms if term})
    pairs = zip(known, [*known[1:], ""], strict=True)
    longest = [term for term, following in pairs if not following.startswith(term)]
    return longest[:30]


def _fill(connection: Any) -> None:
    for owner, others, _ in _TABLES:
        table, key, after = f"{owner}_search_terms", f"{owner}_id", ""
        page = sa.text(f"{_PAGES[owner]} ORDER BY 1 LIMIT :limit")
        names = (key, "term", *others)
        # Words that the program has written meanwhile stay; a row that is gone meanwhile gets none.
        add = sa.text(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(f':{name}' for name in names)}"  # noqa: S608
            f" FROM {owner}s WHERE id = :{key} AND NOT EXISTS"
            f" (SELECT 1 FROM {table} known WHERE known.{key} = :{key} AND known.term = :term)"
        )
        while True:
            rows = connection.execute(page, {"after": after, "limit": _BATCH}).all()
            terms = [
                dict(zip(names, (row[0], term, *row[2:]), strict=True))
                for row in rows
                for term in _terms(row[1].decode() if isinstance(row[1], bytes) else row[1])
            ]
            if terms:
                connection.execute(add, terms)
            if len(rows) < _BATCH:
                break
            after = rows[-1][0]


def upgrade() -> None:
    """Programs before write no words: what they add or rename is found by its old name until the next change."""
    context = op.get_context()
    for statement in _statements(context.dialect.name):
        op.execute(statement)
    if context.as_sql:
        for owner, *_ in _TABLES:
            op.execute(f"INSERT INTO {owner}_search_terms … -- the words of each search_text, in batches")
    elif context.opts["transaction_per_migration"]:
        with context.autocommit_block():
            _fill(op.get_bind())
    else:
        _fill(op.get_bind())

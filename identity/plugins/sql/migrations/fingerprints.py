"""The tables of each revision, to recognize a database before it is changed.

A database names its revision, but revisions were rewritten under the same names before their hashes were recorded.
So its tables are compared with what the revision creates: one fact per line for columns, keys, unique constraints,
indexes, references, checks and triggers. ``fingerprints/KIND.txt`` holds them as the changes of each revision;
``python -m identity.plugins.sql.migrations.hashes`` writes it, and a test compares it with what the revisions
create.

Facts leave out what may differ: names of indexes, collations, sizes, and a server version's spelling of a default.
Other tables, additional indexes, additional columns that need no value, and partitions are ignored.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from identity.plugins.sql.migrations import REVISIONS, mariadb
from identity.storage.errors import StorageUnavailable

FOLDER = Path(__file__).parent / "fingerprints"

#: Each returns rows of: table, kind of fact, its name or number, position in it, column, further attributes. ``column``
#: has the type and, if applicable, "null", "default" or "generated".
_QUERIES = {
    "sqlite": (
        """
        SELECT m.name, 'column', x.name, 0, x.name, x.type
            || CASE WHEN x."notnull" OR x.pk THEN '' ELSE ' null' END
            || CASE WHEN x.dflt_value IS NULL THEN '' ELSE ' default' END
            || CASE WHEN x.hidden THEN ' generated' ELSE '' END
        FROM sqlite_master m, pragma_table_xinfo(m.name) x WHERE m.type = 'table'
        """,
        """
        SELECT m.name, 'key', '', x.pk, x.name, ''
        FROM sqlite_master m, pragma_table_xinfo(m.name) x WHERE m.type = 'table' AND x.pk
        """,
        """
        SELECT m.name, CASE WHEN i."unique" THEN 'unique' ELSE 'index' END, i.name, x.seqno, x.name,
            CASE WHEN i.partial THEN ' where' ELSE '' END
        FROM sqlite_master m, pragma_index_list(m.name) i, pragma_index_info(i.name) x
        WHERE m.type = 'table' AND i.origin <> 'pk'
        """,
        """
        SELECT m.name, 'references', x.id, x.seq, x."from", ' ' || x."table" || ' ' || x.on_delete
        FROM sqlite_master m, pragma_foreign_key_list(m.name) x WHERE m.type = 'table'
        """,
        "SELECT tbl_name, 'trigger', name, 0, name, '' FROM sqlite_master WHERE type = 'trigger'",
    ),
    "postgresql": (
        """
        SELECT c.relname, 'column', a.attname, 0, a.attname, format_type(a.atttypid, NULL)
            || CASE WHEN a.attnotnull THEN '' ELSE ' null' END
            || CASE WHEN a.atthasdef OR a.attidentity <> '' THEN ' default' ELSE '' END
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped
            AND c.relnamespace <> 'pg_catalog'::regnamespace
        """,
        """
        SELECT c.relname, CASE WHEN i.indisprimary THEN 'key' WHEN i.indisunique THEN 'unique' ELSE 'index' END,
            i.indexrelid::text, k.place, a.attname, CASE WHEN i.indpred IS NULL THEN '' ELSE ' where' END
        FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND i.indisvalid
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number AND k.number > 0
        WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND c.relnamespace <> 'pg_catalog'::regnamespace
        """,
        """
        SELECT c.relname, 'references', f.oid::text, k.place, a.attname, ' ' || o.relname
            || CASE f.confdeltype WHEN 'c' THEN ' CASCADE' ELSE ' NO ACTION' END
        FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class o ON o.oid = f.confrelid
        CROSS JOIN LATERAL unnest(f.conkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
        WHERE f.contype = 'f' AND pg_table_is_visible(c.oid)
        """,
        """
        SELECT c.relname, 'check', f.conname, 0, f.conname, ''
        FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid
        WHERE f.contype = 'c' AND pg_table_is_visible(c.oid)
        """,
        """
        SELECT c.relname, 'trigger', t.tgname, 0, t.tgname, ''
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)
        """,
    ),
    "mariadb": (
        """
        SELECT table_name, 'column', column_name, 0, column_name, CONCAT(column_type,
            IF(is_nullable = 'YES', ' null', ''),
            IF(extra LIKE '%GENERATED%', ' generated',
                IF(extra LIKE '%auto_increment%' OR COALESCE(column_default, 'NULL') <> 'NULL', ' default', '')))
        FROM information_schema.columns WHERE table_schema = DATABASE()
        """,
        """
        SELECT table_name, IF(index_name = 'PRIMARY', 'key', IF(non_unique, 'index', 'unique')), index_name,
            seq_in_index, column_name, ''
        FROM information_schema.statistics WHERE table_schema = DATABASE()
        """,
        """
        SELECT k.table_name, 'references', k.constraint_name, k.ordinal_position, k.column_name,
            CONCAT(' ', k.referenced_table_name, ' ', r.delete_rule)
        FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r
            ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name
            AND r.table_name = k.table_name
        WHERE k.table_schema = DATABASE() AND k.referenced_table_name IS NOT NULL
        """,
        """
        SELECT table_name, 'check', constraint_name, 0, constraint_name, ''
        FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()
        """,
        """
        SELECT event_object_table, 'trigger', trigger_name, 0, trigger_name, ''
        FROM information_schema.triggers WHERE trigger_schema = DATABASE()
        """,
    ),
}
#: Part of a server's type name, and the type it means. The first match counts.
_TYPES = (
    *(("tinyint(1)", "boolean"), ("bool", "boolean"), ("int", "integer")),
    *(("blob", "bytes"), ("bytea", "bytes"), ("binary", "bytes"), ("text", "text"), ("char", "text")),
)

#: Maximum number of differences reported.
_MAX_LISTED_DIFFERENCES = 5
_UNKNOWN_SCHEMA = (
    "The database was not made by a revision of this program, or its tables were changed since. {why} Nothing was done"
    " to it. If it was made by an early development version, go on with that one, or export the organizations with it"
    " and import them into a new database (`identity export`, `identity import`); if tables were changed by hand,"
    ' change them back. See "A database that no revision made" in the documentation of backup and upgrade.'
)
_OCCUPIED_SCHEMA = (
    "The database names no revision of this program, and has tables of these names: {names}. They belong to something"
    " else. Let identity.plugin.sql.url name a database, or a schema of one, that is empty."
)


def read_fingerprint(connection: Connection) -> set[str]:
    """The facts of all tables of the schema, each as "TABLE KIND WORDS"."""
    parts: dict[tuple[str, str, str], list[tuple[int, str, str]]] = defaultdict(list)
    for query in _QUERIES[connection.dialect.name]:
        for table, kind, name, place, column, words in connection.execute(text(query)):
            parts[table, kind, str(name)].append((place, column or "(expression)", words or ""))
    return {_fact_line(table, kind, sorted(members)) for (table, kind, _), members in parts.items()}


def _fact_line(table: str, kind: str, members: list[tuple[int, str, str]]) -> str:
    _, name, words = members[0]
    if kind == "column":
        stored_as, *rest = words.lower().split(" null", 1)[0], words
        is_ = next((ours for theirs, ours in _TYPES if theirs in stored_as), stored_as)
        flags = [flag for flag in ("null", "default", "generated") if f" {flag}" in rest[0]]
        return " ".join([table, kind, name, is_, *flags])
    if kind in ("check", "trigger"):
        return f"{table} {kind} {name}"
    return f"{table} {kind} ({', '.join(column for _, column, _ in members)}){words}"


@cache
def recorded_fingerprints(kind: str) -> Mapping[str, frozenset[str]]:
    """The recorded facts of each revision for this kind of database."""
    facts: set[str] = set()
    revisions: dict[str, frozenset[str]] = {}
    revision = ""
    for line in (FOLDER / f"{kind}.txt").read_text().splitlines():
        sign, _, fact = line.partition(" ")
        if sign == "+":
            facts.add(fact)
        elif sign == "-":
            facts.remove(fact)
        else:
            revision = sign
        revisions[revision] = frozenset(facts)
    return revisions


def serialize_fingerprints(revisions: Mapping[str, Collection[str]]) -> str:
    """Inverse of ``recorded_fingerprints``, as text."""
    lines, before = [], set[str]()
    for revision, facts in sorted(revisions.items()):
        lines.append(revision)
        lines += [f"- {fact}" for fact in sorted(before - set(facts))]
        lines += [f"+ {fact}" for fact in sorted(set(facts) - before)]
        before = set(facts)
    return "".join(f"{line}\n" for line in lines)


def verify_schema(connection: Connection, stored: str | None) -> None:
    """Raise StorageUnavailable, with advice, unless the tables are those of the stored revision or of an interrupted
    migration from it. Schemas of newer versions are not checked. MariaDB, and PostgreSQL while it creates an index,
    keep the changes of an interrupted migration: what the next revision changes may be in either state."""
    of = recorded_fingerprints(connection.dialect.name)
    if stored is None:
        _require_empty_schema(connection, of)
    elif stored not in REVISIONS:
        # It may be newer than this version or older than any: only later revisions record which versions can use them.
        if "alembic_version column oldest text null" not in read_fingerprint(connection):
            raise StorageUnavailable(
                _UNKNOWN_SCHEMA.format(why=f"It names a revision {stored}, and does not say who can use it.")
            )
    elif stored in of:
        kind = connection.dialect.name
        misfits = _find_differences(
            read_fingerprint(connection), stored, of, may_be_half=kind != "sqlite", may_be_hidden=kind == "mariadb"
        )
        _raise_differences(stored, misfits)


def _require_empty_schema(connection: Connection, of: Mapping[str, frozenset[str]]) -> None:
    ours = {_table(fact) for facts in of.values() for fact in facts} - {"alembic_version"}
    there = [fact for fact in read_fingerprint(connection) if _table(fact) in ours]
    if not there:
        return
    names = {_table(fact) for fact in there}
    if connection.dialect.name == "mariadb":
        # The initial tables have no common transaction: each exists or not.
        wanted = {fact for fact in of[mariadb.BEGINS_WITH] if _table(fact) in names and " trigger " not in fact}
        names = {_table(fact) for fact in wanted.difference(there)} | (names - {_table(fact) for fact in wanted})
    if names:
        raise StorageUnavailable(_OCCUPIED_SCHEMA.format(names=", ".join(sorted(names))))


def _find_differences(
    there: set[str], stored: str, of: Mapping[str, frozenset[str]], *, may_be_half: bool, may_be_hidden: bool
) -> Iterator[str]:
    """Facts that are missing, or that exist and would be in the way."""
    now = of[stored]
    then = of.get(next((revision for revision in REVISIONS if revision > stored), stored), now) if may_be_half else now
    # A MariaDB account may lack the right to see triggers or references.
    seen = {_kind(fact) for fact in there}
    yield from (
        f"{fact} is missing" for fact in sorted((now & then) - there) if _kind(fact) in seen or not may_be_hidden
    )
    ours = {_table(fact) for fact in now | then}
    every = frozenset().union(*of.values())
    further = (fact for fact in sorted(there - now - then) if _table(fact) in ours)
    yield from (f"{fact} should not be there" for fact in further if _is_obstacle(fact, every))
    later = {_table(fact) for fact in every} - ours
    yield from (f"the table {name} should not be there" for name in sorted(later & {_table(fact) for fact in there}))


def _is_obstacle(fact: str, every: Collection[str]) -> bool:
    """True for what can refuse our rows, and for triggers of another revision."""
    _, kind, *words = fact.split(" ")
    if kind == "column":
        return not {"null", "default", "generated"}.intersection(words[2:])
    return kind in ("unique", "references") or (kind == "trigger" and fact in every)


def _raise_differences(stored: str, misfits: Iterable[str]) -> None:
    told = list(misfits)
    if told:
        more = f"; and {len(told) - _MAX_LISTED_DIFFERENCES} more" if len(told) > _MAX_LISTED_DIFFERENCES else ""
        why = (
            f"It names revision {stored}, but does not look like it: {'; '.join(told[:_MAX_LISTED_DIFFERENCES])}{more}."
        )
        raise StorageUnavailable(_UNKNOWN_SCHEMA.format(why=why))


def _table(fact: str) -> str:
    return fact.partition(" ")[0]


def _kind(fact: str) -> str:
    return fact.split(" ", 2)[1]

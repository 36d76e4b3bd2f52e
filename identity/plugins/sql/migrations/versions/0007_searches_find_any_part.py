"""Searches find any part."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from identity.domain.search import search_text, search_text_of_user

revision = "0007"
down_revision = "0006"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_BATCH = 1000


def upgrade() -> None:
    """What searches look through, filled in for what is there; and indexes for lists in every order.

    What the version before adds meanwhile is found by searches once it is changed.
    """
    _add("users", ("user_name", "display_name", "profile"), _of_user)
    _add("organizations", ("name", "primary_domain"), search_text)
    _add("projects", ("name",), search_text)
    _add("applications", ("name",), search_text)
    for name in ("list", "display", "email", "list_of_all", "display_of_all", "email_of_all"):
        op.drop_index(f"ix_users_{name}", "users")
    for name, order in (
        ("list", "name_key"),
        ("display", "display_key"),
        ("email", "email_key"),
        ("created", "created_at"),
        ("last_sign_in", sa.text("coalesce(last_sign_in_at, 0)")),
        ("search", "search_text"),
    ):
        op.create_index(f"ix_users_{name}", "users", ["organization_id", order, "id", "kind", "active"])
    op.create_index("ix_users_list_of_all", "users", ["name_key", "id", "kind", "active"])
    op.create_index("ix_organizations_created_at_id", "organizations", ["created_at", "id"])
    op.create_index("ix_organizations_search_text_id_active", "organizations", ["search_text", "id", "active"])


def _add(name: str, columns: tuple[str, ...], text_of: Callable[..., str]) -> None:
    op.add_column(name, sa.Column("search_text", STRING, nullable=False, server_default=""))
    if op.get_context().as_sql:
        return
    table = sa.table(name, sa.column("id"), sa.column("search_text"), *map(sa.column, columns))
    fill = table.update().where(table.c.id == sa.bindparam("row")).values(search_text=sa.bindparam("text"))
    for rows in _batches(table, columns):
        op.get_bind().execute(fill, [{"row": row[0], "text": text_of(*row[1:])} for row in rows])


def _batches(table: Any, columns: tuple[str, ...]) -> Iterator[Any]:
    statement = sa.select(table.c.id, *(table.c[column] for column in columns)).order_by(table.c.id).limit(_BATCH)
    last = ""
    while rows := op.get_bind().execute(statement.where(table.c.id > last)).all():
        yield rows
        last = rows[-1][0]


def _of_user(user_name: str, display_name: str, profile: str | None) -> str:
    known = json.loads(profile or "{}")
    return search_text_of_user(
        user_name, display_name, *(known.get(each, "") for each in ("given_name", "family_name", "email"))
    )

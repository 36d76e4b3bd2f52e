"""Projects say who may register applications without a manager, and within which limits."""

from alembic import op

revision = "0047"
down_revision = "0046"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}
_COLUMNS = {
    "client_registration": "'off'",
    "registration_redirect_hosts": "'[]'",
    "registration_grant_types": "'[]'",
}
_NUMBERS = {"registration_token_minutes": 60, "registration_limit": 100, "registration_unused_days": 30}


def upgrade() -> None:
    """Programs before let nobody register applications."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for name, usual in _COLUMNS.items():
        default = f"({usual})" if dialect == "mariadb" else usual
        op.execute(f"ALTER TABLE projects ADD COLUMN {again}{name} {_TEXT[dialect]} NOT NULL DEFAULT {default}")
    for name, number in _NUMBERS.items():
        op.execute(f"ALTER TABLE projects ADD COLUMN {again}{name} INTEGER NOT NULL DEFAULT {number}")

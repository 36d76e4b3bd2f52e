"""A plugin's ORM session, joined by zope.sqlalchemy, commits or rolls back with the backend's transaction."""

import sqlite3
from collections.abc import Iterator

import pytest
import zope.sqlalchemy
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from identity.plugins.sql import SqlBackend
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager
from identity.storage.errors import StorageUnavailable


class OrmBase(DeclarativeBase):
    pass


class OrmBadge(OrmBase):
    __tablename__ = "badges"

    organization_id: Mapped[str] = mapped_column(primary_key=True)


@pytest.fixture
def session(transactions: ContractTransactionManager) -> Iterator[Session]:
    engine = create_engine("sqlite://")
    OrmBase.metadata.create_all(engine)
    with Session(engine) as session:
        zope.sqlalchemy.register(session, transaction_manager=transactions)
        yield session
    engine.dispose()


def _write(backend: SqlBackend, session: Session, transactions: ContractTransactionManager) -> str:
    organization = make.organization()
    transactions.begin()
    session.add(OrmBadge(organization_id=organization.id))
    session.flush()
    backend.join_transaction(transactions).organizations.add(organization)
    return organization.id


def _badges(session: Session, transactions: ContractTransactionManager) -> list[str]:
    with transactions:
        return list(session.scalars(select(OrmBadge.organization_id)))


def test_orm_and_storage_writes_commit_together(
    backend: SqlBackend, session: Session, transactions: ContractTransactionManager
) -> None:
    written = _write(backend, session, transactions)
    transactions.commit()
    with backend.read_session() as storage:
        assert storage.organizations.find(written) is not None
    assert _badges(session, transactions) == [written]


def test_orm_and_storage_writes_roll_back_together(
    backend: SqlBackend, session: Session, transactions: ContractTransactionManager
) -> None:
    written = _write(backend, session, transactions)
    transactions.abort()
    with backend.read_session() as storage:
        assert storage.organizations.find(written) is None
    assert _badges(session, transactions) == []


def test_session_is_undone_where_the_backend_cannot_commit(
    backend: SqlBackend, session: Session, transactions: ContractTransactionManager
) -> None:
    """The session votes after the backend, so it cannot commit alone."""
    _write(backend, session, transactions)
    driver = backend.join_transaction(transactions).connection.driver  # type: ignore[attr-defined]
    # As after a full disk or a lost connection.
    driver.rollback() if isinstance(driver, sqlite3.Connection) else driver.close()
    with pytest.raises(StorageUnavailable):
        transactions.commit()
    transactions.abort()
    assert _badges(session, transactions) == []

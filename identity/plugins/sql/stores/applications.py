"""Applications and their client secrets in SQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal, select

from identity.domain.applications import Application, ApplicationType, Client, ClientSecret, ConsentRule
from identity.domain.names import name_key
from identity.domain.users import TokenFormat
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import (
    Prepared,
    Record,
    Values,
    find_by_id,
    find_many_by_id,
    listed,
    moment,
    moment_or_none,
    move_forward,
    readable,
    row_of,
    seconds,
    seconds_or_none,
    set_of,
    sorted_list,
    span_or_none,
    tuple_of,
    versioned,
)
from identity.plugins.sql.stores import organizations, projects
from identity.plugins.sql.tables import application_origins as origins
from identity.plugins.sql.tables import applications as table
from identity.plugins.sql.tables import client_secrets
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import projects as projects_table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.applications import ApplicationStore

COLUMNS = (
    table.c.id,
    table.c.project_id,
    table.c.name,
    table.c.type,
    table.c.created_at,
    table.c.changed_at,
    table.c.authentication_method,
    table.c.response_types,
    table.c.grant_types,
    table.c.redirect_uris,
    table.c.post_logout_redirect_uris,
    table.c.access_token_type,
    table.c.access_token_lifetime,
    table.c.id_token_lifetime,
    table.c.id_token_userinfo_assertion,
    table.c.assert_roles_in_access_token,
    table.c.assert_roles_in_id_token,
    table.c.consent,
    table.c.may_manage,
    table.c.development,
    table.c.active,
    table.c.version,
)
_SECRET_COLUMNS = (
    client_secrets.c.id,
    client_secrets.c.digest,
    client_secrets.c.created_at,
    client_secrets.c.last_used_at,
)
_END = len(COLUMNS)
_PROJECT_END = _END + len(projects.COLUMNS)
_ORGANIZATION_END = _PROJECT_END + len(organizations.COLUMNS)
_OLDEST_SECRET_FIRST = (client_secrets.c.created_at, client_secrets.c.id)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
#: Tokens may be issued meanwhile: their reference to the row does not wait for this.
_LOCK = select(table.c.id).where(table.c.id == bindparam("key")).with_for_update(key_share=True)
_FIND_MANY = find_many_by_id(table, COLUMNS)
#: One row per secret, or one without.
_FIND_CLIENT = Prepared(
    select(*COLUMNS, *projects.COLUMNS, *organizations.COLUMNS, *_SECRET_COLUMNS)
    .select_from(table)
    .join(projects_table, projects_table.c.id == table.c.project_id)
    .join(organizations_table, organizations_table.c.id == projects_table.c.organization_id)
    .outerjoin(client_secrets, client_secrets.c.application_id == table.c.id)
    .where(table.c.id == bindparam("key"))
    .order_by(*_OLDEST_SECRET_FIRST)
)
_IS_ORIGIN = (
    select(literal(1))
    .select_from(origins)
    .join(table, table.c.id == origins.c.application_id)
    .where(origins.c.origin == bindparam("origin"), table.c.active)
    .limit(1)
)
_ADD_ORIGINS = insert(origins)
_REMOVE_ORIGINS = delete(origins).where(origins.c.application_id == bindparam("key"))
_UPDATE = versioned(table)
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = select(*COLUMNS).where(table.c.project_id == bindparam("project"))
_ADD_SECRET = insert(client_secrets)
_REMOVE_SECRET = delete(client_secrets).where(
    client_secrets.c.application_id == bindparam("application"), client_secrets.c.id == bindparam("secret")
)
_NUMBER_OF_SECRETS = select(func.count()).where(client_secrets.c.application_id == table.c.id).scalar_subquery()
_SECRET_COUNTS = find_many_by_id(table, (table.c.id, _NUMBER_OF_SECRETS))
_TOUCH_SECRET = move_forward(client_secrets.c.last_used_at)
_SECRETS = (
    select(*_SECRET_COLUMNS)
    .where(client_secrets.c.application_id == bindparam("application"))
    .order_by(*_OLDEST_SECRET_FIRST)
)
_ORDERS = {
    "name": table.c.name_key,
    "created_at": table.c.created_at,
}


class SqlApplicationStore(PagedStore, ApplicationStore):
    """One row each, and one per origin; these, secrets, families, codes and tokens go by foreign keys."""

    def add(self, application: Application) -> None:
        """Store a new application."""
        with self._guarded():
            self._change(_ADD, _values(application))
            self._add_origins(application)

    def find(self, application_id: str) -> Application | None:
        """The application with this client id."""
        row = self._one(_FIND, {"key": application_id})
        return None if row is None else application_of(*row)

    def find_many(self, ids: Collection[str]) -> Mapping[str, Application]:
        """The applications with these ids."""
        return {each.id: each for each in self._many(_FIND_MANY, ids, application_of)}

    def find_client(self, client_id: str) -> Client | None:
        """The application with secrets, project and organization, in one query."""
        rows = self._all(_FIND_CLIENT, {"key": client_id})
        return client_of(rows[0], _secrets_of(rows)) if rows else None

    def is_origin(self, origin: str) -> bool:
        """True if an active application has a redirect URI of this web origin."""
        return self._one(_IS_ORIGIN, {"origin": origin}) is not None

    def update(self, application: Application) -> None:
        """Replace the stored value."""
        self._replace(_UPDATE, _values(application))
        self._change(_REMOVE_ORIGINS, {"key": application.id})
        self._add_origins(application)

    def remove(self, application_id: str) -> None:
        """Delete it with its secrets, codes and tokens."""
        self._touch_one(_REMOVE, {"key": application_id})

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[Application]:
        """The project's applications by name."""
        return self._page(_PAGE.params(project=project_id), table, request, application_of, _ORDERS)

    def add_secret(self, application_id: str, secret: ClientSecret) -> None:
        """Store a secret beside the others."""
        values = {
            "id": secret.id,
            "application_id": application_id,
            "digest": secret.digest,
            "created_at": seconds(secret.created_at),
            "last_used_at": seconds_or_none(secret.last_used_at),
        }
        self._try(_ADD_SECRET, values)

    def remove_secret(self, application_id: str, secret_id: str) -> None:
        """Delete one secret."""
        self._touch_one(_REMOVE_SECRET, {"application": application_id, "secret": secret_id})

    def secrets(self, application_id: str) -> tuple[ClientSecret, ...]:
        """The application's secrets, oldest first."""
        return _secrets_of(self._all(_SECRETS, {"application": application_id}))

    def lock_secrets(self, application_id: str) -> tuple[ClientSecret, ...]:
        """The same, locked by their application's row."""
        self._one(_LOCK, {"key": application_id})
        return self.secrets(application_id)

    def secret_counts(self, ids: Collection[str]) -> Mapping[str, int]:
        """How many secrets each of these applications has."""
        return dict(self._many(_SECRET_COUNTS, ids, lambda id_, secrets: (id_, secrets)))

    def touch_secrets(self, uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of the secrets with these ids forward."""
        self._move_forward(_TOUCH_SECRET, uses)

    def _add_origins(self, application: Application) -> None:
        for origin in sorted(application.origins):
            self._change(_ADD_ORIGINS, {"application_id": application.id, "origin": origin})


def client_of(row: Sequence[Any], secrets: tuple[ClientSecret, ...]) -> Client:
    """The client in a row that starts with the columns of application, project and organization."""
    return Client(
        application_of(*row[:_END]),
        secrets,
        projects.project_of(*row[_END:_PROJECT_END]),
        organizations.organization_of(*row[_PROJECT_END:_ORGANIZATION_END]),
    )


@row_of(*COLUMNS)
def application_of(
    id_: str,
    project_id: str,
    name: str,
    type_: str,
    created_at: int,
    changed_at: int,
    authentication_method: str,
    response_types: str,
    grant_types: str,
    redirect_uris: str,
    post_logout_redirect_uris: str,
    access_token_type: str,
    access_token_lifetime: int | None,
    id_token_lifetime: int | None,
    id_token_userinfo_assertion: bool,
    assert_roles_in_access_token: bool,
    assert_roles_in_id_token: bool,
    consent: str,
    may_manage: bool,
    development: bool,
    active: bool,
    version: int,
) -> Application:
    """The application in a row of ``COLUMNS``."""
    return Application(
        id=id_,
        project_id=project_id,
        name=name,
        type=ApplicationType(type_),
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        authentication_method=authentication_method,
        response_types=set_of(response_types),
        grant_types=set_of(grant_types),
        redirect_uris=tuple_of(redirect_uris),
        post_logout_redirect_uris=tuple_of(post_logout_redirect_uris),
        access_token_type=TokenFormat(access_token_type),
        access_token_lifetime=span_or_none(access_token_lifetime),
        id_token_lifetime=span_or_none(id_token_lifetime),
        id_token_userinfo_assertion=id_token_userinfo_assertion,
        assert_roles_in_access_token=assert_roles_in_access_token,
        assert_roles_in_id_token=assert_roles_in_id_token,
        consent=ConsentRule(consent),
        may_manage=may_manage,
        development=development,
        active=active,
        version=version,
    )


def _secrets_of(rows: Sequence[Record]) -> tuple[ClientSecret, ...]:
    """The readable secrets in the last columns of the rows: one that is damaged opens nothing."""
    secrets = (row[-len(_SECRET_COLUMNS) :] for row in rows)
    return tuple(readable(_secret_of, (secret for secret in secrets if secret[0] is not None)))


@row_of(*_SECRET_COLUMNS)
def _secret_of(id_: str, digest: bytes, created_at: int, last_used_at: int | None) -> ClientSecret:
    return ClientSecret(id=id_, digest=digest, created_at=moment(created_at), last_used_at=moment_or_none(last_used_at))


def _values(application: Application) -> Values:
    return {
        "id": application.id,
        "project_id": application.project_id,
        "name": application.name,
        "name_key": name_key(application.name),
        "search_text": application.search_text,
        "type": application.type.value,
        "created_at": seconds(application.created_at),
        "changed_at": seconds(application.changed_at),
        "authentication_method": application.authentication_method,
        "response_types": sorted_list(application.response_types),
        "grant_types": sorted_list(application.grant_types),
        "redirect_uris": listed(application.redirect_uris),
        "post_logout_redirect_uris": listed(application.post_logout_redirect_uris),
        "access_token_type": application.access_token_type.value,
        "access_token_lifetime": _stored_span(application.access_token_lifetime),
        "id_token_lifetime": _stored_span(application.id_token_lifetime),
        "id_token_userinfo_assertion": application.id_token_userinfo_assertion,
        "assert_roles_in_access_token": application.assert_roles_in_access_token,
        "assert_roles_in_id_token": application.assert_roles_in_id_token,
        "consent": application.consent.value,
        "may_manage": application.may_manage,
        "development": application.development,
        "active": application.active,
        "version": application.version,
    }


def _stored_span(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())

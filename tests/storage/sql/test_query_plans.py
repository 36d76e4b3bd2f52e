"""Promised single statements are single, and frequent statements and those over many rows use an index."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, PrimaryKeyConstraint, Table, UniqueConstraint, event

from identity.domain.access_revocations import AccessScope
from identity.domain.attempts import AttemptAllowance
from identity.domain.audit import AuditFilter, Result
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.figures import FigureKind
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.search import PrefixQuery
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.service_user_secrets import ServiceUserSecret
from identity.plugins.sql import SqlBackend
from identity.plugins.sql.statements import StatementText
from identity.plugins.sql.tables import metadata
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.harness import add
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.paging import PageCursor, PageRequest, SortOrder
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeKind
from identity.storage.stores.search import SearchedKind, SearchScope
from identity.storage.stores.users import USER_SORT_KEYS, UserKind

ORGANIZATION = make.organization()
PROJECT = make.project(ORGANIZATION)
APPLICATION = make.application(PROJECT)
PERSON = make.human_user(ORGANIZATION)
ROBOT = make.service_user(ORGANIZATION)
KEY = make.service_user_key(ROBOT)
SECRET = make.service_user_secret(ROBOT)
PERSONAL = make.personal_access_token(ROBOT)
FEDERATED = make.federated_credential(ROBOT)
SESSION = make.session(PERSON)
FAMILY = make.token_family(PERSON, APPLICATION)
TOKEN = make.access_token(PERSON, APPLICATION, FAMILY, session_id=SESSION.id)
REFRESH = make.refresh_token(FAMILY, session_id=SESSION.id)
ROTATED = make.refresh_token(FAMILY, rotated_at=NOW)
SUCCESSOR = make.refresh_token(FAMILY, predecessor_id=ROTATED.id)
CODE = make.authorization_code(FAMILY, session_id=SESSION.id)
PENDING = make.pending_authorization(APPLICATION)
RECORD = make.record(PERSON, APPLICATION)
THIS_RECORD = (RECORD.plugin, RECORD.kind, RECORD.key)
MESSAGE = make.outbox_message()
MANAGER = make.manager(PERSON)
LENT = make.project_grant(PROJECT, ORGANIZATION)
GRANT = make.user_grant(PERSON, PROJECT)
WEBHOOK = make.webhook(ORGANIZATION)
DELIVERY = make.webhook_delivery(WEBHOOK)
DEFINITION = make.attribute_definition(ORGANIZATION)
GROUP = make.group(ORGANIZATION)
MEMBER = make.group_member(GROUP, PERSON)
GROUP_GRANT = make.group_grant(GROUP, PROJECT)
GROUP_MANAGER = make.group_manager(GROUP)
PROVIDER = make.upstream_provider(ORGANIZATION)
MAPPING = make.group_mapping(GROUP, PROVIDER)
ATTRIBUTE_MAPPING = make.attribute_mapping(DEFINITION, PROVIDER)
EVENT = make.audit_event()
VALUES = (
    ORGANIZATION, PROJECT, APPLICATION, PERSON, ROBOT, KEY, SECRET, SESSION, FAMILY, TOKEN, REFRESH, ROTATED, SUCCESSOR,
    CODE, PENDING, MESSAGE, MANAGER, LENT, GRANT, PERSONAL, FEDERATED, RECORD,
    WEBHOOK, DELIVERY, DEFINITION, GROUP, MEMBER, GROUP_GRANT, GROUP_MANAGER, PROVIDER, MAPPING, ATTRIBUTE_MAPPING,
)  # fmt: skip
DIGESTS = [SESSION.digest, *(bytes([number]) * 32 for number in range(4))]
LATER = NOW + timedelta(days=100)
SOME_IDS = [item.id for item in (ORGANIZATION, PROJECT, APPLICATION, PERSON, ROBOT, LENT)]
REFUSED_THERE = AuditFilter(organization_id=ORGANIZATION.id, result=Result.REFUSED)
AFTER = PageRequest(limit=10, cursor=PageCursor("b", "0"))
NEWER = PageRequest(limit=10, cursor=PageCursor(str(int(NOW.timestamp())), "0"))

SEARCH_SCOPES = {
    "everywhere": SearchScope(),
    "in organizations": SearchScope(frozenset({ORGANIZATION.id, "b"})),
    "in projects": SearchScope(frozenset(), frozenset({PROJECT.id, "b"})),
}

FIGURES = list(FigureKind)

Call = Callable[[Storage], object]

#: A key of each purged kind whose key is not an id.
KEYS: dict[PurgeKind, Any] = {
    **dict.fromkeys((PurgeKind.ACCESS_TOKENS, PurgeKind.REFRESH_TOKENS, PurgeKind.CODES), b"digest"),
    PurgeKind.RECORDS: ("plugin", "kind", b"key"),
    PurgeKind.AUDIT_EVENTS: 1,
}


def users_page(request: PageRequest) -> Call:
    return lambda storage: storage.users.page(ORGANIZATION.id, UserKind.HUMAN, request)


def purge_candidates(purged: PurgeKind, *legal_holds: str) -> Call:
    return lambda storage: storage.purges.find_candidates(purged, NOW, 1000, legal_holds=legal_holds)


def expired_count(purged: PurgeKind) -> Call:
    return lambda storage: storage.purges.count_expired(purged, NOW, 1000)


def purge_deletion(purged: PurgeKind, *legal_holds: str) -> Call:
    keys = 20 * [KEYS.get(purged, "id")]
    return lambda storage: storage.purges.delete(purged, keys, NOW, legal_holds=legal_holds)


READS: dict[str, Call] = {
    "find_issued": lambda storage: storage.tokens.find_access_token(TOKEN.digest),
    "find_presented": lambda storage: storage.tokens.find_refresh_token(REFRESH.digest),
    "connections": lambda storage: storage.tokens.list_connected_applications(PERSON.id, NOW),
    "family of client": lambda storage: storage.tokens.has_family(APPLICATION.id, live_at=NOW),
    "logout clients": lambda storage: storage.tokens.list_logout_clients([PERSON.id], NOW),
    "find code": lambda storage: storage.tokens.find_authorization_code(CODE.digest),
    "projects by resource": lambda storage: storage.projects.list_by_resource_uri("https://api.example"),
    "find session": lambda storage: storage.sessions.find(SESSION.id),
    "sessions of_browser": lambda storage: storage.sessions.list_for_browser(DIGESTS[:1]),
    "sessions of_browser, many": lambda storage: storage.sessions.list_for_browser(DIGESTS),
    "sessions open": lambda storage: storage.sessions.list_open(ORGANIZATION.id, NOW, 10),
    "sessions open, all": lambda storage: storage.sessions.list_open(None, NOW, 10),
    "sessions of_user": lambda storage: storage.sessions.list_for_user(PERSON.id, NOW),
    "impersonations of user": lambda storage: storage.sessions.list_impersonations(
        AccessScope(DeletionTarget.USER, PERSON.id)
    ),
    "impersonations expired": lambda storage: storage.sessions.list_expired_impersonations(NOW, 10),
    "find pending": lambda storage: storage.authorization_requests.find(PENDING.id),
    "find record": lambda storage: storage.records.find(*THIS_RECORD),
    "find records": lambda storage: storage.records.find_many(*THIS_RECORD[:2], [THIS_RECORD[2]]),
    "records of user": lambda storage: storage.records.list_for_owner(*THIS_RECORD[:2], user_id=PERSON.id),
    "records of application": lambda storage: storage.records.list_for_owner(
        *THIS_RECORD[:2], application_id=APPLICATION.id
    ),
    "records of both": lambda storage: storage.records.list_for_owner(
        *THIS_RECORD[:2], user_id=PERSON.id, application_id=APPLICATION.id
    ),
    "messages waiting": lambda storage: storage.outbox.list_pending("mail", NOW, 10),
    "sent mails": lambda storage: storage.sent_mails.page(None, NEWER),
    "sent mails of user": lambda storage: storage.sent_mails.page(PERSON.id, NEWER),
    "messages backlog": lambda storage: storage.outbox.get_backlog("mail", NOW),
    "is_origin": lambda storage: storage.applications.is_registered_origin("https://shop.example"),
    "find_by_email": lambda storage: storage.users.find_by_email(ORGANIZATION.id, "ada@acme.example"),
    "find_by_verified_email": lambda storage: storage.users.find_by_verified_email(
        "ada@acme.example", is_proven=True, active=True
    ),
    "find_by_verified_email there": lambda storage: storage.users.find_by_verified_email(
        "ada@acme.example", organization_id=ORGANIZATION.id
    ),
    "find_client": lambda storage: storage.applications.find_client(APPLICATION.id),
    "find_signer": lambda storage: storage.credentials.find_key_with_subject(KEY.id, ROBOT.id),
    "find_holder": lambda storage: storage.credentials.find_subject_with_secrets(ROBOT.id),
    "secrets of_user": lambda storage: storage.credentials.list_secrets(ROBOT.id),
    "federated of_application": lambda storage: storage.credentials.list_federated_credentials(APPLICATION.id),
    "providers asserting": lambda storage: storage.upstream_providers.list_asserting(APPLICATION.id),
    "find_federated": lambda storage: storage.credentials.find_subject_with_federated_credentials(ROBOT.id),
    "federated of_user": lambda storage: storage.credentials.list_federated_credentials(ROBOT.id),
    "agents of owner": lambda storage: storage.users.list_agents(PERSON.id),
    "find_subject": lambda storage: storage.users.find_subject(PERSON.id),
    "find_by_login_name": lambda storage: storage.users.find_by_login_name(f"ada@{ORGANIZATION.primary_domain}"),
    "find_by_bare_name": lambda storage: storage.users.find_by_user_name_alone(
        PERSON.user_name, preferred_organization_id=ORGANIZATION.id
    ),
    "find_by_domain": lambda storage: storage.organizations.find_by_domain(ORGANIZATION.primary_domain),
    "managers of_user": lambda storage: storage.managers.list_for_user(PERSON.id),
    "managers effective": lambda storage: storage.managers.list_effective(PERSON.id, NOW),
    "managers ending": lambda storage: storage.managers.list_ending(NOW, LATER, 10),
    "user grants ending": lambda storage: storage.user_grants.list_ending(NOW, LATER, 10),
    "project grants ending": lambda storage: storage.project_grants.list_ending(None, LATER, 10),
    **{
        f"{store} ending of organization": lambda storage, store=store: getattr(storage, store).list_ending(
            NOW, LATER, 10, organization_id=ORGANIZATION.id
        )
        for store in ("managers", "user_grants", "project_grants", "group_members", "group_grants", "group_managers")
    },
    "managers page": lambda storage: storage.managers.page(MANAGER.resource, NEWER),
    "effective": lambda storage: storage.user_grants.list_effective(PERSON.id, frozenset({PROJECT.id}), NOW),
    "audience": lambda storage: storage.projects.list_audience(frozenset({PROJECT.id}), ORGANIZATION.id, NOW),
    "expiring": lambda storage: storage.credentials.list_expiring(ServiceUserKey, NOW, LATER, 10),
    "webhooks receiving": lambda storage: storage.webhooks.list_receiving(ORGANIZATION.id),
    "webhooks of instance receiving": lambda storage: storage.webhooks.list_receiving(None),
    "webhooks page": lambda storage: storage.webhooks.page(ORGANIZATION.id, NEWER),
    "deliveries page": lambda storage: storage.webhook_deliveries.page(WEBHOOK.id, NEWER),
    "deliveries due": lambda storage: storage.webhook_deliveries.list_due(WEBHOOK.id, NOW, 10),
    "groups page": lambda storage: storage.groups.page(ORGANIZATION.id, NEWER),
    "groups of user": lambda storage: storage.groups.list_of_user(PERSON.id),
    "members of groups": lambda storage: storage.groups.count_members(SOME_IDS),
    "group members page": lambda storage: storage.group_members.page(GROUP.id, NEWER),
    "group grants page": lambda storage: storage.group_grants.page(GROUP.id, NEWER),
    "group managers page": lambda storage: storage.group_managers.page(GROUP.id, NEWER),
    "group mappings of directory": lambda storage: storage.group_mappings.list_of_directory(ORGANIZATION.id, "ldap"),
    "attribute mappings of directory": lambda storage: storage.attribute_mappings.list_of_directory(
        ORGANIZATION.id, "ldap"
    ),
    "group mappings of provider": lambda storage: storage.group_mappings.list_of_provider(PROVIDER.id),
    "group mappings of group": lambda storage: storage.group_mappings.list_of_group(GROUP.id),
    "members of group mappings": lambda storage: storage.group_mappings.count_members(SOME_IDS),
    "attribute mappings of provider": lambda storage: storage.attribute_mappings.list_of_provider(PROVIDER.id),
    "group members ending": lambda storage: storage.group_members.list_ending(NOW, LATER, 10),
    "group grants ending": lambda storage: storage.group_grants.list_ending(NOW, LATER, 10),
    "group managers ending": lambda storage: storage.group_managers.list_ending(None, LATER, 10),
    "attribute definitions": lambda storage: storage.attributes.list_definitions(ORGANIZATION.id),
    "attributes of user": lambda storage: storage.attributes.list_user_attributes(PERSON.id),
    "attributes of users": lambda storage: storage.attributes.find_values(SOME_IDS),
    "attribute values": lambda storage: storage.attributes.count_values(DEFINITION.id),
    "attribute values among some": lambda storage: storage.attributes.count_values(DEFINITION.id, ["Sales"]),
    "attribute values, distinct": lambda storage: storage.attributes.list_distinct_values(DEFINITION.id, 10),
    "requests of application": lambda storage: storage.application_requests.list_for_application(APPLICATION.id),
    "requests of user": lambda storage: storage.application_requests.list_for_user(PERSON.id),
    "daily figures": lambda storage: storage.figures.list_daily(ORGANIZATION.id, FIGURES, since=NOW.date()),
    "figures of a day": lambda storage: storage.figures.list_on(NOW.date(), FIGURES),
    "figures by object": lambda storage: storage.figures.list_by_object(
        ORGANIZATION.id, FIGURES[0], since=NOW.date(), limit=10
    ),
    "find message": lambda storage: storage.outbox.find(MESSAGE.id),
    "newest messages": lambda storage: storage.outbox.list_newest("mail", 10),
    "keys page": lambda storage: storage.credentials.page(ServiceUserKey, ROBOT.id, NEWER),
    "organizations page": lambda storage: storage.organizations.page(AFTER),
    "applications page": lambda storage: storage.applications.page(PROJECT.id, AFTER),
    **{
        f"search {kind}, {where}": lambda storage, kind=kind, scope=scope, query=query: storage.search.find_ids(
            kind, PrefixQuery.parse(query), scope, 10
        )
        for kind in SearchedKind
        for where, scope in SEARCH_SCOPES.items()
        # Others belong to no project, so there is nothing to send.
        if scope.organization_ids != frozenset() or kind in (SearchedKind.APPLICATION, SearchedKind.PROJECT)
        for query in ("ada", "ada lovelace")
    },
    **{
        f"search {kind} by id": lambda storage, kind=kind: storage.search.find_ids_by_start(
            kind, PERSON.id[:8], SearchScope(), 10
        )
        for kind in SearchedKind
    },
    "users page": lambda storage: storage.users.page(ORGANIZATION.id, UserKind.HUMAN, AFTER),
    "users page of both kinds": lambda storage: storage.users.page(ORGANIZATION.id, None, AFTER),
    "users page, deactivated": lambda storage: storage.users.page(ORGANIZATION.id, None, PageRequest(active=False)),
    **{f"users by {key}": users_page(PageRequest(sort=SortOrder(key, descending=True))) for key in USER_SORT_KEYS},
    "service users page": lambda storage: storage.users.page(ORGANIZATION.id, UserKind.SERVICE, AFTER),
    "service users page, without agents": lambda storage: storage.users.page(
        ORGANIZATION.id, UserKind.SERVICE, AFTER, with_agents=False
    ),
    "agents page": lambda storage: storage.users.page(ORGANIZATION.id, UserKind.AGENT, AFTER),
    "users page of all": lambda storage: storage.users.page(None, UserKind.HUMAN, AFTER),
    "find organizations": lambda storage: storage.organizations.find_many(SOME_IDS),
    "find projects": lambda storage: storage.projects.find_many(SOME_IDS),
    "find applications": lambda storage: storage.applications.find_many(SOME_IDS),
    "find project grants": lambda storage: storage.project_grants.find_many(SOME_IDS),
    "find subjects": lambda storage: storage.users.find_subjects(SOME_IDS),
    "counts": lambda storage: storage.projects.count_children(SOME_IDS),
    "key summaries": lambda storage: storage.credentials.key_summaries(SOME_IDS, NOW),
    "must_change": lambda storage: storage.users.list_must_change_password(SOME_IDS),
    "expiring of organization": lambda storage: storage.credentials.list_expiring(
        ServiceUserKey, NOW, LATER, 10, organization_id=ORGANIZATION.id
    ),
    "personal access tokens page": lambda storage: storage.credentials.page(PersonalAccessToken, ROBOT.id, NEWER),
    "find personal access token": lambda storage: storage.credentials.find(PersonalAccessToken, PERSONAL.id, ROBOT.id),
    "personal access tokens expiring": lambda storage: storage.credentials.list_expiring(
        PersonalAccessToken, NOW, LATER, 10
    ),
    "grants of project grant": lambda storage: storage.user_grants.page("project_grant_id", LENT.id, NEWER),
    "effects of organization": lambda storage: storage.deletion_impact.count(
        DeletionTarget.ORGANIZATION, ORGANIZATION.id, NOW
    ),
    "effects of project": lambda storage: storage.deletion_impact.count(DeletionTarget.PROJECT, PROJECT.id, NOW),
    "effects of application": lambda storage: storage.deletion_impact.count(
        DeletionTarget.APPLICATION, APPLICATION.id, NOW
    ),
    "effects of user": lambda storage: storage.deletion_impact.count(DeletionTarget.USER, PERSON.id, NOW),
    "effects of key": lambda storage: storage.deletion_impact.count(DeletionTarget.KEY, KEY.id, NOW),
    "effects of secret": lambda storage: storage.deletion_impact.count(DeletionTarget.SECRET, SECRET.id, NOW),
    "effects of project grant": lambda storage: storage.deletion_impact.count(
        DeletionTarget.PROJECT_GRANT, LENT.id, NOW
    ),
    "audit by subject": lambda storage: storage.audit.page(filter=AuditFilter(event="user")),
    "audit of organization by subject": lambda storage: storage.audit.page(
        filter=AuditFilter(organization_id=ORGANIZATION.id, event="user")
    ),
    "refused of organization": lambda storage: storage.audit.page(filter=REFUSED_THERE),
    "refused": lambda storage: storage.audit.page(filter=AuditFilter(result=Result.REFUSED)),
    "audit of party": lambda storage: storage.audit.page(filter=AuditFilter(involved_id=EVENT.object_id or "")),
    "audit of organization": lambda storage: storage.audit.page(filter=AuditFilter(organization_id=ORGANIZATION.id)),
    "audit of object": lambda storage: storage.audit.page(filter=AuditFilter(object_id=PERSON.id)),
    "audit of request": lambda storage: storage.audit.page(filter=AuditFilter(request_id="request")),
    "audit of actor": lambda storage: storage.audit.page(filter=AuditFilter(actor_id=PERSON.id)),
    "audit by event": lambda storage: storage.audit.page(filter=AuditFilter(event="user.created")),
    **{f"due {purged}": purge_candidates(purged) for purged in PurgeKind},
    **{f"due {purged}, held": purge_candidates(purged, "x") for purged in sorted(LEGAL_HOLD_KINDS)},
    **{f"overdue {purged}": expired_count(purged) for purged in PurgeKind},
}
WRITES: dict[str, Call] = {
    "add_access": lambda storage: storage.tokens.add_access_token(make.access_token(ROBOT, key_id=KEY.id)),
    "add_access by secret": lambda storage: storage.tokens.add_access_token(
        make.access_token(ROBOT, secret_id=SECRET.id)
    ),
    "add service user secret": lambda storage: storage.credentials.add(make.service_user_secret(ROBOT)),
    "remove service user secret": lambda storage: storage.credentials.delete(ServiceUserSecret, ROBOT.id, SECRET.id),
    "redeem": lambda storage: storage.tokens.redeem_authorization_code(
        CODE.digest, client_id=APPLICATION.id, redeemed_at=NOW
    ),
    "add session": lambda storage: storage.sessions.add(make.session(PERSON)),
    "reauthenticate": lambda storage: storage.sessions.reauthenticate(
        SESSION.id, digest=DIGESTS[1], proofs=(), authenticated_at=NOW, seen_at=NOW, ends_at=LATER
    ),
    "touch session": lambda storage: storage.sessions.update_last_seen(SESSION.id, LATER),
    "select session": lambda storage: storage.sessions.update_selected(SESSION.id, LATER),
    "end session": lambda storage: storage.sessions.end(SESSION.id, NOW),
    "begin anew in organization": lambda storage: storage.authorization_requests.reset_for_organization(
        ORGANIZATION.id
    ),
    "drop records of organization": lambda storage: storage.records.delete_for_organization(
        *THIS_RECORD[:2], ORGANIZATION.id
    ),
    "end_of_user": lambda storage: storage.sessions.end_for_user(PERSON.id, NOW),
    "end_of_user but one": lambda storage: storage.sessions.end_for_user(PERSON.id, NOW, except_id=SESSION.id),
    "end_for_impersonator": lambda storage: storage.sessions.end_for_impersonator(PERSON.id, NOW),
    "finish": lambda storage: storage.authorization_requests.finish(PENDING.id, NOW, version=1),
    "begin anew": lambda storage: storage.authorization_requests.reset_for_user(PERSON.id),
    "begin others anew": lambda storage: storage.authorization_requests.reset_for_user(PERSON.id, except_id=PENDING.id),
    "is_still": lambda storage: storage.users.lock_password_hash(PERSON.id, "$argon2id$"),
    "update pending": lambda storage: storage.authorization_requests.update(replace(PENDING, version=2)),
    "reserve": lambda storage: storage.attempts.reserve("ada", reserved_at=NOW, user_id=PERSON.id),
    "give_back": lambda storage: storage.attempts.release("ada", AttemptAllowance(True, 1, NOW), released_at=NOW),
    "clear_of_user": lambda storage: storage.attempts.clear_for_user(PERSON.id),
    "count": lambda storage: storage.attempts.count_use("address", used_at=NOW, window=LATER - NOW, limit=1),
    "uncount": lambda storage: storage.attempts.release_use("address", released_at=NOW, window=LATER - NOW),
    "add record": lambda storage: storage.records.add(make.record()),
    "add record of user": lambda storage: storage.records.add(make.record(PERSON)),
    "add record for expired one": lambda storage: storage.records.add(make.record(), replacing_expired=True),
    "take record": lambda storage: storage.records.consume(*THIS_RECORD, NOW),
    "replace record": lambda storage: storage.records.replace(replace(RECORD, version=2)),
    "drop record": lambda storage: storage.records.delete(*THIS_RECORD),
    "drop records": lambda storage: storage.records.delete_for_owner(*THIS_RECORD[:2], user_id=PERSON.id),
    "postpone": lambda storage: storage.outbox.postpone(MESSAGE.id, LATER),
    "reschedule": lambda storage: storage.outbox.reschedule(MESSAGE.id, NOW, LATER),
    "add delivery": lambda storage: storage.webhook_deliveries.add(make.webhook_delivery(WEBHOOK)),
    "update delivery": lambda storage: storage.webhook_deliveries.update(replace(DELIVERY, attempts=1), attempts=0),
    "old requests": lambda storage: storage.application_requests.delete_before(NOW),
    "old sent mails": lambda storage: storage.sent_mails.delete_before(NOW),
    "old figures": lambda storage: storage.figures.delete_before(NOW.date()),
    "remove message": lambda storage: storage.outbox.delete(MESSAGE.id),
    "add code": lambda storage: storage.tokens.add_authorization_code(make.authorization_code(FAMILY)),
    "start_family": lambda storage: storage.tokens.add_family(make.token_family(PERSON, APPLICATION)),
    "add_refresh": lambda storage: storage.tokens.add_refresh_token(make.refresh_token(FAMILY)),
    "touch": lambda storage: storage.credentials.update_last_used(ServiceUserKey, {KEY.id: NOW}),
    "append": lambda storage: storage.audit.append(EVENT),
    "note_sign_in": lambda storage: storage.users.update_last_sign_in(PERSON.id, NOW),
    "stop agents": lambda storage: storage.users.stop_agents(PERSON.id, NOW),
    "touch client secret": lambda storage: storage.applications.update_secrets_last_used({"secret": NOW}),
    "touch service user secret": lambda storage: storage.credentials.update_last_used(
        ServiceUserSecret, {SECRET.id: NOW}
    ),
    "touch personal access token": lambda storage: storage.credentials.update_last_used(
        PersonalAccessToken, {PERSONAL.id: NOW}
    ),
    "remove personal access token": lambda storage: storage.credentials.delete(
        PersonalAccessToken, ROBOT.id, PERSONAL.id
    ),
    "revoke_family": lambda storage: storage.tokens.revoke_family(FAMILY.id, NOW),
    "revoke_access": lambda storage: storage.tokens.revoke_access_token(TOKEN.digest, NOW),
}
#: Calls with several statements.
INDEXED: dict[str, Call] = {
    "organizations by query": lambda storage: storage.organizations.page(PageRequest(query="ac")),
    "projects by query": lambda storage: storage.projects.page(ORGANIZATION.id, PageRequest(query="ro")),
    "users by query": lambda storage: storage.users.page(ORGANIZATION.id, UserKind.HUMAN, PageRequest(query="ad")),
    "users by query, all": lambda storage: storage.users.page(None, None, PageRequest(query="ad")),
    "users by query, sorted": lambda storage: storage.users.page(
        ORGANIZATION.id,
        UserKind.HUMAN,
        PageRequest(query="ad", sort=SortOrder("last_sign_in_at", descending=True)),
    ),
    "users counted": lambda storage: storage.users.page(ORGANIZATION.id, None, PageRequest(with_total=True)),
    "address as login name": lambda storage: storage.users.has_email_used_as_login_name(
        ORGANIZATION.id, "acme.example"
    ),
    "audit counted": lambda storage: storage.audit.page(PageRequest(with_total=True), REFUSED_THERE),
    **{f"purge {purged}": purge_deletion(purged) for purged in PurgeKind},
    **{f"purge {purged}, held": purge_deletion(purged, "x") for purged in sorted(LEGAL_HOLD_KINDS)},
    "rotate": lambda storage: storage.tokens.rotate_refresh_token(REFRESH.digest, make.refresh_token(FAMILY), NOW),
    "replace_successor": lambda storage: storage.tokens.replace_successor(ROTATED, make.refresh_token(FAMILY), NOW),
    "refused reserve": lambda storage: [storage.attempts.reserve("ada", reserved_at=NOW) for _ in range(6)],
    "refused record": lambda storage: storage.records.add(RECORD, replacing_expired=True),
    "audit after": lambda storage: storage.audit.list_after(1, 10, REFUSED_THERE),
    "effects of role": lambda storage: storage.deletion_impact.count_role_grants(PROJECT.id, "reader"),
    "update application": lambda storage: storage.applications.update(replace(APPLICATION, version=2)),
    "revoke_of_provider": lambda storage: storage.tokens.revoke_for_provider(PROVIDER.id, NOW),
    "revoke_of_user": lambda storage: storage.tokens.revoke_for_user(PERSON.id, NOW),
    "remove user": lambda storage: storage.users.delete(PERSON.id),
    "end_of_organization": lambda storage: storage.sessions.end_for_organization(ORGANIZATION.id, NOW),
    "revoke_of_application, all": lambda storage: storage.tokens.revoke_all(
        AccessScope(DeletionTarget.APPLICATION, APPLICATION.id), NOW
    ),
    "revoke_of_organization, all": lambda storage: storage.tokens.revoke_all(
        AccessScope(DeletionTarget.ORGANIZATION, ORGANIZATION.id, frozenset({PERSON.id})), NOW
    ),
    "revoke_of_user, one client": lambda storage: storage.tokens.revoke_for_user(
        PERSON.id, NOW, client_id=APPLICATION.id
    ),
}


class Statements:
    """The statements sent to the database."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    def note(self, _connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if not statement.startswith(("EXPLAIN", "SET", "SAVEPOINT", "RELEASE")):
            self.sent.append((statement, parameters))


@pytest.fixture
def statements(backend: SqlBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Statements]:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in VALUES:
            add(storage, value)
        storage.applications.add_secret(APPLICATION.id, make.client_secret())
    noted = Statements()
    given_of = StatementText.bind_parameters

    def noting(text: StatementText, parameters: dict[str, Any]) -> Any:
        values = given_of(text, parameters)
        noted.sent.append((text.sql, values))
        return values

    # Prepared statements go directly to the driver, without SQLAlchemy's events.
    monkeypatch.setattr(StatementText, "bind_parameters", noting)
    event.listen(Engine, "before_cursor_execute", noted.note)
    yield noted
    event.remove(Engine, "before_cursor_execute", noted.note)


@pytest.mark.thorough
@pytest.mark.parametrize("name", READS)
def test_read_is_one_statement(backend: SqlBackend, statements: Statements, name: str) -> None:
    with backend.read_session() as storage:
        READS[name](storage)
    assert len(statements.sent) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRITES)
def test_write_is_one_statement(backend: SqlBackend, statements: Statements, name: str) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        WRITES[name](storage)
    assert len(statements.sent) == 1


@pytest.mark.sampled(60, thorough=200)
@pytest.mark.parametrize("name", [*READS, *WRITES, *INDEXED])
def test_no_table_is_read_from_end_to_end(backend: SqlBackend, statements: Statements, name: str) -> None:
    call = {**READS, **WRITES, **INDEXED}[name]
    transactions = ContractTransactionManager()
    transactions.begin()
    storage = backend.join_transaction(transactions)
    call(storage)
    connection = storage.connection.core  # type: ignore[attr-defined]
    if connection.dialect.name == "postgresql":
        # On the tiny tables of the test the planner would prefer sequential scans.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plans = [_plan(connection, "EXPLAIN", *sent) for sent in statements.sent]
        scans = [line for plan in plans for line in plan if "Seq Scan" in line]
    else:
        plans = [_plan(connection, "EXPLAIN QUERY PLAN", *sent) for sent in statements.sent]
        scans = [line for plan in plans for line in plan if re.match(r"SCAN \w+(?! USING)( |$)", line)]
        # Scans of subqueries are fine.
        scans = [line for line in scans if "USING" not in line and "CONSTANT" not in line and "anon_" not in line]
    transactions.abort()
    assert plans
    assert scans == [], "\n".join(line for plan in plans for line in plan)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", [*(name for name in READS if name.startswith("find")), "address as login name"])
def test_lookup_does_not_read_all_people_of_an_organization(
    backend: SqlBackend, statements: Statements, name: str
) -> None:
    """Without statistics, SQLite prefers an index that has the order to one that finds the row."""
    with backend.read_session() as storage:
        {**READS, **INDEXED}[name](storage)
        connection = storage.connection.core  # type: ignore[attr-defined]
        plans = [_plan(connection, "EXPLAIN QUERY PLAN", *sent) for sent in tuple(statements.sent)]
    # "address as login name" starts from all verified addresses, once.
    table = "users" if name in READS else "users_1"
    steps = [line for plan in plans for line in plan if line.startswith(f"SEARCH {table} ")]
    assert [line for line in steps if line.endswith("(organization_id=?)")] == []


def test_every_reference_can_be_followed_backwards() -> None:
    """Deleting a row looks for references to it, which would scan tables without an index."""
    for table in metadata.tables.values():
        leading = {next(iter(rule.columns)).name for rule in (*table.indexes, *_keys(table))}
        for key in table.foreign_keys:
            assert key.parent.name in leading, f"{table.name}.{key.parent.name}"


def _keys(table: Table) -> Iterator[PrimaryKeyConstraint | UniqueConstraint]:
    for rule in table.constraints:
        if isinstance(rule, (PrimaryKeyConstraint, UniqueConstraint)):
            yield rule


def _plan(connection: Any, explain: str, statement: str, parameters: Any) -> list[str]:
    return [str(row[-1]) for row in connection.exec_driver_sql(f"{explain} {statement}", parameters)]

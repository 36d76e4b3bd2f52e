"""A person's data as a JSON document for them to download; without secrets and without data about others."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from identity.domain.application_requests import ApplicationRequest
from identity.domain.audit import ActorKind, AuditEvent, AuditFilter
from identity.domain.enrolments import Enrolment
from identity.domain.groups import Group, GroupMember
from identity.domain.managers import Manager
from identity.domain.projects import UserGrant
from identity.domain.sent_mails import SentMail
from identity.domain.sessions import Session
from identity.domain.tokens import ConnectedApplication
from identity.domain.users import Agent, HumanUser, Subject
from identity.services.audit import dump_fields, to_json_value
from identity.services.container import Services
from identity.services.json_encoder import iterencode
from identity.services.remembered_browsers import RememberedBrowser
from identity.storage.paging import iterate_rows

FORMAT = "identity-account"
VERSION = 1


def export_personal_data(services: Services, subject: Subject, plugin_members: Mapping[str, object]) -> Iterator[str]:
    """The document piece by piece. ``plugin_members`` are members that plugins add."""
    storage, user = services.storage, subject.user
    password = storage.users.find_password(user.id)
    grants = iterate_rows(partial(storage.user_grants.page, "user_id", user.id))
    members: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made_at": to_json_value(services.now),
        "login_name": subject.login_name,
        "account": {"id": user.id, "created_at": to_json_value(user.created_at), **dump_fields(user)},
        "attributes": services.attributes.user_values([user])[user.id] if isinstance(user, HumanUser) else {},
        "organization": {
            "id": subject.organization.id,
            "name": subject.organization.name,
            "primary_domain": subject.organization.primary_domain,
        },
        "password": None if password is None else {"changed_at": to_json_value(password.changed_at)},
        "ways_to_sign_in": [_enrolment(enrolment) for enrolment in services.factors.list_enrolments(user.id)],
        "remembered_browsers": [_browser(browser) for browser in services.remembered_browsers.list_by_user(user.id)],
        "project_roles": [_grant(services, grant) for grant in grants],
        "manager_roles": [_manager(manager) for manager in storage.managers.list_for_user(user.id)],
        "groups": [_membership(group, member) for group, member in services.groups.list_of_user(user.id)],
        "sessions": [_session(session) for session in services.sessions.list_by_user(user.id)],
        "agents": [_agent(services, agent) for agent in services.agents.list_by_owner(user.id)],
        "applications": [
            _connection(application, services.subject_identifiers.identify(user.id, application.client))
            for application in services.users.list_connected_applications(user.id)
        ],
        "application_requests": [
            _application_request(request) for request in storage.application_requests.list_for_user(user.id)
        ],
        "mails": [_mail(mail) for mail in iterate_rows(partial(storage.sent_mails.page, user.id))],
        **plugin_members,
        "activity": (_event(event, user.id) for event in _list_audit_events(services, user.id)),
    }
    return iterencode(members)


def _list_audit_events(services: Services, user_id: str) -> Iterator[AuditEvent]:
    audit_filter = AuditFilter(involved_id=user_id)
    return iter(iterate_rows(lambda page_request: services.audit_trail.page(audit_filter, page_request)))


def _grant(services: Services, grant: UserGrant) -> dict[str, Any]:
    project = services.storage.projects.find(grant.project_id)
    name = "" if project is None else project.name
    return {
        "project": name,
        "roles": sorted(grant.roles),
        "active": grant.active,
        "since": to_json_value(grant.created_at),
        "until": to_json_value(grant.until),
    }


def _manager(manager: Manager) -> dict[str, Any]:
    return {
        "level": manager.resource.level.value,
        "resource_id": manager.resource.id,
        "roles": sorted(manager.roles),
        "since": to_json_value(manager.created_at),
        "until": to_json_value(manager.until),
    }


def _membership(group: Group, member: GroupMember) -> dict[str, Any]:
    return {
        "group": group.name,
        "active": group.active,
        "since": to_json_value(member.created_at),
        "until": to_json_value(member.until),
    }


def _enrolment(enrolment: Enrolment) -> dict[str, Any]:
    return {
        "kind": enrolment.factor,
        "name": enrolment.name,
        "added_at": to_json_value(enrolment.added_at),
        "last_used_at": to_json_value(enrolment.last_used_at),
    }


def _browser(browser: RememberedBrowser) -> dict[str, Any]:
    return {
        "browser": browser.user_agent,
        "network_address": browser.client_address,
        "remembered_at": to_json_value(browser.added_at),
        "ends_at": to_json_value(browser.ends_at),
    }


def _session(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "started_at": to_json_value(session.started_at),
        "authenticated_at": to_json_value(session.authenticated_at),
        "last_seen_at": to_json_value(session.last_seen_at),
        "methods": list(session.amr_methods),
        "impersonator_id": session.impersonator_id,
        "browser": session.user_agent,
        "network_address": session.client_address,
    }


def _agent(services: Services, agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.display_name,
        "user_name": agent.user_name,
        "since": to_json_value(agent.created_at),
        "stopped_at": to_json_value(agent.stopped_at),
        "keys": [
            {
                "since": to_json_value(key.created_at),
                "expires_at": to_json_value(key.expires_at),
                "last_used_at": to_json_value(key.last_used_at),
            }
            for key in services.agents.list_keys(agent)
        ],
    }


def _connection(connection: ConnectedApplication, subject: str) -> dict[str, Any]:
    return {
        "subject": subject,
        "client_id": connection.client.id,
        "name": connection.client.application.name,
        "organization": connection.client.organization_name,
        "scope": list(connection.scope),
        "offline": connection.offline,
        "since": to_json_value(connection.since),
        "last_used_at": to_json_value(connection.last_used_at),
        "devices": [
            {"network_address": device.address, "since": to_json_value(device.since)} for device in connection.devices
        ],
    }


def _application_request(request: ApplicationRequest) -> dict[str, Any]:
    return {
        "at": to_json_value(request.at),
        "client_id": request.application_id,
        "endpoint": request.endpoint,
        "network": request.client_network,
    }


def _event(event: AuditEvent, user_id: str) -> dict[str, Any]:
    """The event without what concerns others: other actors and other subjects are left out."""
    actor = event.actor
    values: dict[str, Any] = {
        "at": to_json_value(event.at),
        "event": event.event,
        "result": event.result.value,
        "by": "you" if actor.id == user_id else actor.kind.value,
    }
    if actor.id == user_id or actor.kind is ActorKind.ANONYMOUS:
        values |= {"network_address": actor.client_address, "client_id": actor.client_id}
    if event.object_id == user_id:
        values |= {"reason": event.reason, "detail": dict(event.detail)}
    return values


def _mail(mail: SentMail) -> dict[str, Any]:
    return {
        "kind": mail.kind,
        "to": mail.recipient,
        "outcome": mail.outcome.value,
        "created_at": to_json_value(mail.created_at),
        "ended_at": to_json_value(mail.ended_at),
    }

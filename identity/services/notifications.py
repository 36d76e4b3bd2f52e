"""Mails that notify users of changes to their account.

Notifications follow from audit events, in the transaction that writes them, so pages, API, console, command line and
background jobs all notify alike. The text is rendered when the mail is sent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from identity.domain.audit import AuditEvent
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel
from identity.domain.projects import Project
from identity.domain.users import HumanUser, Profile
from identity.services.base import Service
from identity.services.mails import MailService, Notification

#: Template values derived from the event's detail; None where no mail is sent.
_Values = Callable[[AuditEvent, HumanUser], Mapping[str, str] | None]


def _agent(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {"name": str(event.detail.get("display_name", ""))}


def _always(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {}


def _if_they_were_here(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """An account that was never used has nothing to lose."""
    return None if person.last_sign_in_at is None else {}


def _new_browser(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {"user_agent": str(event.detail.get("browser", "")), "address": event.actor.client_address or ""}


def _factor(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {name: str(value) for name, value in event.detail.items()}


def _linked(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """No mail for accounts that the provider created: the user was present when it happened."""
    values = {"factor": str(event.detail.get("provider", "")), "name": str(event.detail.get("name", ""))}
    return None if person.last_sign_in_at is None else values


def _by_themselves(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """Registrations send no notification: the address may belong to someone else."""
    return {} if person.profile.email_verified else None


def _deletion(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {"day": "" if person.deletion_at is None else f"{person.deletion_at:%Y-%m-%d}"}


def _impersonation(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """The reason is text that its author chose, so it goes only to an address that the person has proved."""
    reason = str(event.detail.get("reason", "")) if person.profile.email_verified else ""
    return {"impersonator": str(event.detail.get("impersonator", "")), "reason": reason}


#: Only for a browser that the account does not know.
_STARTED = "session.started"
_REGISTERED = "user.registered"


def _end(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {"day": str(event.detail.get("until", ""))[:10]}


#: Mail template and template values by event.
_TEMPLATES_BY_EVENT: Mapping[str, tuple[str, _Values]] = {
    "password.changed": ("password_changed", _always),
    "password.set": ("password_set", _if_they_were_here),
    "user.reported": ("reported", _always),
    AuditEvent.IMPERSONATION_STARTED: ("impersonated", _impersonation),
    _STARTED: ("new_browser", _new_browser),
    _REGISTERED: ("registered", _by_themselves),
    "user.deletion_asked": ("deletion_asked", _deletion),
    "user.deletion_withdrawn": ("deletion_withdrawn", _always),
    "factor.added": ("factor_added", _factor),
    "factor.removed": ("factor_removed", _factor),
    "factor.reset": ("factor_reset", _always),
    "factor.used": ("factor_used", _factor),
    "linked_identity.added": ("factor_added", _linked),
    "linked_identity.removed": ("factor_removed", _linked),
    "factor.suspected": ("factor_suspected", _factor),
    "agent.created": ("agent_added", _agent),
    "agent.key_added": ("agent_added", _agent),
    "manager.ending": ("manager_roles_ending", _end),
    "user_grant.ending": ("project_roles_ending", _end),
    "group_member.ending": ("project_roles_ending", _end),
}
#: Events whose object is not the account; their detail names it.
_ABOUT_ROLES = frozenset({"manager.ending", "user_grant.ending", "group_member.ending"})
#: Events of which the account is the owner of the object.
_ABOUT_AGENTS = frozenset({"agent.created", "agent.key_added"})
#: Events that may replace an address; the former address is notified.
_ADDRESSES = frozenset({"user.changed", "email.verified"})
#: The user no longer exists then; the event says whose account it was.
_REMOVED = "user.removed"
#: All events that may send a notification.
NOTIFIED_EVENTS = frozenset(_TEMPLATES_BY_EVENT) | _ADDRESSES | {_REMOVED}


@dataclass(eq=False, repr=False)
class NotificationService(Service):
    """Rate limits count each kind separately, so that no kind hides another. Exceeding one never blocks the action."""

    _mails: MailService
    _language: Callable[[], str]

    def notify(self, event: AuditEvent) -> None:
        """Mail the person the event is about if it is one of NOTIFIED_EVENTS. Does nothing where mail is disabled or
        the person has no address."""
        if event.event not in NOTIFIED_EVENTS or not self._mails.is_enabled:
            return
        if event.event == _STARTED and not event.detail.get("new_browser"):
            return
        if event.event == _REMOVED:
            self._tell_removed(event)
            return
        user_id = str(event.detail.get("user_id", "")) if event.event in _ABOUT_ROLES else event.object_id or ""
        if event.event in _ABOUT_AGENTS:
            user_id = event.user_id or ""
        subject = self._storage.users.find_subject(user_id)
        if subject is None or not isinstance(subject.user, HumanUser):
            return
        person, organization = subject.user, subject.organization
        if event.event in _ADDRESSES:
            template, values, to = "email_changed", {}, _former_address(event)
        else:
            template, found = _TEMPLATES_BY_EVENT[event.event][0], _TEMPLATES_BY_EVENT[event.event][1](event, person)
            if found is None:
                return
            values, to = dict(found), person.profile.email
            if event.event in _ABOUT_ROLES:
                # Managers choose names, so these go to verified addresses only.
                values["place"] = self._describe_resource(event) if _is_proved(person.profile, to) else ""
        if not to:
            return
        self._mails.queue_notification(
            Notification(
                to=to,
                template=template,
                values={"login_name": subject.login_name, "person_name": person.display_name, **values},
                languages=(person.profile.locale, self._language()),
                organization_id=organization.id,
                at=event.at.isoformat(),
            ),
            user_id=person.id,
            # The number of new accounts is unlimited, so welcome mails count against the address.
            proved_by=person.id if event.event != _REGISTERED and _is_proved(person.profile, to) else "",
            # Counted when they start: no other mails may keep this one from the person.
            is_counted=event.event != AuditEvent.IMPERSONATION_STARTED,
        )

    def _describe_resource(self, event: AuditEvent) -> str:
        """The name of the project, organization or group in which roles end; empty if there is none to name."""
        storage, detail = self._storage, event.detail
        if event.event == "group_member.ending":
            group = storage.groups.find(str(detail.get("group_id", "")))
            return "" if group is None else group.name
        resource_id = str(detail.get("project_id") or detail.get("resource_id") or "")
        level = str(detail.get("level", "")) or ManagerLevel.PROJECT.value
        if level == ManagerLevel.PROJECT_GRANT:
            grant = storage.project_grants.find(resource_id)
            resource_id = "" if grant is None else grant.project_id
        found: Organization | Project | None = None
        if level == ManagerLevel.ORGANIZATION:
            found = storage.organizations.find(resource_id)
        elif level != ManagerLevel.INSTANCE:
            found = storage.projects.find(resource_id)
        return "" if found is None else found.name

    def _tell_removed(self, event: AuditEvent) -> None:
        """Mail the person whose account was removed, if they ever signed in."""
        profile, organization_id = event.detail.get("profile"), event.organization_id or ""
        organization = self._storage.organizations.find(organization_id)
        if not isinstance(profile, Mapping) or organization is None or event.detail.get("last_sign_in_at") is None:
            return
        if to := str(profile.get("email", "")):
            self._mails.queue_notification(
                Notification(
                    to=to,
                    template="removed",
                    values={"login_name": f"{event.detail.get('user_name')}@{organization.primary_domain}"},
                    languages=(str(profile.get("locale", "")), self._language()),
                    organization_id=organization_id,
                    at=event.at.isoformat(),
                )
            )


def _is_proved(profile: Profile, address: str) -> bool:
    return profile.email_verified and profile.email == address


def _former_address(event: AuditEvent) -> str:
    """The address before the change; empty if it is unchanged or there was none."""
    changed = event.detail.get("profile")
    if not isinstance(changed, Mapping):
        return ""
    before, after = (changed.get(side, {}).get("email", "") for side in ("before", "after"))
    return "" if before == after else str(before)

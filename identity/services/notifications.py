"""Notices: people are told by mail what was done to their account, whoever did it and by whichever way.

What is told follows from audit events, in the transaction that writes them: pages, API, console, command line and
background work all tell alike. The mail is worded when it is sent.
"""

from collections.abc import Callable, Mapping

from identity.domain.audit import AuditEvent
from identity.domain.users import HumanUser, Profile
from identity.services.base import Service, TransactionState
from identity.services.mails import MailService, Notification

#: Values of a mail's template, by the detail of the event; None where there is nothing to tell.
_Values = Callable[[AuditEvent, HumanUser], Mapping[str, str] | None]


def _always(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {}


def _if_they_were_here(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """An account that was never entered has nothing yet that somebody could lose."""
    return None if person.last_sign_in_at is None else {}


def _new_browser(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {"user_agent": str(event.detail.get("browser", "")), "address": event.actor.client_address or ""}


def _factor(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {name: str(value) for name, value in event.detail.items()}


def _linked(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """Whoever came from there for the first time knows it."""
    values = {"factor": str(event.detail.get("provider", "")), "name": str(event.detail.get("name", ""))}
    return None if person.last_sign_in_at is None else values


def _by_themselves(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    """Nobody else's address is written to for an account that somebody registers."""
    return {} if person.profile.email_verified else None


def _deletion(event: AuditEvent, person: HumanUser) -> Mapping[str, str] | None:
    return {"day": "" if person.deletion_at is None else f"{person.deletion_at:%Y-%m-%d}"}


#: Only at a browser that the account does not know.
_STARTED = "session.started"
_REGISTERED = "user.registered"

#: The template of the mail about each event, and what it says besides whose account it is.
_TEMPLATES_BY_EVENT: Mapping[str, tuple[str, _Values]] = {
    "password.changed": ("password_changed", _always),
    "password.set": ("password_set", _if_they_were_here),
    "user.reported": ("reported", _always),
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
}
#: What may bring another address: the former one is told.
_ADDRESSES = frozenset({"user.changed", "email.verified"})
#: After it nobody is there any more; the event tells whose account it was.
_REMOVED = "user.removed"
#: All of which somebody may be told.
NOTIFIED_EVENTS = frozenset(_TEMPLATES_BY_EVENT) | _ADDRESSES | {_REMOVED}


class NotificationService(Service):
    """They are counted by kind, so that none of them hides another; nothing is held up by that."""

    def __init__(self, state: TransactionState, mails: MailService, language: Callable[[], str]) -> None:
        super().__init__(state)
        self._mails, self._language = mails, language

    def notify(self, event: AuditEvent) -> None:
        """Write to the person whom the event is about, if it is one of those that they have to learn of.

        Nothing where no mail can be sent or there is no address.
        """
        if event.event not in NOTIFIED_EVENTS or not self._mails.is_enabled:
            return
        if event.event == _STARTED and not event.detail.get("new_browser"):
            return
        if event.event == _REMOVED:
            self._tell_removed(event)
            return
        user_id = event.object_id or ""
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
        if not to:
            return
        self._mails.queue_notification(
            Notification(
                to=to,
                template=template,
                values={"login_name": subject.login_name, **values},
                languages=(person.profile.locale, self._language()),
                organization_id=organization.id,
                at=event.at.isoformat(),
            ),
            # Accounts are many, and each is new once: what greets them counts for the address.
            proved_by=person.id if event.event != _REGISTERED and _is_proved(person.profile, to) else "",
        )

    def _tell_removed(self, event: AuditEvent) -> None:
        """Write to whoever had an account that is gone, if they were ever here."""
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
    """The address that the person had until now; empty if it stays or there was none."""
    changed = event.detail.get("profile")
    if not isinstance(changed, Mapping):
        return ""
    before, after = (changed.get(side, {}).get("email", "") for side in ("before", "after"))
    return "" if before == after else str(before)

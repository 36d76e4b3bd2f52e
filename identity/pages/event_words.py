"""What audit events say to people: a few words for each name, what is said to whoever did it, and what it was about."""

from collections.abc import Mapping

from identity.domain.audit import AuditEvent
from identity.domain.words import say
from identity.pages.translation import Words
from identity.provider.factor import Factor

#: What each event is called in lists, and what is said after one has done it; empty for what needs no word.
_EVENTS = {
    "instance.bootstrapped": (say("Service set up"), ""),
    "organization.created": (
        say("Organization created"),
        say("Organization created. Add a manager who looks after it."),
    ),
    "organization.changed": (say("Organization changed"), say("The changes are saved.")),
    "policy.changed": (
        say("Policy changed"),
        say("The policy is saved. It holds from the next sign-in or request on."),
    ),
    "organization.deactivated": (
        say("Organization deactivated"),
        say("Organization deactivated. Nobody of it signs in."),
    ),
    "organization.reactivated": (say("Organization reactivated"), say("Organization reactivated.")),
    "organization.removed": (say("Organization deleted"), say("Organization deleted.")),
    "organization.exported": (say("Organization exported"), ""),
    "organization.imported": (
        say("Organization imported"),
        say("Organization imported. Hand its people links for new passwords, and its applications new secrets."),
    ),
    "domain.asked": (say("Domain asked for"), say("Domain added. It counts once it is proven.")),
    "domain.verified": (say("Domain proven"), say("The domain is proven. You can make it the primary one.")),
    "domain.asserted": (say("Domain asserted without a proof"), say("The domain is asserted.")),
    "domain.removed": (say("Domain removed"), say("Domain removed.")),
    "project.created": (say("Project created"), say("Project created. Register its first application.")),
    "project.changed": (say("Project changed"), say("The changes are saved.")),
    "project.deactivated": (say("Project deactivated"), say("Project deactivated. Its applications no longer work.")),
    "project.reactivated": (say("Project reactivated"), say("Project reactivated.")),
    "project.removed": (say("Project deleted"), say("Project deleted.")),
    "project_role.added": (say("Role added to a project"), say("Role added.")),
    "project_role.changed": (say("Role of a project changed"), say("The changes are saved.")),
    "project_role.removed": (say("Role removed from a project"), say("Role deleted.")),
    "project_grant.accepted": (say("Project grant accepted"), ""),
    "project_grant.added": (
        say("Project granted to an organization"),
        say("Project granted. Managers of the organization can now give the roles to their users."),
    ),
    "project_grant.changed": (say("Roles of a project grant changed"), say("The granted roles are changed.")),
    "project_grant.deactivated": (
        say("Project grant deactivated"),
        say("Project grant deactivated. Its users have no access."),
    ),
    "project_grant.reactivated": (say("Project grant reactivated"), say("Project grant reactivated.")),
    "project_grant.removed": (say("Project grant withdrawn"), say("Project grant withdrawn.")),
    "user_grant.added": (say("Project roles given to a user"), say("The roles are given.")),
    "user_grant.changed": (say("Project roles of a user changed"), say("The roles are changed.")),
    "user_grant.deactivated": (say("Project roles of a user deactivated"), ""),
    "user_grant.reactivated": (say("Project roles of a user reactivated"), ""),
    "user_grant.removed": (say("Project roles taken from a user"), say("The roles are taken.")),
    "user.created": (say("User created"), ""),
    "user.registered": (say("User registered"), ""),
    "user.changed": (say("User changed"), say("The changes are saved.")),
    "user.deactivated": (say("User deactivated"), say("User deactivated. All sessions and tokens have ended.")),
    "user.reactivated": (say("User reactivated"), say("User reactivated.")),
    "user.removed": (say("User deleted"), say("User deleted.")),
    "user.recovered": (say("User let back in by the operator"), ""),
    "user.unlocked": (say("User unlocked"), say("User unlocked. The password counts in every browser again.")),
    "user.exported": (say("Copy of one's data taken"), ""),
    "user.deletion_asked": (say("Deletion of one's account asked for"), ""),
    "user.deletion_withdrawn": (say("Account kept after all"), say("The account stays.")),
    "user.reported": (say("Access by somebody else reported"), ""),
    "password.set": (say("One-time password set"), ""),
    "password.changed": (say("Password changed"), ""),
    "password.link_issued": (say("Link for a new password made"), ""),
    "password.link_asked": (say("Link for a new password asked for"), ""),
    "email.link_issued": (say("Link sent that confirms an email address"), ""),
    "email.verified": (say("Email address confirmed"), ""),
    "factor.added": (say("Way to sign in added"), ""),
    "factor.changed": (say("Way to sign in renamed"), ""),
    "factor.used": (say("Spare way to sign in used"), ""),
    "factor.suspected": (say("Copy of a passkey suspected"), ""),
    "factor.removed": (say("Way to sign in removed"), ""),
    "factor.reset": (say("Second factors reset"), say("The second factors are reset.")),
    "browser.remembered": (say("Browser remembered for second factors"), ""),
    "browser.forgotten": (say("Browser forgotten for second factors"), ""),
    "session.started": (say("Signed in"), ""),
    "session.renewed": (say("Signed in again"), ""),
    "session.ended": (say("Signed out"), say("Signed out.")),
    "service_user.created": (
        say("Service user created"),
        say("Service user created. Add a key so that a program can sign in."),
    ),
    "service_user.changed": (say("Service user changed"), say("The changes are saved.")),
    "service_user.deactivated": (
        say("Service user deactivated"),
        say("Service user deactivated. Its tokens no longer work."),
    ),
    "service_user.reactivated": (say("Service user reactivated"), say("Service user reactivated.")),
    "service_user.removed": (say("Service user deleted"), say("Service user deleted.")),
    "service_user_key.added": (say("Key of a service user added"), say("Key added.")),
    "service_user_key.removed": (say("Key of a service user removed"), say("Key removed. Its tokens no longer work.")),
    "service_user_key.expiring": (say("Key of a service user expires soon"), ""),
    "service_user_secret.added": (say("Client secret of a service user made"), ""),
    "service_user_secret.removed": (
        say("Client secret of a service user ended"),
        say("Client secret ended. Its tokens no longer work."),
    ),
    "personal_access_token.added": (say("Personal access token made"), ""),
    "personal_access_token.removed": (
        say("Personal access token removed"),
        say("Personal access token removed. It no longer works."),
    ),
    "personal_access_token.expiring": (say("Personal access token expires soon"), ""),
    "application.created": (say("Application created"), say("Application registered.")),
    "application.changed": (say("Application changed"), say("The changes are saved.")),
    "application.deactivated": (
        say("Application deactivated"),
        say("Application deactivated. It gets no tokens any more."),
    ),
    "application.reactivated": (say("Application reactivated"), say("Application reactivated.")),
    "application.removed": (say("Application deleted"), say("Application deleted.")),
    "application.disconnected": (say("Application disconnected by its user"), say("The application is disconnected.")),
    "upstream_provider.created": (say("Identity provider added"), say("Identity provider added. Try it now.")),
    "upstream_provider.changed": (say("Identity provider changed"), say("The changes are saved.")),
    "upstream_provider.deactivated": (
        say("Identity provider deactivated"),
        say("Identity provider deactivated. Nobody signs in there any more."),
    ),
    "upstream_provider.reactivated": (say("Identity provider reactivated"), say("Identity provider reactivated.")),
    "upstream_provider.removed": (say("Identity provider deleted"), say("Identity provider deleted.")),
    "linked_identity.added": (say("Account elsewhere linked"), say("The account is linked.")),
    "linked_identity.removed": (say("Account elsewhere unlinked"), say("The account is unlinked.")),
    "consent.given": (say("Access of an application agreed to"), ""),
    "consent.refused": (say("Access of an application refused"), ""),
    "consent.withdrawn": (say("Consent to an application withdrawn"), say("The application is disconnected.")),
    "branding.changed": (say("Looks and words changed"), say("The changes are saved.")),
    "client_secret.added": (say("Client secret of an application made"), ""),
    "client_secret.removed": (say("Client secret of an application ended"), say("Client secret ended.")),
    "manager.added": (say("Manager added"), say("The manager role is given.")),
    "manager.changed": (say("Manager roles changed"), say("The manager roles are changed.")),
    "manager.removed": (say("Manager removed"), say("The manager roles are taken.")),
    # Before that of the key which is made in its place.
    "signing_key.withdrawn": (
        say("Signing key withdrawn"),
        say("The signing key is withdrawn. What it signed does not count any more."),
    ),
    "signing_key.added": (say("Signing key made"), say("The next signing key is made.")),
    "signing_key.removed": (say("Signing key removed"), ""),
    "signing_key.rewrapped": (say("Signing key sealed under another master key"), ""),
    "legal_hold.placed": (say("Legal hold placed"), say("The legal hold is placed.")),
    "legal_hold.released": (say("Legal hold released"), say("The legal hold is lifted.")),
    "backup.made": (say("Backup made"), ""),
    "backup.restored": (say("Backup restored"), ""),
    "token.revoked": (say("Token revoked"), ""),
    "token.replayed": (say("Code or refresh token used twice"), ""),
    "authentication.refused": (say("Sign-in refused"), ""),
    "authorization.refused": (say("Request of an application refused"), ""),
    "access.refused": (say("Action refused"), ""),
}

EVENT_WORDS = {name: words for name, (words, _) in _EVENTS.items()}
#: Of several events the first one is told; that of an import goes before those of what was in the document.
_IMPORTED = "organization.imported"
TOLD = {name: _EVENTS[name][1] for name in (_IMPORTED, *_EVENTS) if _EVENTS[name][1]}

#: The first part of events' names, which a filter may ask for alone.
SUBJECT_WORDS = {
    "instance": say("Instance"),
    "organization": say("Organization"),
    "domain": say("Domain"),
    "branding": say("Looks and words"),
    "policy": say("Sign-in policy"),
    "project": say("Project"),
    "project_role": say("Project role"),
    "project_grant": say("Project grant"),
    "user_grant": say("User grant"),
    "user": say("User"),
    "password": say("Password"),
    "email": say("Email address"),
    "factor": say("Way to sign in"),
    "browser": say("Remembered browser"),
    "session": say("Session"),
    "service_user": say("Service user"),
    "service_user_key": say("Key"),
    "service_user_secret": say("Client secret of a service user"),
    "personal_access_token": say("Personal access token"),
    "application": say("Application"),
    "upstream_provider": say("Identity provider"),
    "linked_identity": say("Linked account"),
    "consent": say("Consent"),
    "client_secret": say("Client secret"),
    "manager": say("Manager"),
    "signing_key": say("Signing key"),
    "legal_hold": say("Legal hold"),
    "backup": say("Backup"),
    "token": say("Token"),
    "authentication": say("Sign-in"),
    "authorization": say("Request of an application"),
    "access": say("Access"),
}

#: What events are about; some kinds are no subject of a name.
KIND_WORDS = {**SUBJECT_WORDS, "route": say("Address"), "token_family": say("Tokens of one sign-in")}

#: Reasons of refusals that are recorded in one wording each; others are shown as they were recorded.
REASON_WORDS = {
    "unknown login name": say("The login name is unknown."),
    "wrong password": say("The password was wrong."),
    "wrong factor": say("The second factor was wrong."),
    "deactivated": say("The user or its organization is deactivated."),
    "too many attempts at one account": say("Too many attempts at one account."),
    "too many attempts from one address": say("Too many attempts from one network address."),
    "no live key of this id and user": say("The key is unknown, expired or removed, or belongs to another user."),
    "iat is too old": say("The assertion is too old."),
    "iat is in the future": say("The assertion is from the future; check the clock of the program."),
    "assertion expired": say("The assertion has expired."),
    "jti was used before": say("The assertion was used before."),
    "unknown client, wrong secret or deactivated": say("The client id or secret is wrong, or it is deactivated."),
    "unknown service user, wrong secret or deactivated": say("The client id or secret is wrong, or it is deactivated."),
    "unknown client or deactivated": say("The application is unknown or deactivated."),
}


def factor_words(event: AuditEvent, factors: Mapping[str, Factor], words: Words) -> str:
    """Which factor an event is about, and what its person calls it; empty for any other event."""
    kind, name = event.detail.get("factor"), event.detail.get("name")
    if not event.event.startswith("factor.") or not isinstance(kind, str):
        return ""
    known = factors.get(kind)
    label = kind if known is None else words.plain(known.label)
    return f"{label}: {name}" if isinstance(name, str) and name else label

"""Labels of audit events, the message flashed to the user who caused one, and labels of their objects."""

from collections.abc import Mapping

from identity.domain.audit import AuditEvent
from identity.domain.messages import gettext_lazy
from identity.pages.translation import Translator
from identity.provider.factor import Factor

#: Each event's label in lists, and the message flashed after it; empty if none is needed.
#: Of a user, a service user, an application and an organization.
_ACCESS_REVOKED = gettext_lazy("All sessions and tokens have ended.")

_EVENTS = {
    "instance.bootstrapped": (gettext_lazy("Service set up"), ""),
    "organization.created": (
        gettext_lazy("Organization created"),
        gettext_lazy("Organization created. Add a manager for it."),
    ),
    "organization.changed": (gettext_lazy("Organization changed"), gettext_lazy("The changes are saved.")),
    "policy.changed": (
        gettext_lazy("Policy changed"),
        gettext_lazy("The policy is saved. It applies from the next sign-in or request."),
    ),
    "mail_server.changed": (
        gettext_lazy("Mail server changed"),
        gettext_lazy("The mail server is saved. Send a test mail."),
    ),
    "mail_server.tested": (gettext_lazy("Test mail sent"), ""),
    "directory.tested": (gettext_lazy("Directory tested"), ""),
    "mail.retried": (gettext_lazy("Mail sent again"), gettext_lazy("The mail is sent again now.")),
    "mail.cancelled": (gettext_lazy("Mail cancelled"), gettext_lazy("The mail is not sent any more.")),
    "mail_text.changed": (gettext_lazy("Texts of mails changed"), gettext_lazy("The changes are saved.")),
    "mail_text.tested": (gettext_lazy("Text of a mail tried"), gettext_lazy("The mail is on its way to you.")),
    "organization.deactivated": (
        gettext_lazy("Organization deactivated"),
        gettext_lazy("Organization deactivated. Its users can no longer sign in."),
    ),
    "organization.reactivated": (gettext_lazy("Organization reactivated"), gettext_lazy("Organization reactivated.")),
    "organization.removed": (gettext_lazy("Organization deleted"), gettext_lazy("Organization deleted.")),
    "organization.access_revoked": (gettext_lazy("Access of the organization revoked"), _ACCESS_REVOKED),
    "organization.exported": (gettext_lazy("Organization exported"), ""),
    "organization.imported": (
        gettext_lazy("Organization imported"),
        gettext_lazy(
            "Organization imported. Give its people links for new passwords, and its applications new secrets."
        ),
    ),
    "domain.asked": (
        gettext_lazy("Domain requested"),
        gettext_lazy("Domain added. It becomes active once it is verified."),
    ),
    "domain.verified": (
        gettext_lazy("Domain verified"),
        gettext_lazy("The domain is verified. You can make it the primary one."),
    ),
    "domain.asserted": (gettext_lazy("Domain asserted without verification"), gettext_lazy("The domain is asserted.")),
    "domain.removed": (gettext_lazy("Domain removed"), gettext_lazy("Domain removed.")),
    "project.created": (
        gettext_lazy("Project created"),
        gettext_lazy("Project created. Register its first application."),
    ),
    "project.changed": (gettext_lazy("Project changed"), gettext_lazy("The changes are saved.")),
    "project.deactivated": (
        gettext_lazy("Project deactivated"),
        gettext_lazy("Project deactivated. Its applications no longer work."),
    ),
    "project.reactivated": (gettext_lazy("Project reactivated"), gettext_lazy("Project reactivated.")),
    "project.removed": (gettext_lazy("Project deleted"), gettext_lazy("Project deleted.")),
    "project_role.added": (gettext_lazy("Role added to a project"), gettext_lazy("Role added.")),
    "project_role.changed": (gettext_lazy("Role of a project changed"), gettext_lazy("The changes are saved.")),
    "project_role.removed": (gettext_lazy("Role removed from a project"), gettext_lazy("Role deleted.")),
    "project_grant.accepted": (gettext_lazy("Project grant accepted"), ""),
    "project_grant.added": (
        gettext_lazy("Project granted to an organization"),
        gettext_lazy("Project granted. Managers of the organization can now grant the roles to their users."),
    ),
    "project_grant.changed": (
        gettext_lazy("Roles of a project grant changed"),
        gettext_lazy("The granted roles are changed."),
    ),
    "project_grant.deactivated": (
        gettext_lazy("Project grant deactivated"),
        gettext_lazy("Project grant deactivated. Its users have no access."),
    ),
    "project_grant.ending": (gettext_lazy("Project grant ends soon"), ""),
    "project_grant.reactivated": (
        gettext_lazy("Project grant reactivated"),
        gettext_lazy("Project grant reactivated."),
    ),
    "project_grant.removed": (gettext_lazy("Project grant withdrawn"), gettext_lazy("Project grant withdrawn.")),
    "user_grant.added": (gettext_lazy("Project roles granted to a user"), gettext_lazy("The roles are granted.")),
    "user_grant.changed": (gettext_lazy("Project roles of a user changed"), gettext_lazy("The roles are changed.")),
    "user_grant.deactivated": (gettext_lazy("Project roles of a user deactivated"), ""),
    "user_grant.ending": (gettext_lazy("Project roles of a user end soon"), ""),
    "user_grant.reactivated": (gettext_lazy("Project roles of a user reactivated"), ""),
    "user_grant.removed": (gettext_lazy("Project roles removed from a user"), gettext_lazy("The roles are removed.")),
    "group.added": (gettext_lazy("Group added"), gettext_lazy("The group is added. Add members and roles.")),
    "group.changed": (gettext_lazy("Group changed"), gettext_lazy("The changes are saved.")),
    "group.deactivated": (
        gettext_lazy("Group deactivated"),
        gettext_lazy("The group is deactivated. Its members no longer have its roles."),
    ),
    "group.reactivated": (
        gettext_lazy("Group reactivated"),
        gettext_lazy("The group is active. Its members have its roles again."),
    ),
    "group.removed": (gettext_lazy("Group removed"), gettext_lazy("The group is removed.")),
    "group_member.added": (
        gettext_lazy("User added to a group"),
        gettext_lazy("The user is a member of the group."),
    ),
    "group_member.changed": (gettext_lazy("Group membership changed"), gettext_lazy("The membership is changed.")),
    "group_member.ending": (gettext_lazy("Group membership ends soon"), ""),
    "group_member.removed": (
        gettext_lazy("User removed from a group"),
        gettext_lazy("The user is no longer a member of the group."),
    ),
    "group_grant.added": (gettext_lazy("Project roles granted to a group"), gettext_lazy("The roles are granted.")),
    "group_grant.changed": (gettext_lazy("Project roles of a group changed"), gettext_lazy("The roles are changed.")),
    "group_grant.ending": (gettext_lazy("Project roles of a group end soon"), ""),
    "group_grant.removed": (gettext_lazy("Project roles removed from a group"), gettext_lazy("The roles are removed.")),
    "group_manager.added": (
        gettext_lazy("Manager roles granted to a group"),
        gettext_lazy("The manager roles are granted."),
    ),
    "group_manager.changed": (
        gettext_lazy("Manager roles of a group changed"),
        gettext_lazy("The manager roles are changed."),
    ),
    "group_manager.ending": (gettext_lazy("Manager roles of a group end soon"), ""),
    "group_manager.removed": (
        gettext_lazy("Manager roles removed from a group"),
        gettext_lazy("The manager roles are removed."),
    ),
    "attribute_mapping.added": (
        gettext_lazy("Attribute mapping added"),
        gettext_lazy("The attribute mapping is added."),
    ),
    "attribute_mapping.changed": (
        gettext_lazy("Attribute mapping changed"),
        gettext_lazy("The changes are saved. The attribute mapping acts with your rights."),
    ),
    "attribute_mapping.refused": (gettext_lazy("Attribute mapping did not change the person"), ""),
    "attribute_mapping.removed": (
        gettext_lazy("Attribute mapping removed"),
        gettext_lazy("The attribute mapping is removed."),
    ),
    "group_mapping.added": (gettext_lazy("Group mapping added"), gettext_lazy("The group mapping is added.")),
    "group_mapping.changed": (
        gettext_lazy("Group mapping changed"),
        gettext_lazy("The changes are saved. The group mapping acts with your rights."),
    ),
    "group_mapping.refused": (gettext_lazy("Group mapping did not add the person"), ""),
    "group_mapping.removed": (gettext_lazy("Group mapping removed"), gettext_lazy("The group mapping is removed.")),
    "user.created": (gettext_lazy("User created"), ""),
    "user.registered": (gettext_lazy("User registered"), ""),
    "user.changed": (gettext_lazy("User changed"), gettext_lazy("The changes are saved.")),
    "user.deactivated": (
        gettext_lazy("User deactivated"),
        gettext_lazy("User deactivated. All sessions and tokens have ended."),
    ),
    "user.reactivated": (gettext_lazy("User reactivated"), gettext_lazy("User reactivated.")),
    "user.removed": (gettext_lazy("User deleted"), gettext_lazy("User deleted.")),
    "user.access_revoked": (gettext_lazy("Access of the user revoked"), _ACCESS_REVOKED),
    "user.recovered": (gettext_lazy("Access restored by the operator"), ""),
    "user.unlocked": (
        gettext_lazy("User unlocked"),
        gettext_lazy("User unlocked. The password works in every browser again."),
    ),
    "user_import.started": (gettext_lazy("Import of users started"), ""),
    "user_import.finished": (gettext_lazy("Import of users finished"), ""),
    "user.exported": (gettext_lazy("Personal data exported"), ""),
    "user.deletion_asked": (gettext_lazy("Account deletion requested"), ""),
    "user.deletion_withdrawn": (gettext_lazy("Account deletion cancelled"), gettext_lazy("The account stays.")),
    "user.reported": (gettext_lazy("Unauthorized access reported"), ""),
    "user.impersonation_started": (gettext_lazy("A manager signed in as this person"), ""),
    "user.impersonation_ended": (
        gettext_lazy("A manager's sign-in as this person ended"),
        gettext_lazy("You are back in your own session."),
    ),
    "password.set": (gettext_lazy("One-time password set"), ""),
    "password.changed": (gettext_lazy("Password changed"), ""),
    "password.link_issued": (gettext_lazy("Password link created"), ""),
    "password.link_asked": (gettext_lazy("Password link requested"), ""),
    "email.link_issued": (gettext_lazy("Email confirmation link sent"), ""),
    "email.verified": (gettext_lazy("Email address confirmed"), ""),
    "factor.added": (gettext_lazy("Sign-in method added"), ""),
    "factor.changed": (gettext_lazy("Sign-in method renamed"), ""),
    "factor.used": (gettext_lazy("Backup sign-in method used"), ""),
    "factor.suspected": (gettext_lazy("Copy of a passkey suspected"), ""),
    "factor.removed": (gettext_lazy("Sign-in method removed"), ""),
    "factor.reset": (gettext_lazy("Second factors reset"), gettext_lazy("The second factors are reset.")),
    "browser.remembered": (gettext_lazy("Browser remembered for second factors"), ""),
    "browser.forgotten": (gettext_lazy("Browser forgotten for second factors"), ""),
    "session.started": (gettext_lazy("Signed in"), ""),
    "session.renewed": (gettext_lazy("Signed in again"), ""),
    "session.ended": (gettext_lazy("Signed out"), gettext_lazy("Signed out.")),
    "service_user.created": (
        gettext_lazy("Service user created"),
        gettext_lazy("Service user created. Add a key so that a program can sign in."),
    ),
    "service_user.changed": (gettext_lazy("Service user changed"), gettext_lazy("The changes are saved.")),
    "service_user.deactivated": (
        gettext_lazy("Service user deactivated"),
        gettext_lazy("Service user deactivated. Its tokens no longer work."),
    ),
    "service_user.reactivated": (gettext_lazy("Service user reactivated"), gettext_lazy("Service user reactivated.")),
    "service_user.removed": (gettext_lazy("Service user deleted"), gettext_lazy("Service user deleted.")),
    "service_user.access_revoked": (gettext_lazy("Access of the service user revoked"), _ACCESS_REVOKED),
    "agent.created": (gettext_lazy("Agent created"), ""),
    "agent.confirmed": (gettext_lazy("Agent confirmed by its owner"), ""),
    "agent.stopped": (gettext_lazy("Agent stopped"), gettext_lazy("The agents are stopped.")),
    "agent.key_added": (gettext_lazy("Key of an agent added"), ""),
    "service_user_key.added": (gettext_lazy("Key of a service user added"), gettext_lazy("Key added.")),
    "service_user_key.removed": (
        gettext_lazy("Key of a service user removed"),
        gettext_lazy("Key removed. Its tokens no longer work."),
    ),
    "service_user_key.expiring": (gettext_lazy("Key of a service user expires soon"), ""),
    "service_user_secret.added": (gettext_lazy("Client secret of a service user created"), ""),
    "service_user_secret.removed": (
        gettext_lazy("Client secret of a service user revoked"),
        gettext_lazy("Client secret revoked. Its tokens no longer work."),
    ),
    "personal_access_token.added": (gettext_lazy("Personal access token created"), ""),
    "personal_access_token.removed": (
        gettext_lazy("Personal access token removed"),
        gettext_lazy("Personal access token removed. It no longer works."),
    ),
    "personal_access_token.expiring": (gettext_lazy("Personal access token expires soon"), ""),
    "federated_credential.added": (
        gettext_lazy("Federated credential added"),
        gettext_lazy("Federated credential added."),
    ),
    "federated_credential.removed": (
        gettext_lazy("Federated credential removed"),
        gettext_lazy("Federated credential removed. Its tokens no longer work."),
    ),
    "application.created": (gettext_lazy("Application created"), gettext_lazy("Application registered.")),
    "application.changed": (gettext_lazy("Application changed"), gettext_lazy("The changes are saved.")),
    "application.deactivated": (
        gettext_lazy("Application deactivated"),
        gettext_lazy("Application deactivated. It no longer gets tokens."),
    ),
    "application.reactivated": (gettext_lazy("Application reactivated"), gettext_lazy("Application reactivated.")),
    "application.removed": (gettext_lazy("Application deleted"), gettext_lazy("Application deleted.")),
    "application.access_revoked": (gettext_lazy("Access of the application revoked"), _ACCESS_REVOKED),
    "application.disconnected": (
        gettext_lazy("Application disconnected by its user"),
        gettext_lazy("The application is disconnected."),
    ),
    "attribute.created": (
        gettext_lazy("Attribute created"),
        gettext_lazy("Attribute created. It is part of every user's form now."),
    ),
    "attribute.changed": (gettext_lazy("Attribute changed"), gettext_lazy("The changes are saved.")),
    "attribute.removed": (
        gettext_lazy("Attribute deleted"),
        gettext_lazy("Attribute deleted, with the values of all users."),
    ),
    "upstream_provider.created": (
        gettext_lazy("Identity provider added"),
        gettext_lazy("Identity provider added. Try it now."),
    ),
    "upstream_provider.changed": (gettext_lazy("Identity provider changed"), gettext_lazy("The changes are saved.")),
    "upstream_provider.deactivated": (
        gettext_lazy("Identity provider deactivated"),
        gettext_lazy("Identity provider deactivated. People can no longer sign in with it."),
    ),
    "upstream_provider.reactivated": (
        gettext_lazy("Identity provider reactivated"),
        gettext_lazy("Identity provider reactivated."),
    ),
    "upstream_provider.removed": (
        gettext_lazy("Identity provider deleted"),
        gettext_lazy("Identity provider deleted."),
    ),
    "webhook.created": (gettext_lazy("Webhook added"), gettext_lazy("Webhook added. Send a test message now.")),
    "webhook.changed": (gettext_lazy("Webhook changed"), gettext_lazy("The changes are saved.")),
    "webhook.deactivated": (
        gettext_lazy("Webhook deactivated"),
        gettext_lazy("Webhook deactivated. It gets no messages."),
    ),
    "webhook.reactivated": (gettext_lazy("Webhook reactivated"), gettext_lazy("Webhook reactivated.")),
    "webhook.removed": (gettext_lazy("Webhook deleted"), gettext_lazy("Webhook deleted.")),
    "webhook.secret_rotated": (gettext_lazy("Signing secret of a webhook replaced"), ""),
    "webhook.secret_retired": (
        gettext_lazy("Previous signing secret of a webhook ended"),
        gettext_lazy("Messages are now signed with the current secret only."),
    ),
    "webhook.tested": (
        gettext_lazy("Test message to a webhook"),
        gettext_lazy("The test message is on its way. Reload the page to see what the receiver answered."),
    ),
    "webhook.resent": (
        gettext_lazy("Message to a webhook sent again"),
        gettext_lazy("The message is sent again. Reload the page to see what the receiver answered."),
    ),
    "linked_identity.added": (gettext_lazy("External account linked"), gettext_lazy("The account is linked.")),
    "linked_identity.removed": (gettext_lazy("External account unlinked"), gettext_lazy("The account is unlinked.")),
    "identity_assertion.accepted": (gettext_lazy("Identity assertion accepted"), ""),
    "identity_assertion.issued": (gettext_lazy("Identity assertion issued"), ""),
    "initial_access_token.added": (gettext_lazy("Initial access token added"), ""),
    "initial_access_token.removed": (gettext_lazy("Initial access token revoked"), ""),
    "device.approved": (gettext_lazy("Sign-in on a device approved"), ""),
    "device.denied": (gettext_lazy("Sign-in on a device denied"), ""),
    "device.disconnected": (gettext_lazy("Device disconnected"), gettext_lazy("The device is disconnected.")),
    "consent.given": (gettext_lazy("Application access allowed"), ""),
    "consent.refused": (gettext_lazy("Application access denied"), ""),
    "consent.withdrawn": (
        gettext_lazy("Consent to an application withdrawn"),
        gettext_lazy("The application is disconnected."),
    ),
    "branding.changed": (gettext_lazy("Branding changed"), gettext_lazy("The changes are saved.")),
    "client_secret.added": (gettext_lazy("Client secret of an application created"), ""),
    "client_secret.removed": (
        gettext_lazy("Client secret of an application revoked"),
        gettext_lazy("Client secret revoked."),
    ),
    "manager.added": (gettext_lazy("Manager added"), gettext_lazy("The manager role is granted.")),
    "manager.changed": (gettext_lazy("Manager roles changed"), gettext_lazy("The manager roles are changed.")),
    "manager.ending": (gettext_lazy("Manager roles end soon"), ""),
    "manager.removed": (gettext_lazy("Manager removed"), gettext_lazy("The manager roles are removed.")),
    # Listed before the creation of the key that replaces it.
    "signing_key.withdrawn": (
        gettext_lazy("Signing key withdrawn"),
        gettext_lazy("The signing key is withdrawn. Tokens it signed are no longer valid."),
    ),
    "signing_key.added": (gettext_lazy("Signing key created"), gettext_lazy("The next signing key is created.")),
    "signing_key.retired": (gettext_lazy("Signing key retired, because its algorithm was switched off"), ""),
    "signing_key.removed": (gettext_lazy("Signing key removed"), ""),
    "signing_key.rewrapped": (gettext_lazy("Signing key sealed under another master key"), ""),
    "legal_hold.placed": (gettext_lazy("Legal hold placed"), gettext_lazy("The legal hold is placed.")),
    "legal_hold.released": (gettext_lazy("Legal hold released"), gettext_lazy("The legal hold is lifted.")),
    "backup.made": (gettext_lazy("Backup made"), ""),
    "backup.restored": (gettext_lazy("Backup restored"), ""),
    "token.revoked": (gettext_lazy("Token revoked"), ""),
    "token.replayed": (gettext_lazy("Code or refresh token used twice"), ""),
    "authentication.refused": (gettext_lazy("Sign-in refused"), ""),
    "authorization.refused": (gettext_lazy("Request of an application refused"), ""),
    "access.refused": (gettext_lazy("Action refused"), ""),
}

#: Of several events the first one is flashed: an import comes before the events of its content.
_IMPORTED = "organization.imported"
FLASH_MESSAGES = {name: _EVENTS[name][1] for name in (_IMPORTED, *_EVENTS) if _EVENTS[name][1]}

#: The first part of event names, which a filter accepts alone.
SUBJECT_LABELS = {
    "instance": gettext_lazy("Instance"),
    "organization": gettext_lazy("Organization"),
    "domain": gettext_lazy("Domain"),
    "branding": gettext_lazy("Branding"),
    "policy": gettext_lazy("Sign-in policy"),
    "project": gettext_lazy("Project"),
    "project_role": gettext_lazy("Project role"),
    "project_grant": gettext_lazy("Project grant"),
    "user_grant": gettext_lazy("User grant"),
    "group": gettext_lazy("Group"),
    "group_member": gettext_lazy("Group membership"),
    "group_grant": gettext_lazy("Project roles of a group"),
    "group_manager": gettext_lazy("Manager roles of a group"),
    "group_mapping": gettext_lazy("Group mapping"),
    "attribute_mapping": gettext_lazy("Attribute mapping"),
    "user": gettext_lazy("User"),
    "user_import": gettext_lazy("Import of users"),
    "password": gettext_lazy("Password"),
    "email": gettext_lazy("Email address"),
    "factor": gettext_lazy("Sign-in method"),
    "browser": gettext_lazy("Remembered browser"),
    "session": gettext_lazy("Session"),
    "service_user": gettext_lazy("Service user"),
    "agent": gettext_lazy("Agent"),
    "service_user_key": gettext_lazy("Key"),
    "service_user_secret": gettext_lazy("Client secret of a service user"),
    "personal_access_token": gettext_lazy("Personal access token"),
    "federated_credential": gettext_lazy("Federated credential"),
    "application": gettext_lazy("Application"),
    "attribute": gettext_lazy("Attribute"),
    "upstream_provider": gettext_lazy("Identity provider"),
    "webhook": gettext_lazy("Webhook"),
    "linked_identity": gettext_lazy("Linked account"),
    "device": gettext_lazy("Device"),
    "identity_assertion": gettext_lazy("Identity assertion"),
    "initial_access_token": gettext_lazy("Initial access token"),
    "consent": gettext_lazy("Consent"),
    "client_secret": gettext_lazy("Client secret"),
    "manager": gettext_lazy("Manager"),
    "signing_key": gettext_lazy("Signing key"),
    "legal_hold": gettext_lazy("Legal hold"),
    "backup": gettext_lazy("Backup"),
    "directory": gettext_lazy("Directory"),
    "mail_server": gettext_lazy("Mail server"),
    "mail": gettext_lazy("Mail"),
    "mail_text": gettext_lazy("Texts of mails"),
    "token": gettext_lazy("Token"),
    "authentication": gettext_lazy("Sign-in"),
    "authorization": gettext_lazy("Request of an application"),
    "access": gettext_lazy("Access"),
}

#: Kinds of objects that are not the first part of an event name.
OBJECT_KIND_LABELS = {
    **SUBJECT_LABELS,
    "route": gettext_lazy("Address"),
    "token_family": gettext_lazy("Tokens of one sign-in"),
}

#: Reasons of refusals with a fixed text; other reasons are shown as recorded.
_REASONS = {
    "unknown login name": gettext_lazy("The login name is unknown."),
    "wrong password": gettext_lazy("The password was wrong."),
    "wrong factor": gettext_lazy("The second factor was wrong."),
    "deactivated": gettext_lazy("The user or its organization is deactivated."),
    "too many attempts at one account": gettext_lazy("Too many attempts at one account."),
    "too many attempts from one address": gettext_lazy("Too many attempts from one network address."),
    "no live key of this id and user": gettext_lazy(
        "The key is unknown, expired or removed, or belongs to another user."
    ),
    "iat is too old": gettext_lazy("The assertion is too old."),
    "iat is in the future": gettext_lazy("The assertion is from the future; check the program's clock."),
    "assertion expired": gettext_lazy("The assertion has expired."),
    "jti was used before": gettext_lazy("The assertion was used before."),
    "unknown client, wrong secret or deactivated": gettext_lazy(
        "The client id or secret is wrong, or it is deactivated."
    ),
    "unknown service user, wrong secret or deactivated": gettext_lazy(
        "The client id or secret is wrong, or it is deactivated."
    ),
    "unknown client or deactivated": gettext_lazy("The application is unknown or deactivated."),
}


class EventLabels:
    """What events and their reasons are called, before translation."""

    EVENTS: Mapping[str, str] = {name: message for name, (message, _) in _EVENTS.items()}
    REASONS: Mapping[str, str] = _REASONS

    @staticmethod
    def factor(event: AuditEvent, factors: Mapping[str, Factor], translator: Translator) -> str:
        """The factor of the event and its label; empty for other events."""
        kind, name = event.detail.get("factor"), event.detail.get("name")
        if not event.event.startswith("factor.") or not isinstance(kind, str):
            return ""
        known = factors.get(kind)
        label = kind if known is None else translator.gettext_plain(known.label)
        return f"{label}: {name}" if isinstance(name, str) and name else label

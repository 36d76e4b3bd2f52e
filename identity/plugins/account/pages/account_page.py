"""AccountPage, the base class of pages below /account: frame, user, flash message."""

from collections.abc import Mapping
from typing import ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.api.endpoints import Cookie, CookieKind
from identity.api.entities import HumanUser, Invalid, Subject
from identity.api.pages import (
    Form,
    FormRedisplay,
    NavigationGroup,
    NavigationItem,
    Page,
    SignedInPage,
    gettext_lazy,
    request_cookie_headers,
)
from identity.api.sign_in import LoginName

PROFILE_PATH = f"{Page.ACCOUNT_PATH}/profile"
SECURITY_PATH = f"{Page.ACCOUNT_PATH}/security"
PASSWORD_PATH = f"{Page.ACCOUNT_PATH}/password"
FACTORS_PATH = f"{Page.ACCOUNT_PATH}/factors"
REMEMBERED_BROWSERS_PATH = f"{Page.ACCOUNT_PATH}/browsers"
SESSIONS_PATH = f"{Page.ACCOUNT_PATH}/sessions"
APPLICATIONS_PATH = f"{Page.ACCOUNT_PATH}/applications"
AGENTS_PATH = f"{Page.ACCOUNT_PATH}/agents"
ACTIVITY_PATH = f"{Page.ACCOUNT_PATH}/activity"
ACCOUNT_RECOVERY_PATH = f"{ACTIVITY_PATH}/not-me"
DATA_PATH = f"{Page.ACCOUNT_PATH}/data"
DELETE_PATH = f"{DATA_PATH}/delete"
#: Confirms a deletion request.
DELETION_REQUESTED_PATH = "/leaving"

_SECTIONS = (
    (PROFILE_PATH, gettext_lazy("Profile"), "users"),
    (SECURITY_PATH, gettext_lazy("Security"), "lock"),
    (SESSIONS_PATH, gettext_lazy("Sessions"), "device"),
    (APPLICATIONS_PATH, gettext_lazy("Applications"), "apps"),
    (AGENTS_PATH, gettext_lazy("Agents"), "key"),
    (ACTIVITY_PATH, gettext_lazy("Activity"), "audit"),
    (DATA_PATH, gettext_lazy("Data"), "download"),
)

#: Flash messages by event; of several events the first one here is shown.
_FLASH_MESSAGES = {
    "email.link_issued": gettext_lazy("We have sent a link to the new address. It takes effect once you open it."),
    "user.changed": gettext_lazy("Your profile is saved."),
    "password.changed": gettext_lazy("Your password is changed. All your other sessions are ended."),
    "factor.added": gettext_lazy("The sign-in method is added."),
    "factor.changed": gettext_lazy("The name is changed."),
    "factor.removed": gettext_lazy("The sign-in method is removed."),
    "browser.forgotten": gettext_lazy("The browser is asked again."),
    "session.ended": gettext_lazy("Signed out."),
    "consent.withdrawn": gettext_lazy("The application is disconnected."),
    "device.disconnected": gettext_lazy("The device is disconnected."),
    "application.disconnected": gettext_lazy("The application is disconnected."),
    "agent.stopped": gettext_lazy("Your agents are stopped."),
    "agent.confirmed": gettext_lazy("The agent can act for you again."),
    "service_user_key.removed": gettext_lazy("The key is removed."),
    "service_user.removed": gettext_lazy("The agent is removed."),
}


class AccountPage(SignedInPage):
    """A page of the signed-in user, in one section of the navigation."""

    section: ClassVar[str]
    flash_messages = _FLASH_MESSAGES

    @property
    def human_user(self) -> HumanUser:
        """The signed-in user, read again."""
        person: HumanUser = self.request.services.users.get(self.subject.user.id)
        return person

    def common_variables(self) -> Mapping[str, object]:
        return {**super().common_variables(), "parent": self.translator.gettext("Your account")}

    def fragments(self) -> tuple[Markup, ...]:
        """Invisible markup of plugins, for pages about the profile and the sign-in methods."""
        return tuple(item for provide in self.renderer.account_fragments for item in provide(self))

    def navigation(self) -> tuple[NavigationGroup, ...]:
        t = self.translator.gettext
        items = (
            NavigationItem(label=t(label), href=href, icon=icon, is_current=href == self.section)
            for href, label, icon in _SECTIONS
        )
        return (NavigationGroup(items=tuple(items)),)

    def without_session_cookie(self, response: Response) -> Response:
        """The response, which deletes the ended session's cookie in the browser."""
        cookie = Cookie(CookieKind.SESSION, self.signed_in_account.session.id)
        response.headerlist.extend(request_cookie_headers(self.request, (cookie,)))
        return response

    def require_reauthentication(self, form: Form, field: str) -> None:
        """Require a recent authentication with all factors (security 19.5): the password in this form if the user has
        nothing stronger, else a sign-in. Raises Invalid for ``field``; FormRedisplay."""
        if self.is_password_sole_factor:
            self.verify_password(form.text(field))
        elif not self.is_recently_authenticated():
            raise FormRedisplay(
                gettext_lazy("This requires a sign-in within the last ten minutes."),
                link=(self.reauthenticate, gettext_lazy("Sign in again")),
            )

    def verify_password(self, current: str) -> Subject:
        """Verify the current password, since an unattended session must not suffice to take over the account. Attempts
        count as on the sign-in pages and are committed. Raises Invalid for ``current_password``; FormRedisplay."""
        if not current:
            raise Invalid({"current_password": gettext_lazy("Enter your current password.")})
        # Committed, so that no lock is held during the rest.
        subject: Subject | None = self.request.run_once(
            "proof", lambda: self.attempt_password(LoginName.parse(self.subject.login_name), current)
        )
        if subject is None or subject.user.id != self.subject.user.id:
            raise Invalid({"current_password": gettext_lazy("This is not your current password.")})
        return subject

"""SignedInPage, the base class of account and console pages: session, account menu, language."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar
from urllib.parse import urlencode

from pyramid.config import Configurator
from pyramid.response import Response

from identity.domain.authentication import Proof
from identity.domain.sessions import SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.http.endpoint_routes import request_context
from identity.http.impersonation import refuse_impersonator
from identity.http.language_negotiation import UI_LOCALES_PARAM
from identity.pages.flash_messages import flashed_event, path_with_flash
from identity.pages.layout import (
    AccountMenuEntry,
    NavigationGroup,
    NavigationItem,
    OrganizationSwitcher,
    PageLayout,
    SignedInUser,
)
from identity.pages.page import Page
from identity.pages.rendering import ACCOUNT_PATH
from identity.provider.logout import CONFIRMATION_PATH
from identity.provider.step_up import can_step_up


class SignedInPage(Page):
    #: The account switcher posts here.
    SWITCH_PATH = f"{ACCOUNT_PATH}/switch"
    #: The choice of a theme in the account menu posts here.
    THEME_PATH = "/theme"
    #: Maximum age of the authentication for sensitive pages, and the parameter of /login that requests a new one.
    RECENT_AUTHENTICATION_AGE = timedelta(minutes=10)
    RECENT_AUTHENTICATION_PARAM = "fresh"

    #: True for a page that requires an authentication in the last ten minutes, with all of the user's factors.
    requires_recent_authentication: ClassVar[bool] = False

    #: The logo's link, and the current entry of the account menu.
    home_path: ClassVar[str] = ACCOUNT_PATH
    #: Flash messages by event; of several events the first one here is shown.
    flash_messages: ClassVar[Mapping[str, str]] = {}

    @property
    def signed_in_account(self) -> SignedInAccount:
        account: SignedInAccount = self.request.signed_in_account
        return account

    @property
    def subject(self) -> Subject:
        return self.signed_in_account.subject

    def early_response(self) -> Response | None:
        """Redirects to a sign-in that returns here, if a recent authentication is required."""
        if not self.requires_recent_authentication:
            return None
        refuse_impersonator(self.request)
        if self.is_recently_authenticated():
            return None
        return self.redirect(self.reauthenticate)

    @property
    def reauthenticate(self) -> str:
        """The path of a new authentication with all factors, which returns here."""
        path = self.request.path_qs if self.request.method == "GET" else self.request.path
        return f"{Page.LOGIN_PATH}?{urlencode({Page.TARGET_PARAM: path, self.RECENT_AUTHENTICATION_PARAM: 'yes'})}"

    def is_recently_authenticated(self) -> bool:
        """True if the user authenticated in the last ten minutes, with all of their factors."""
        session, context = self.signed_in_account.session, request_context(self.request)
        if session.is_impersonated:
            return False
        young = (
            session.last_proof_at is not None and context.now - session.last_proof_at < self.RECENT_AUTHENTICATION_AGE
        )
        return young and not can_step_up(self.subject, session.amr_methods, context)

    @property
    def is_password_sole_factor(self) -> bool:
        """True if the password is the user's only factor."""
        services, context = self.request.services, request_context(self.request)
        has_one = services.storage.users.find_password(self.subject.user.id) is not None
        return has_one and not can_step_up(self.subject, (Proof.PASSWORD_METHOD,), context)

    def preferred_locales(self) -> str:
        """The user's language, unless the URL names another."""
        user = self.subject.user
        if UI_LOCALES_PARAM in self.request.GET or not isinstance(user, HumanUser):
            return ""
        return user.profile.locale.replace("_", "-")

    def path_with_flash(self, path: str) -> str:
        return path_with_flash(path, self.request, self.flash_messages)

    def flash_message(self) -> object:
        """The message about the change that led here, with a link to its event if there is one; None without a
        change.
        """
        event = flashed_event(self.request)
        sentence = None if event is None else self.flash_messages.get(event.event)
        return None if sentence is None else self.translator.gettext(sentence)

    def navigation(self) -> tuple[NavigationGroup, ...]:
        return ()

    def organization_switcher(self) -> OrganizationSwitcher | None:
        return None

    def common_variables(self) -> Mapping[str, object]:
        """Adds the frame and the flash message."""
        return {"frame": self._layout(), "done": self.flash_message()}

    @property
    def search_path(self) -> str:
        """The page that searches; empty if there is none."""
        return ""

    @property
    def help_path(self) -> str:
        """The documentation of this page; empty if there is none."""
        return ""

    def _layout(self) -> PageLayout:
        user, is_impersonated = self.subject.user, self.signed_in_account.session.is_impersonated
        name = user.display_name if isinstance(user, HumanUser) else user.user_name
        session_id = self.signed_in_account.session.id
        return PageLayout(
            home_path=self.home_path,
            groups=self.navigation(),
            user=SignedInUser(name=name, login_name=self.subject.login_name),
            session_id=session_id,
            sign_out_path=CONFIRMATION_PATH,
            account_items=self._account_items(),
            switcher=self.organization_switcher(),
            switch_path="" if is_impersonated else self.SWITCH_PATH,
            other_accounts=tuple(item for item in self.live_accounts if item.session.id != session_id),
            theme_path="" if is_impersonated else self.THEME_PATH,
            current_path=self.request.path_qs,
            search_path=self.search_path,
            help_path=self.help_path,
        )

    def _account_items(self) -> tuple[NavigationItem, ...]:
        manages = bool(self.request.identity.manager_entries)
        return tuple(
            NavigationItem(
                label=self.translator.gettext(entry.label), href=entry.href, is_current=entry.href == self.home_path
            )
            for entry in self.renderer.menu
            if manages or not entry.requires_manager_role
        )


def add_account_menu_entry(config: Configurator, label: str, href: str, *, for_managers: bool = False) -> None:
    """Directive: add an entry to the account menu."""
    config.registry.pages.menu.append(AccountMenuEntry(label, href, for_managers))


def includeme(config: Configurator) -> None:
    config.add_directive("add_account_menu_entry", add_account_menu_entry)

"""SignedInPage: what account and console have in common: who is signed in, the menu of accounts, the language."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar
from urllib.parse import urlencode

from pyramid.config import Configurator
from pyramid.response import Response

from identity.domain.errors import Conflict
from identity.domain.sessions import SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.http.endpoint_routes import request_context
from identity.http.language_negotiation import UI_LOCALES_PARAM
from identity.pages.error_pages import LOGIN_PATH, TARGET_PARAM
from identity.pages.flash_messages import flashed_event, path_with_flash
from identity.pages.layout import (
    AccountMenuEntry,
    NavigationGroup,
    NavigationItem,
    OrganizationSwitcher,
    PageLayout,
    SignedInUser,
    SwitchableAccount,
)
from identity.pages.page import Page
from identity.pages.rendering import ACCOUNT_PATH
from identity.provider.endpoints.end_session import CONFIRMATION_PATH
from identity.provider.step_up import can_step_up

#: Where the choice of another account is posted.
ACCOUNT_SWITCH_PATH = f"{ACCOUNT_PATH}/switch"


#: How long ago somebody may have proved who they are for what only they may do, and the parameter of /login for it.
RECENT_AUTHENTICATION_AGE, RECENT_AUTHENTICATION_PARAM = timedelta(minutes=10), "fresh"


class SignedInPage(Page):
    """A page of the frame for the person who is signed in."""

    #: True for a page that is seen by whoever has proved in the last ten minutes who they are, as well as they can.
    requires_recent_authentication: ClassVar[bool] = False

    #: Where the mark leads, and which entry of the account menu is the present one.
    home_path: ClassVar[str] = ACCOUNT_PATH
    #: What is said after a change, by its event; of several the first one here.
    flash_messages: ClassVar[Mapping[str, str]] = {}

    @property
    def signed_in_account(self) -> SignedInAccount:
        """The session with which the page works."""
        account: SignedInAccount = self.request.signed_in_account
        return account

    @property
    def subject(self) -> Subject:
        """Whose session it is."""
        return self.signed_in_account.subject

    def early_response(self) -> Response | None:
        """To a sign-in that leads back here, if who they are has to be proved again."""
        if not self.requires_recent_authentication or self.is_recently_authenticated():
            return None
        return self.redirect(self.reauthenticate)

    @property
    def reauthenticate(self) -> str:
        """Where who they are is proved again, as well as they can; it leads back here."""
        path = self.request.path_qs if self.request.method == "GET" else self.request.path
        return f"{LOGIN_PATH}?{urlencode({TARGET_PARAM: path, RECENT_AUTHENTICATION_PARAM: 'yes'})}"

    def is_recently_authenticated(self) -> bool:
        """True if the person has proved in the last ten minutes who they are, as well as they can."""
        session, context = self.signed_in_account.session, request_context(self.request)
        young = session.last_proof_at is not None and context.now - session.last_proof_at < RECENT_AUTHENTICATION_AGE
        return young and not can_step_up(self.subject, session.amr_methods, context)

    def preferred_locales(self) -> str:
        """The person's own language, unless the address asks for another."""
        user = self.subject.user
        if UI_LOCALES_PARAM in self.request.GET or not isinstance(user, HumanUser):
            return ""
        return user.profile.locale.replace("_", "-")

    def path_with_flash(self, path: str) -> str:
        """The path, which is then to say what this request has done."""
        return path_with_flash(path, self.request, self.flash_messages)

    def flash_message(self) -> object:
        """The sentence for the change that led here, with a link to its event where there is one; None for none."""
        event = flashed_event(self.request)
        sentence = None if event is None else self.flash_messages.get(event.event)
        return None if sentence is None else self.translator.gettext(sentence)

    def navigation(self) -> tuple[NavigationGroup, ...]:
        """The links beside the page; none unless it says so."""
        return ()

    def organization_switcher(self) -> OrganizationSwitcher | None:
        """The menu that changes the organization, if there is more than one."""
        return None

    def common_variables(self) -> Mapping[str, object]:
        """The frame, and what was just done."""
        return {"frame": self._layout(), "done": self.flash_message()}

    def _layout(self) -> PageLayout:
        user = self.subject.user
        name = user.display_name if isinstance(user, HumanUser) else user.user_name
        return PageLayout(
            home_path=self.home_path,
            groups=self.navigation(),
            user=SignedInUser(name=name, login_name=self.subject.login_name),
            sign_out_path=CONFIRMATION_PATH,
            account_items=self._account_items(),
            switcher=self.organization_switcher(),
            switch_path=ACCOUNT_SWITCH_PATH,
            other_accounts=self._other_accounts(),
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

    def _other_accounts(self) -> tuple[SwitchableAccount, ...]:
        sessions = self.request.services.sessions
        accounts = sessions.list_by_secrets(self.request.browser_state.sessions.values())
        return tuple(
            SwitchableAccount(reference=account.session.id, login_name=account.subject.login_name)
            for account in accounts
            if sessions.is_live(account) and account.session.id != self.signed_in_account.session.id
        )


def parse_version(text: str) -> int:
    """The version that a form was drawn with. Raises Conflict if it does not say so."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise Conflict("The form does not say what it changes.")
    return int(text)


def add_account_menu_entry(config: Configurator, label: str, href: str, *, for_managers: bool = False) -> None:
    """Directive for plugins: a place of one's own in everybody's account menu."""
    config.registry.pages.menu.append(AccountMenuEntry(label, href, for_managers))


def includeme(config: Configurator) -> None:
    """Make the directive known."""
    config.add_directive("add_account_menu_entry", add_account_menu_entry)

"""One file per page of the account."""

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.pages import Page, SignedInPage
from identity.api.sign_in import PendingSignInContext
from identity.plugins.account.pages.account_page import (
    ACCOUNT_RECOVERY_PATH,
    ACTIVITY_PATH,
    AGENTS_PATH,
    APPLICATIONS_PATH,
    DATA_PATH,
    DELETE_PATH,
    FACTORS_PATH,
    PASSWORD_PATH,
    PROFILE_PATH,
    REMEMBERED_BROWSERS_PATH,
    SECURITY_PATH,
    SESSIONS_PATH,
)
from identity.plugins.account.pages.account_switch import SwitchAccountPage
from identity.plugins.account.pages.activity import ActivityPage, RecoverAccountPage
from identity.plugins.account.pages.agents import AgentPage, AgentsPage, NewAgentPage, RemoveAgentPage
from identity.plugins.account.pages.connected_applications import ConnectedApplicationsPage, DisconnectApplicationPage
from identity.plugins.account.pages.data_export import DataExportPage
from identity.plugins.account.pages.deletion import CancelDeletionPage, DeleteAccountPage
from identity.plugins.account.pages.factors import RemoveFactorPage, RenameFactorPage
from identity.plugins.account.pages.password import ChangePasswordPage
from identity.plugins.account.pages.profile import ProfilePage, SendEmailVerificationPage
from identity.plugins.account.pages.remembered_browsers import RememberedBrowsersPage
from identity.plugins.account.pages.security import SecurityPage
from identity.plugins.account.pages.sessions import SessionsPage


class AccountHomePage(Page):
    """/account, which redirects to the first section."""

    def template_variables(self) -> Response:
        return self.redirect(PROFILE_PATH)


_PAGES: dict[str, type[Page]] = {
    Page.ACCOUNT_PATH: AccountHomePage,
    PROFILE_PATH: ProfilePage,
    f"{PROFILE_PATH}/email": SendEmailVerificationPage,
    SECURITY_PATH: SecurityPage,
    PASSWORD_PATH: ChangePasswordPage,
    f"{FACTORS_PATH}/{{factor_id}}/rename": RenameFactorPage,
    f"{FACTORS_PATH}/{{factor_id}}/remove": RemoveFactorPage,
    REMEMBERED_BROWSERS_PATH: RememberedBrowsersPage,
    SESSIONS_PATH: SessionsPage,
    APPLICATIONS_PATH: ConnectedApplicationsPage,
    f"{APPLICATIONS_PATH}/{{client_id}}/disconnect": DisconnectApplicationPage,
    AGENTS_PATH: AgentsPage,
    f"{AGENTS_PATH}/new": NewAgentPage,
    f"{AGENTS_PATH}/{{agent_id}}": AgentPage,
    f"{AGENTS_PATH}/{{agent_id}}/remove": RemoveAgentPage,
    ACTIVITY_PATH: ActivityPage,
    ACCOUNT_RECOVERY_PATH: RecoverAccountPage,
    DATA_PATH: DataExportPage,
    DELETE_PATH: DeleteAccountPage,
    SignedInPage.SWITCH_PATH: SwitchAccountPage,
}


def add_account_pages(config: Configurator) -> None:
    for path, page in _PAGES.items():
        name = path.strip("/").replace("/{client_id}", "").replace("/{factor_id}", "").replace("/", ".")
        config.add_page(name, path, page, permission=Page.SIGNED_IN_PERMISSION, authenticate="session")
    config.add_page(
        "login.keep",
        "/login/{request}/keep",
        CancelDeletionPage,
        permission=NO_PERMISSION_REQUIRED,
        factory=PendingSignInContext,
    )

"""/password/reset: the request for a password reset, and the page behind the mailed link."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Invalid, Organization, Subject
from identity.api.pages import Form, FormPage, Page, TransactionalMails, gettext_lazy
from identity.plugins.account.one_time_links.link_page import OneTimeLinkPage

_LONGEST_LOGIN_NAME = 500
_ORGANIZATION_PARAM = "organization"


class RequestPasswordResetPage(OneTimeLinkPage, FormPage):
    """Responds alike whether or not the account exists. Without mail it names a contact."""

    template = "account/request_password_reset.html"
    fields = ("login_name",)

    @property
    def can_send_mail(self) -> bool:
        enabled: bool = self.request.services.mails.is_enabled
        return enabled

    def get(self) -> Response:
        """The form; without mail, text only."""
        return super().get() if self.can_send_mail else Page.get(self)

    def post(self) -> Response:
        return super().post() if self.can_send_mail else Page.get(self)

    def branding_organization(self) -> Organization | None:
        """The organization of the linking page, which passes its domain."""
        domain = self.request.GET.get(_ORGANIZATION_PARAM, "")
        organization: Organization | None = self.request.services.storage.organizations.find_by_domain(domain)
        return organization if organization is not None and organization.active else None

    def initial_values(self) -> Mapping[str, str]:
        return {"login_name": self.request.GET.get("login_name", "")}

    def template_variables(self) -> Mapping[str, object]:
        return {"mailing": self.can_send_mail}

    def submit(self, form: Form) -> Response:
        login_name = form.text("login_name").strip()[:_LONGEST_LOGIN_NAME]
        if not login_name:
            raise Invalid({"login_name": gettext_lazy("Enter your login name or email address.")})
        with self.rate_limited():
            TransactionalMails(self.request, self.language).queue_password_reset(
                login_name, page_organization=self.branding_organization()
            )
        return self.redirect_in_language(f"{FormPage.PASSWORD_RESET_PATH}/sent")


class PasswordResetSentPage(OneTimeLinkPage):
    """Shown after the form, for every login name."""

    template = "account/password_reset_sent.html"

    def template_variables(self) -> Mapping[str, object] | Response:
        """How long a link works; redirects to the form if mail is not configured."""
        if not self.request.services.mails.is_enabled:
            return self.redirect(self.PASSWORD_RESET_PATH)
        lifetime = self.request.registry.application.settings.one_time_link_ttl
        return {"works_once": TransactionalMails.describe_link_validity(lifetime, self.translator)}


class ResetPasswordPage(OneTimeLinkPage, FormPage):
    """A new password. Only POST redeems the link."""

    template = "account/reset_password.html"
    fields = ("new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def subject(self) -> Subject:
        """The link's user. Raises InvalidOneTimeLink."""
        found: Subject = self.request.services.passwords.find_by_reset_link(self.link_secret)
        return found

    def branding_organization(self) -> Organization | None:
        return self.subject().organization

    def template_variables(self) -> Mapping[str, object]:
        return {
            "login_name": self.subject().login_name,
            "min_length": self.request.services.passwords.min_length(self.subject()),
        }

    def submit(self, form: Form) -> Response:
        """Store the password; all sessions of the user end."""
        password = form.text("new_password")
        self.request.services.passwords.require_acceptable(
            password, form.repeated_text("new_password"), owner=self.subject()
        )
        # Hold no lock while the password is hashed.
        self.request.commit()
        with self.rate_limited():
            hashed = self.request.services.passwords.hash(password)
        self.request.services.passwords.reset(self.link_secret, hashed)
        return self.redirect_in_language("/password/changed")


class PasswordResetDonePage(OneTimeLinkPage):
    template = "account/password_reset_done.html"

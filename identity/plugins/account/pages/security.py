"""/account/security: sign-in methods, sessions and connected applications."""

from collections.abc import Iterator, Mapping

from identity.api.pages import NavigationItem, SecuritySection, SecuritySectionRow
from identity.plugins.account.pages.account_page import (
    ACCOUNT_RECOVERY_PATH,
    APPLICATIONS_PATH,
    PASSWORD_PATH,
    SECURITY_PATH,
    SESSIONS_PATH,
    AccountPage,
)
from identity.plugins.account.pages.factors import FactorSection


class SecurityPage(AccountPage):
    """One section per sign-in method, and those of plugins."""

    template = "account/security.html"
    section = SECURITY_PATH

    def template_variables(self) -> Mapping[str, object]:
        factors = FactorSection(self)
        return {
            "sections": tuple(self._sections(factors)),
            "added": factors.recently_added(),
            "fragments": self.fragments(),
            "nudge": factors.backup_factor_suggestion(),
        }

    def _sections(self, factors: FactorSection) -> Iterator[SecuritySection]:
        t = self.translator.gettext
        yield SecuritySection(
            id="methods", title=t("Sign-in methods"), rows=(self._password_section(), *factors.rows())
        )
        to_add = factors.addable_factors()
        if to_add is not None:
            yield to_add
        for provide in self.renderer.security_sections:
            yield from provide(self)
        yield SecuritySection(
            id="access", title=t("Who has access"), rows=(self._sessions_section(), self._applications_section())
        )
        yield SecuritySection(id="not-me", title=t("If something looks wrong"), rows=(self._recovery_section(),))

    def _password_section(self) -> SecuritySectionRow:
        t, stored = self.translator.gettext, self.request.services.storage.users.find_password(self.subject.user.id)
        if stored is None:
            return SecuritySectionRow(name=t("Password"), notes=(t("You have no password here."),))
        changed = t("Changed on {date}", date=self.template_macros.when(stored.changed_at))
        return SecuritySectionRow(
            name=t("Password"), notes=(changed,), actions=(NavigationItem(label=t("Change …"), href=PASSWORD_PATH),)
        )

    def _sessions_section(self) -> SecuritySectionRow:
        found = len(self.request.services.sessions.list_by_user(self.subject.user.id))
        t, tn = self.translator.gettext, self.translator.ngettext
        return SecuritySectionRow(
            name=t("Sessions"),
            notes=(tn("Signed in to {n} browser", "Signed in to {n} browsers", found),),
            actions=(NavigationItem(label=t("Show"), href=SESSIONS_PATH),),
        )

    def _applications_section(self) -> SecuritySectionRow:
        found = len(self.request.services.users.list_connected_applications(self.subject.user.id))
        t, tn = self.translator.gettext, self.translator.ngettext
        return SecuritySectionRow(
            name=t("Applications"),
            notes=(tn("{n} connected application", "{n} connected applications", found),),
            actions=(NavigationItem(label=t("Show"), href=APPLICATIONS_PATH),),
        )

    def _recovery_section(self) -> SecuritySectionRow:
        t = self.translator.gettext
        return SecuritySectionRow(
            name=t("Did somebody else use your account?"),
            notes=(t("End all sessions and choose a new password."),),
            actions=(NavigationItem(label=t("This was not me …"), href=ACCOUNT_RECOVERY_PATH),),
        )

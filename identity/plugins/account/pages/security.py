"""/account/security: how one signs in, where one is signed in, and who else has access."""

from collections.abc import Iterator, Mapping

from identity.pages.account_sections import SecurityRow, SecuritySection
from identity.pages.frame import Item
from identity.plugins.account.pages.account_page import (
    APPLICATIONS,
    NOT_ME,
    PASSWORD,
    SECURITY,
    SESSIONS,
    AccountPage,
)
from identity.plugins.account.pages.factors import Factors


class Security(AccountPage):
    """One section for each way in, with what plugins add."""

    template = "account/security.html"
    section = SECURITY

    def show(self) -> Mapping[str, object]:
        factors = Factors(self)
        return {"sections": tuple(self._sections(factors)), "added": factors.just_added(), "nudge": factors.nudge()}

    def _sections(self, factors: Factors) -> Iterator[SecuritySection]:
        t = self.words.t
        yield SecuritySection(id="methods", title=t("Ways to sign in"), rows=(self._password(), *factors.rows()))
        to_add = factors.to_add()
        if to_add is not None:
            yield to_add
        for provide in self.pages.security_sections:
            yield from provide(self)
        yield SecuritySection(id="access", title=t("Who has access"), rows=(self._sessions(), self._applications()))
        yield SecuritySection(id="not-me", title=t("If something looks wrong"), rows=(self._not_me(),))

    def _password(self) -> SecurityRow:
        t, stored = self.words.t, self.request.services.storage.users.find_password(self.subject.user.id)
        if stored is None:
            return SecurityRow(name=t("Password"), notes=(t("You have no password here."),))
        changed = t("Changed on {date}", date=self.ui.when(stored.changed_at))
        return SecurityRow(name=t("Password"), notes=(changed,), actions=(Item(label=t("Change …"), href=PASSWORD),))

    def _sessions(self) -> SecurityRow:
        found = len(self.request.services.sessions.of_user(self.subject.user.id))
        t, tn = self.words.t, self.words.tn
        return SecurityRow(
            name=t("Sessions"),
            notes=(tn("Signed in at {n} browser", "Signed in at {n} browsers", found),),
            actions=(Item(label=t("Show"), href=SESSIONS),),
        )

    def _applications(self) -> SecurityRow:
        found = len(self.request.services.users.connections(self.subject.user.id))
        t, tn = self.words.t, self.words.tn
        return SecurityRow(
            name=t("Applications"),
            notes=(tn("{n} connected application", "{n} connected applications", found),),
            actions=(Item(label=t("Show"), href=APPLICATIONS),),
        )

    def _not_me(self) -> SecurityRow:
        t = self.words.t
        return SecurityRow(
            name=t("Somebody else was at your account?"),
            notes=(t("End all sessions and choose a new password."),),
            actions=(Item(label=t("This was not me …"), href=NOT_ME),),
        )

"""The user's factors: listed on the security page, renamed and removed here."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from urllib.parse import urlencode

from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.pages import Form, FormPage, NavigationItem, Page, SecuritySection, SecuritySectionRow, SignedInPage
from identity.api.sign_in import Enrolment, Factor, SignIn, allowed_factors
from identity.plugins.account.pages.account_page import (
    FACTORS_PATH,
    REMEMBERED_BROWSERS_PATH,
    SECURITY_PATH,
    AccountPage,
)

#: How long a new enrolment is announced.
_RECENT_AGE = timedelta(seconds=60)


class _EnrolmentPage(AccountPage, FormPage):
    """A page about an enrolment; requires a recent authentication."""

    section = SECURITY_PATH
    requires_recent_authentication = True

    @property
    def enrolment(self) -> Enrolment:
        """The named enrolment. Raises NotFound for one of another user."""
        found: Enrolment = self.request.services.factors.get(self.subject.user.id, self.request.matchdict["factor_id"])
        return found

    def template_variables(self) -> Mapping[str, object]:
        return {"called": _enrolment_label(self, self.enrolment)}


class RenameFactorPage(_EnrolmentPage):
    template = "account/factor_rename.html"
    fields = ("name",)

    def initial_values(self) -> Mapping[str, str]:
        return {"name": self.enrolment.name}

    def submit(self, form: Form) -> Response:
        self.request.services.factors.rename(self.subject, self.enrolment.id, form.text("name").strip())
        return self.redirect(self.path_with_flash(SECURITY_PATH))


class RemoveFactorPage(_EnrolmentPage):
    """Asks for confirmation and shows the consequences."""

    template = "account/factor_remove.html"

    def template_variables(self) -> Mapping[str, object]:
        services, is_required = self.request.services, False
        rest = [item for item in services.factors.list_enrolments(self.subject.user.id) if item.id != self.enrolment.id]
        if not any(_is_usable(self, item) for item in rest):
            is_required = services.policies.requires_second_factor(self.subject)
        return {**super().template_variables(), "last_and_needed": is_required}

    def submit(self, form: Form) -> Response:
        self.request.services.factors.remove(self.subject, self.enrolment.id)
        return self.redirect(self.path_with_flash(SECURITY_PATH))


class FactorSection:
    """The user's factors, and those that they can enrol, as rows of the security page."""

    def __init__(self, page: SignedInPage) -> None:
        self._page, self._services = page, page.request.services
        self._user_id = page.subject.user.id
        self._policy = self._services.policies.subject_policy(page.subject)
        self._enrolled = self._services.factors.list_enrolments(self._user_id)

    def rows(self) -> Iterator[SecuritySectionRow]:
        for item in self._enrolled:
            yield self._row(item)
        remembered = len(self._services.remembered_browsers.list_by_user(self._user_id))
        if remembered or (self._enrolled and self._policy.remember_browser):
            t, tn = self._page.translator.gettext, self._page.translator.ngettext
            yield SecuritySectionRow(
                name=t("Remembered browsers"),
                notes=(
                    tn(
                        "In {n} browser you are not asked for a second factor",
                        "In {n} browsers you are not asked for a second factor",
                        remembered,
                    ),
                ),
                actions=(NavigationItem(label=t("Show"), href=REMEMBERED_BROWSERS_PATH),),
            )

    def addable_factors(self) -> SecuritySection | None:
        """The factors to enrol; None without any."""
        t, rows = self._page.translator.gettext, tuple(self._is_addable())
        if not rows:
            return None
        return SecuritySection(id="add", title=t("Add a sign-in method"), rows=rows)

    def recently_added(self) -> str:
        """The label of a factor enrolled a moment ago; empty for none."""
        now = self._services.now
        newest = next((item for item in self._enrolled if now - item.added_at < _RECENT_AGE), None)
        if newest is None or newest.last_used_at is not None:
            return ""
        return self._page.translator.gettext(
            "{what} is added. You can use it to sign in from now on.", what=_enrolment_label(self._page, newest)
        )

    def backup_factor_suggestion(self) -> str:
        """Where to enrol a backup factor; empty if there is one, or no factor that could be lost."""
        had = {item.factor for item in self._enrolled}
        if not any(_is_usable(self._page, item) for item in self._enrolled):
            return ""
        spare = [factor for factor in self._allowed_factors() if factor.is_backup]
        if not spare or any(factor.name in had for factor in spare):
            return ""
        return next(
            (_enrolment_path(factor) for factor in spare if factor.can_enrol(self._page.subject, self._services)), ""
        )

    def _allowed_factors(self) -> Iterable[Factor]:
        return allowed_factors(request_context(self._page.request), self._policy).values()

    def _row(self, enrolment: Enrolment) -> SecuritySectionRow:
        t, ui = self._page.translator.gettext, self._page.template_macros
        used = enrolment.last_used_at
        times = t("Added on {date}", date=ui.when(enrolment.added_at)) + " · "
        times += t("never used") if used is None else t("last used {moment}", moment=ui.ago(used))
        factor, path = _find_factor(self._page, enrolment), f"{FACTORS_PATH}/{enrolment.id}"
        actions = [NavigationItem(label=t("Remove …"), href=f"{path}/remove")]
        if factor is not None and not factor.allows_multiple:
            actions.insert(0, NavigationItem(label=t("Renew …"), href=_enrolment_path(factor)))
        else:
            actions.insert(0, NavigationItem(label=t("Rename …"), href=f"{path}/rename"))
        note = "" if factor is None else t(factor.status_text(enrolment))
        return SecuritySectionRow(
            name=_enrolment_label(self._page, enrolment), notes=(times, note), actions=tuple(actions)
        )

    def _is_addable(self) -> Iterator[SecuritySectionRow]:
        t, had = self._page.translator.gettext, {item.factor for item in self._enrolled}
        counting = any(_is_usable(self._page, item) for item in self._enrolled)
        for factor in self._allowed_factors():
            if (factor.name in had and not factor.allows_multiple) or (factor.is_backup and not counting):
                continue
            if factor.can_enrol(self._page.subject, self._services):
                action = NavigationItem(label=t("Add …"), href=_enrolment_path(factor))
                yield SecuritySectionRow(name=t(factor.label), notes=(t(factor.hint),), actions=(action,))


def _enrolment_path(factor: Factor) -> str:
    """The path of a new authentication and the enrolment after it."""
    return f"{Page.LOGIN_PATH}?{urlencode({Page.TARGET_PARAM: SECURITY_PATH, SignIn.ENROL_PARAMETER: factor.name})}"


def _find_factor(page: SignedInPage, enrolment: Enrolment) -> Factor | None:
    """The enrolment's factor; None if its plugin is not loaded."""
    return request_context(page.request).protocol.factors.get(enrolment.factor)


def _is_usable(page: SignedInPage, enrolment: Enrolment) -> bool:
    factor = _find_factor(page, enrolment)
    return factor is not None and not factor.is_backup


def _enrolment_label(page: SignedInPage, enrolment: Enrolment) -> str:
    factor = _find_factor(page, enrolment)
    label = enrolment.factor if factor is None else page.translator.gettext(factor.label)
    if enrolment.name in ("", str(label)):
        return label
    return page.translator.gettext("{what}: {name}", what=label, name=enrolment.name)

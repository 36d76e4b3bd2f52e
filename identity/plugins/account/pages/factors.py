"""What a person has set up to sign in by: listed on the security page, renamed and removed here."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from urllib.parse import urlencode

from pyramid.response import Response

from identity.domain.factors import Enrolment
from identity.http.endpoints import context_of
from identity.pages.account_sections import SecurityRow, SecuritySection
from identity.pages.errors import LOGIN, TARGET
from identity.pages.forms import Form
from identity.pages.frame import Item
from identity.pages.page import FormPage
from identity.pages.signed_in_page import SignedInPage
from identity.plugins.account.pages.account_page import BROWSERS, FACTORS, SECURITY, AccountPage
from identity.provider.assurance import offered
from identity.provider.factor import Factor
from identity.provider.interaction import ENROL

#: For how long something that was set up is spoken of.
_A_MOMENT = timedelta(seconds=60)


class OneFactor(AccountPage, FormPage):
    """A page about something that the person has set up: seen by whoever has just proved who they are."""

    section = SECURITY
    needs_fresh = True

    @property
    def enrolment(self) -> Enrolment:
        """Which one. Raises NotFound for those of others."""
        found: Enrolment = self.request.services.factors.get(self.subject.user.id, self.request.matchdict["factor_id"])
        return found

    def show(self) -> Mapping[str, object]:
        return {"called": _called(self, self.enrolment)}


class Rename(OneFactor):
    """What it is called."""

    template = "account/factor_rename.html"
    fields = ("name",)

    def values(self) -> Mapping[str, str]:
        return {"name": self.enrolment.name}

    def submit(self, form: Form) -> Response:
        self.request.services.factors.rename(self.subject, self.enrolment.id, form.one("name").strip())
        return self.redirect(self.done(SECURITY))


class Remove(OneFactor):
    """Asks first, and says what follows."""

    template = "account/factor_remove.html"

    def show(self) -> Mapping[str, object]:
        services, asked = self.request.services, False
        rest = [one for one in services.factors.of(self.subject.user.id) if one.id != self.enrolment.id]
        if not any(_counts(self, one) for one in rest):
            asked = services.policies.asks_second_factor(self.subject)
        return {**super().show(), "last_and_needed": asked}

    def submit(self, form: Form) -> Response:
        self.request.services.factors.remove(self.subject, self.enrolment.id)
        return self.redirect(self.done(SECURITY))


class Factors:
    """The person's factors, and those that they could set up, as rows of the security page."""

    def __init__(self, page: SignedInPage) -> None:
        self._page, self._services = page, page.request.services
        self._user_id = page.subject.user.id
        self._policy = self._services.policies.of_subject(page.subject)
        self._enrolled = self._services.factors.of(self._user_id)

    def rows(self) -> Iterator[SecurityRow]:
        """What is set up, and the browsers at which it is not asked for."""
        for one in self._enrolled:
            yield self._row(one)
        remembered = len(self._services.remembered_browsers.of(self._user_id))
        if remembered or (self._enrolled and self._policy.remember_browser):
            t, tn = self._page.words.t, self._page.words.tn
            yield SecurityRow(
                name=t("Remembered browsers"),
                notes=(
                    tn(
                        "At {n} browser you are not asked for a second factor",
                        "At {n} browsers you are not asked for a second factor",
                        remembered,
                    ),
                ),
                actions=(Item(label=t("Show"), href=BROWSERS),),
            )

    def to_add(self) -> SecuritySection | None:
        """What can be set up; None where nothing can."""
        t, rows = self._page.words.t, tuple(self._addable())
        if not rows:
            return None
        return SecuritySection(id="add", title=t("Add a way to sign in"), rows=rows)

    def just_added(self) -> str:
        """What was set up a moment ago, by a sign-in that led back here; empty for nothing."""
        now = self._services.now
        newest = next((one for one in self._enrolled if now - one.added_at < _A_MOMENT), None)
        if newest is None or newest.last_used_at is not None:
            return ""
        return self._page.words.t(
            "{what} is added. You can sign in by it from now on.", what=_called(self._page, newest)
        )

    def nudge(self) -> str:
        """Where to set up something for the day on which the others are lost; empty if there is, or nothing to lose."""
        had = {one.factor for one in self._enrolled}
        if not any(_counts(self._page, one) for one in self._enrolled):
            return ""
        spare = [one for one in offered(context_of(self._page.request), self._policy) if one.spare]
        if not spare or any(one.name in had for one in spare):
            return ""
        return next((_enrol(one) for one in spare if one.possible(self._page.subject, self._services)), "")

    def _row(self, enrolment: Enrolment) -> SecurityRow:
        t, ui = self._page.words.t, self._page.ui
        used = enrolment.last_used_at
        times = t("Added on {date}", date=ui.when(enrolment.added_at)) + " · "
        times += t("never used") if used is None else t("last used {moment}", moment=ui.ago(used))
        factor, place = _factor(self._page, enrolment), f"{FACTORS}/{enrolment.id}"
        actions = [Item(label=t("Remove …"), href=f"{place}/remove")]
        if factor is not None and not factor.several:
            actions.insert(0, Item(label=t("Renew …"), href=_enrol(factor)))
        else:
            actions.insert(0, Item(label=t("Rename …"), href=f"{place}/rename"))
        note = "" if factor is None else t(factor.note(enrolment))
        return SecurityRow(name=_called(self._page, enrolment), notes=(times, note), actions=tuple(actions))

    def _addable(self) -> Iterator[SecurityRow]:
        t, had = self._page.words.t, {one.factor for one in self._enrolled}
        counting = any(_counts(self._page, one) for one in self._enrolled)
        for factor in offered(context_of(self._page.request), self._policy):
            if (factor.name in had and not factor.several) or (factor.spare and not counting):
                continue
            if factor.possible(self._page.subject, self._services):
                action = Item(label=t("Add …"), href=_enrol(factor))
                yield SecurityRow(name=t(factor.label), notes=(t(factor.hint),), actions=(action,))


def _enrol(factor: Factor) -> str:
    """Where the person proves who they are, and then sets it up."""
    return f"{LOGIN}?{urlencode({TARGET: SECURITY, ENROL: factor.name})}"


def _factor(page: SignedInPage, enrolment: Enrolment) -> Factor | None:
    """What it is; None if its plugin is not loaded any more."""
    return context_of(page.request).protocol.factors.get(enrolment.factor)


def _counts(page: SignedInPage, enrolment: Enrolment) -> bool:
    factor = _factor(page, enrolment)
    return factor is not None and not factor.spare


def _called(page: SignedInPage, enrolment: Enrolment) -> str:
    """What it is, and what the person calls it."""
    factor = _factor(page, enrolment)
    label = enrolment.factor if factor is None else page.words.t(factor.label)
    if enrolment.name in ("", str(label)):
        return label
    return page.words.t("{what}: {name}", what=label, name=enrolment.name)

"""The choice among factors: those by which somebody can prove more, and those that they can set up for it."""

from collections.abc import Iterable, Mapping

from pyramid.response import Response

from identity.domain.words import say
from identity.http.endpoints import context_of
from identity.pages.factor_page import why_asked
from identity.pages.forms import Form
from identity.pages.page import Again
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import NOT_NOW
from identity.provider.assurance import FACTOR
from identity.provider.factor import Factor
from identity.provider.interaction import Need

#: The button and the value of it that stand for none of them.
_FIELD, _NONE = "factor", "none"


class _Choice(SignInPage):
    fields = (_FIELD,)

    @property
    def need(self) -> Need | None:
        """What has to be proved, if it is this page's turn."""
        return self.sign_in.need if self.is_next(FACTOR) else None

    def names(self, need: Need) -> Iterable[str]:
        """What there is to choose."""
        raise NotImplementedError

    def path(self, name: str) -> str:
        """Where the choice leads, below the sign-in."""
        raise NotImplementedError

    def show(self) -> Mapping[str, object] | Response:
        """One row a factor; on with the sign-in if nothing is to be proved here."""
        need = self.need
        if need is None:
            return self.go_on()
        subject = self.sign_in.subject
        return {
            "rows": self._factors(need),
            "need": need,
            "why": why_asked(self),
            "login_name": "" if subject is None else subject.login_name,
        }

    def submit(self, form: Form) -> Response:
        need = self.need
        if need is None:
            return self.go_on()
        chosen = form.one(_FIELD)
        if chosen == _NONE and need.by_client:
            self.request.services.sign_ins.done(self.pending, NOT_NOW, account=self._account)
            return self.go_on()
        if chosen not in {one.name for one in self._factors(need)}:
            raise Again(say("Choose one of these ways."))
        return self.redirect(f"{self.root}/{self.path(chosen)}")

    @property
    def _account(self) -> object:
        return None if self.sign_in.proved is not None else self.sign_in.chosen

    def _factors(self, need: Need) -> list[Factor]:
        offered = context_of(self.request).protocol.factors
        return [offered[name] for name in self.names(need)]


class Factors(_Choice):
    """The factors that the person has set up."""

    template = "login/factors.html"

    def names(self, need: Need) -> Iterable[str]:
        return need.by

    def path(self, name: str) -> str:
        return name


class NewFactor(_Choice):
    """The factors that the person can set up, who has none that is enough."""

    template = "login/new_factor.html"

    def show(self) -> Mapping[str, object] | Response:
        """On with the sign-in if there is one to prove."""
        need = self.need
        return self.go_on() if need is not None and need.by else super().show()

    def names(self, need: Need) -> Iterable[str]:
        return () if need.by else need.to_enrol

    def path(self, name: str) -> str:
        return f"{name}/new"

"""The choice among factors, to prove or to enrol one."""

from collections.abc import Iterable, Mapping

from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.pages import Form, FormRedisplay, gettext_lazy
from identity.api.sign_in import Factor, Interaction, SignInPage, StepUpRequirement
from identity.plugins.login.interactions import FACTOR_REFUSED_REASON

#: The button for "none of them", and its value.
_FACTOR_FIELD, _NO_FACTOR = "factor", "none"


class _FactorChooserPage(SignInPage):
    fields = (_FACTOR_FIELD,)

    @property
    def requirement(self) -> StepUpRequirement | None:
        """What has to be proved; None unless this is the current step."""
        return self.sign_in.step_up_requirement if self.is_next_interaction(Interaction.FACTOR) else None

    def factor_names(self, need: StepUpRequirement) -> Iterable[str]:
        raise NotImplementedError

    def factor_path(self, name: str) -> str:
        """The path of the chosen factor, below the sign-in."""
        raise NotImplementedError

    def template_variables(self) -> Mapping[str, object] | Response:
        """One row per factor. Continues the sign-in if no factor is required."""
        need = self.requirement
        if need is None:
            return self.redirect_to_next()
        subject = self.sign_in.subject
        return {
            "rows": self._factors(need),
            "need": need,
            "why": self.factor_reason,
            "login_name": "" if subject is None else subject.login_name,
        }

    def submit(self, form: Form) -> Response:
        need = self.requirement
        if need is None:
            return self.redirect_to_next()
        chosen = form.text(_FACTOR_FIELD)
        if chosen == _NO_FACTOR and need.is_client_request:
            self.request.services.sign_ins.complete_interaction(
                self.pending_authorization, FACTOR_REFUSED_REASON, account=self._account
            )
            return self.redirect_to_next()
        if chosen not in {factor.name for factor in self._factors(need)}:
            raise FormRedisplay(gettext_lazy("Choose one of these methods."))
        return self.redirect(f"{self.base_path}/{self.factor_path(chosen)}")

    @property
    def _account(self) -> object:
        return None if self.sign_in.authenticated_subject is not None else self.sign_in.selected_account

    def _factors(self, need: StepUpRequirement) -> list[Factor]:
        offered = request_context(self.request).protocol.factors
        return [offered[name] for name in self.factor_names(need)]


class FactorChooserPage(_FactorChooserPage):
    """The user's enrolled factors."""

    template = "login/factor_chooser.html"

    def factor_names(self, need: StepUpRequirement) -> Iterable[str]:
        return need.factors

    def factor_path(self, name: str) -> str:
        return name


class EnrolmentChooserPage(_FactorChooserPage):
    """The factors that a user without a sufficient one can enrol."""

    template = "login/enrolment_chooser.html"

    def template_variables(self) -> Mapping[str, object] | Response:
        """Continues the sign-in if a factor can be proved."""
        need = self.requirement
        return self.redirect_to_next() if need is not None and need.factors else super().template_variables()

    def factor_names(self, need: StepUpRequirement) -> Iterable[str]:
        return () if need.factors else need.enrollable_factors

    def factor_path(self, name: str) -> str:
        return f"{name}/new"

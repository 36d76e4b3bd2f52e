"""The choice among factors, to prove or to enrol one."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.pages import Form, FormRedisplay, gettext_lazy
from identity.api.sign_in import Factor, Interaction, SignInPage, StepUpRequirement
from identity.plugins.login.interactions import FACTOR_REFUSED_REASON

#: The button for "none of them", and its value.
_FACTOR_FIELD, _NO_FACTOR = "factor", "none"


class FactorChooserPage(SignInPage):
    """The user's enrolled factors."""

    template = "login/factor_chooser.html"
    fields = (_FACTOR_FIELD,)
    #: What follows the chosen factor's name in the path of its page.
    path_suffix: ClassVar[str] = ""

    @property
    def requirement(self) -> StepUpRequirement | None:
        """What has to be proved; None unless this is the current step."""
        return self.sign_in.step_up_requirement if self.is_next_interaction(Interaction.FACTOR) else None

    def factor_names(self, need: StepUpRequirement) -> Iterable[str]:
        return need.factors

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
                self.pending_authorization, FACTOR_REFUSED_REASON, account=self.sign_in.selected_account
            )
            return self.redirect_to_next()
        if chosen not in {factor.name for factor in self._factors(need)}:
            raise FormRedisplay(gettext_lazy("Choose one of these methods."))
        return self.redirect(f"{self.base_path}/{chosen}{self.path_suffix}")

    def _factors(self, need: StepUpRequirement) -> list[Factor]:
        offered = request_context(self.request).protocol.factors
        return [offered[name] for name in self.factor_names(need)]


class EnrolmentChooserPage(FactorChooserPage):
    """The factors that a user without a sufficient one can enrol."""

    template = "login/enrolment_chooser.html"
    path_suffix = "/new"

    def template_variables(self) -> Mapping[str, object] | Response:
        """Continues the sign-in if a factor can be proved."""
        need = self.requirement
        return self.redirect_to_next() if need is not None and need.factors else super().template_variables()

    def factor_names(self, need: StepUpRequirement) -> Iterable[str]:
        return () if need.factors else need.enrollable_factors

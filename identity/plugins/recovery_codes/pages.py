"""The page that asks for a recovery code, and the one that makes ten."""

import base64
from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.hashing import Busy, Hasher
from identity.pages.factor_page import EnrolPage, FactorPage, ProvePage
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.plugins.recovery_codes.factor import RecoveryCodes, index_of, new_codes, normal, without

_MISSING = say("Enter one of your recovery codes.")
_WRONG = say("This is none of your recovery codes, or it was used already.")


class _Page(FactorPage):
    factor = RecoveryCodes

    @property
    def hasher(self) -> Hasher:
        """What hashes."""
        found: Hasher = self.request.registry.identity.process.hasher
        return found


class ProveRecoveryCode(_Page, ProvePage):
    """Each code counts once."""

    template = "recovery_codes/prove.html"
    fields = ("code", "remember")
    secret_fields = frozenset({"code"})

    def submit(self, form: Form) -> Response:
        code = form.one("code")
        if not normal(code):
            raise Invalid({"code": _MISSING})
        return self.prove(lambda: self._verified(code), _WRONG)

    def _verified(self, code: str) -> tuple[str, ...] | None:
        (found, *_) = (*self.enrolments, None)
        stored = None if found is None else found.value["codes"].get(index_of(code))
        # The same work whether or not there is such a code.
        if not self.hasher.verify(stored, normal(code)).matches or found is None:
            return None
        left = without(found.value, code)
        factors = self.request.services.factors
        used = factors.update(found, left)
        factors.tell_used(used, self.person, len(left["codes"]))
        return RecoveryCodes.methods


class EnrolRecoveryCodes(_Page, EnrolPage):
    """Makes ten, and shows them once. Those that there were work no more."""

    template = "recovery_codes/enrol.html"

    def show(self) -> Mapping[str, object]:
        """Whether there are others, which end."""
        return {"renewing": bool(self.enrolments)}

    def submit(self, form: Form) -> Response:
        codes = new_codes()
        try:
            hashes = {index_of(one): self.hasher.hash(normal(one)) for one in codes}
        except Busy as problem:
            raise held_back(problem, password=False) from None
        self.enrolled({"codes": hashes}, replacing=True)
        # They were not proved by being made.
        self.finish(())
        host = self.request.registry.identity.settings.login_url
        text = "\n".join((host, self.person.login_name, "", *codes, ""))
        shown = {
            "codes": codes,
            "file": "data:text/plain;charset=utf-8;base64," + base64.b64encode(text.encode()).decode(),
            "go_on_at": self.context.continue_at,
        }
        return self.draw(shown, template="recovery_codes/made.html")

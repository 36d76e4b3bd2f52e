"""The page that asks for a code, and the one that sets an app up."""

from collections.abc import Mapping
from typing import ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.names import name_problem
from identity.domain.records import NameSpace
from identity.domain.words import say
from identity.pages.factor_page import EnrolPage, ProvePage
from identity.pages.forms import Form
from identity.plugins.totp.factor import Totp, address_of, new_secret, step_of
from identity.services.records import Records

_DRAFT = "draft"
#: Letters of the secret that stand together where it is to be typed.
_GROUP = 4

_MISSING = say("Enter the six digits that your app shows.")
_WRONG = say("This code is wrong or was used already. Enter the one that your app shows now.")


class ProveTotp(ProvePage):
    """Any of the person's apps will do. A code counts once."""

    template = "totp/prove.html"
    factor = Totp
    fields = ("code", "remember")
    secret_fields = frozenset({"code"})

    def show(self) -> Mapping[str, object]:
        """Under which name the app shows the code."""
        return {"issuer": self.name_of(self.person.organization)}

    def submit(self, form: Form) -> Response:
        code = form.one("code")
        if not code.strip():
            raise Invalid({"code": _MISSING})
        return self.prove(lambda: self._verified(code), _WRONG)

    def _verified(self, code: str) -> tuple[str, ...] | None:
        services = self.request.services
        for one in self.enrolments:
            step = step_of(one.value["secret"], code, services.now, after=one.value["step"])
            if step is not None:
                services.factors.update(one, {**one.value, "step": step})
                return Totp.methods
        return None


class EnrolTotp(EnrolPage):
    """The secret is made when the page is first shown, and shown until the first right code."""

    template = "totp/enrol.html"
    factor = Totp
    fields = ("code", "name")
    secret_fields = frozenset({"code"})
    writes_when_shown = True
    #: Where secrets lie until then.
    name_space: ClassVar[NameSpace]

    def values(self) -> Mapping[str, str]:
        return {"name": str(self.words.t(Totp.label))}

    def show(self) -> Mapping[str, object]:
        """The secret as a picture, as text, and as a link for the device that shows the page."""
        secret = self._secret
        address = address_of(secret, self.person.login_name, self.name_of(self.person.organization))
        import segno

        picture = segno.make_qr(address, error="l").svg_inline(
            omitsize=True, light="#fff", svgclass=None, lineclass=None
        )
        groups = [secret[at : at + _GROUP] for at in range(0, len(secret), _GROUP)]
        # Drawn by segno out of an address of ours.
        return {"picture": Markup(picture), "secret": " ".join(groups), "address": address}  # noqa: S704

    def submit(self, form: Form) -> Response:
        code, name = form.one("code"), form.one("name").strip()
        problems: dict[str, str] = {} if code.strip() else {"code": _MISSING}
        name_wrong = name_problem(name)
        if name_wrong is not None:
            problems["name"] = name_wrong
        if problems:
            raise Invalid(problems)
        secret = self._secret
        step = step_of(secret, code, self.request.services.now)
        if step is None:
            raise Invalid({"code": _WRONG})
        self._drafts.drop(_DRAFT, self._key)
        # Of two windows one keeps it.
        return self.enrol({"secret": secret, "step": step}, Totp.methods, name=name, key=secret)

    @property
    def _drafts(self) -> Records:
        found: Records = self.request.services.records(self.name_space)
        return found

    @property
    def _key(self) -> str:
        """One for each sign-in and person: who signs in as somebody else gets another secret."""
        return f"{self.pending.id}\n{self.person.user.id}"

    @property
    def _secret(self) -> str:
        found = self._drafts.find(_DRAFT, self._key)
        if found is None:
            made = {"secret": new_secret()}
            ends_at, user_id = self.pending.expires_at, self.person.user.id
            held = self._drafts.add(_DRAFT, self._key, made, user_id=user_id, expires_at=ends_at, seal=True)
            return made["secret"] if held is None else str(held.value["secret"])
        return str(found.value["secret"])

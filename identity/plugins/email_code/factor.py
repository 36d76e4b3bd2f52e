"""The factor email_code: where codes are sent, and how an address is masked."""

from typing import ClassVar

from identity.api.entities import HumanUser, Subject
from identity.api.pages import gettext_lazy
from identity.api.services import Services
from identity.api.sign_in import Factor


class EmailCodeFactor(Factor):
    """An enrolment stores no data: codes go to the account's verified address at that time."""

    name: ClassVar[str] = "email_code"
    label: ClassVar[str] = gettext_lazy("Email codes")
    hint: ClassVar[str] = gettext_lazy("Six digits that we send to your email address.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "mail"
    allows_multiple: ClassVar[bool] = False
    needs_mail: ClassVar[bool] = True

    def can_enrol(self, subject: Subject, services: Services) -> bool:
        """True if mail is configured and the user has a verified address."""
        return services.mails.is_enabled and bool(verified_email(subject, services))


def verified_email(subject: Subject, services: Services) -> str:
    """The user's verified address; empty if there is none."""
    user = subject.user
    if not isinstance(user, HumanUser) or not user.profile.email_verified:
        return ""
    return user.profile.email if services.instance_managers.is_address_trusted(user) else ""


def mask_email(address: str) -> str:
    """The address in a form that only its owner recognizes: ``a…@example.com``."""
    name, at, domain = address.rpartition("@")
    return f"{name[:1]}…{at}{domain}"

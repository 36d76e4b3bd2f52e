"""The factor email_code: where codes go, and how an address is shown."""

from typing import ClassVar

from identity.domain.messages import gettext_lazy
from identity.domain.users import HumanUser, Subject
from identity.provider.factor import Factor
from identity.services.container import Services


class EmailCodeFactor(Factor):
    """Nothing is kept of it but that it is set up: codes go to the address that the account has proved by then."""

    name: ClassVar[str] = "email_code"
    label: ClassVar[str] = gettext_lazy("Codes by email")
    hint: ClassVar[str] = gettext_lazy("Six digits that we send to your email address.")
    methods: ClassVar[tuple[str, ...]] = ("otp",)
    icon: ClassVar[str] = "mail"
    allows_multiple: ClassVar[bool] = False
    needs_mail: ClassVar[bool] = True

    def can_enrol(self, subject: Subject, services: Services) -> bool:
        """True if mail can be sent, and the person has proved that an address is theirs."""
        return services.mails.is_enabled and bool(verified_email(subject, services))


def verified_email(subject: Subject, services: Services) -> str:
    """The person's address, if they have proved that it is theirs; else empty."""
    user = subject.user
    if not isinstance(user, HumanUser) or not user.profile.email_verified:
        return ""
    return user.profile.email if services.instance_managers.is_address_trusted(user) else ""


def mask_email(address: str) -> str:
    """The address so that its owner knows it, and nobody else learns it: ``a…@example.com``."""
    name, at, domain = address.rpartition("@")
    return f"{name[:1]}…{at}{domain}"

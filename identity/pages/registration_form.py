"""Self-registration data, shared by the registration form and the page behind the link that completes it."""

from pyramid.request import Request

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.pages.attribute_fields import AttributeFields
from identity.pages.forms import Form
from identity.services.commands.users import RegisterUser

_MISSING = {
    "given_name": gettext_lazy("Enter your given name."),
    "family_name": gettext_lazy("Enter your family name."),
    "email": gettext_lazy("Enter your email address."),
}


class RegistrationForm:
    """The fields of both, and how they are read."""

    NAME_FIELDS = ("user_name", "given_name", "family_name")
    PASSWORD_FIELDS = ("password", "password_again")

    @classmethod
    def attribute_fields(cls, request: Request, organization: Organization) -> AttributeFields:
        """Fields for the attributes that people have to fill in when they register."""
        return AttributeFields(request.services.registration.list_attributes(organization))

    @classmethod
    def parse(cls, request: Request, organization: Organization, form: Form, email: str) -> RegisterUser:
        """The submitted account, for the organization and with this email address.

        Raises Invalid with all errors at once.
        """
        problems: dict[str, str] = {}
        command = None
        values = form.command_values(*cls.NAME_FIELDS) | {"email": email}
        attributes = cls.attribute_fields(request, organization).parse(form)
        try:
            command = RegisterUser.decode({**values, "attributes": attributes})
        except Invalid as refused:
            problems |= refused.fields
        # The messages of empty fields name the field: the summary above the form lists them.
        problems |= {name: sentence for name, sentence in _MISSING.items() if not values[name].strip()}
        try:
            request.services.registration.require_attributes(organization, attributes)
        except Invalid as refused:
            problems |= refused.fields
        names = (values["user_name"], email)
        try:
            request.services.passwords.require_acceptable(
                form.text("password"), form.repeated_text("password"), owner=organization, names=names, field="password"
            )
        except Invalid as refused:
            problems |= refused.fields
        if command is None or problems:
            raise Invalid(problems)
        return command

"""UserFormPage: forms about a person, with the attributes that their organization defines."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyramid.request import Request

from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.http.route_contexts import RouteContext
from identity.pages.attribute_fields import AttributeFields
from identity.pages.forms import Form
from identity.plugins.console.form_page import ConsoleFormPage
from identity.services.attributes import ATTRIBUTES_MEMBER


class UserFormPage(ConsoleFormPage):
    """The attributes come before the field ``following_field``, by default last."""

    following_field: ClassVar[str] = ""

    def __init__(self, context: RouteContext, request: Request) -> None:
        entity = context.entity
        organization_id = entity.id if isinstance(entity, Organization) else entity.organization_id
        self.attributes = AttributeFields(request.services.attributes.list_definitions(organization_id))
        super().__init__(context, request)
        at = self.fields.index(self.following_field) if self.following_field else len(self.fields)
        self.fields = (*self.fields[:at], *self.attributes.names, *self.fields[at:])

    def attribute_values(self, user: HumanUser) -> Mapping[str, str]:
        if not self.attributes.names:
            return {}
        return self.attributes.format_values(self.services.attributes.user_values([user])[user.id])

    def template_variables(self) -> Mapping[str, object]:
        variables: dict[str, Any] = {**super().template_variables()}
        (part, fields), *further = variables["inputs"]
        names = [field[1] for field in fields]
        at = names.index(self.following_field) if self.following_field else len(names)
        inputs = [*fields[:at], *self.attributes.render(self.translator), *fields[at:]]
        return {**variables, "inputs": [(part, inputs), *further]}

    def parse_form(self, form: Form) -> dict[str, object]:
        return {**super().parse_form(form), ATTRIBUTES_MEMBER: self.attributes.parse(form)}

"""Descriptions of scopes for users, on sign-in pages and in the list of connected applications."""

from collections.abc import Collection

from markupsafe import Markup

from identity.domain.messages import gettext_lazy
from identity.pages.translation import Translator

#: In display order.
_DESCRIPTIONS = {
    "profile": gettext_lazy("your name and profile"),
    "email": gettext_lazy("your email address"),
    "phone": gettext_lazy("your phone number"),
    "address": gettext_lazy("your postal address"),
}
_ORGANIZATION = ":user:resourceowner"
_ATTRIBUTES = ":user:metadata"
#: These choose who may sign in, or a project: the first two disclose nothing, the last has its own description.
_UNDESCRIBED_SCOPES = (":org:id:", ":org:domain:primary:", ":org:project:id:")


def _requests_roles(scope_name: str, namespaces: Collection[str]) -> bool:
    return _is_scope_in_namespace(scope_name, namespaces, ":org:projects:roles", ":org:project:role:")


def _is_scope_in_namespace(scope_name: str, namespaces: Collection[str], *rests: str) -> bool:
    return scope_name.startswith(tuple(f"{namespace}{rest}" for namespace in namespaces for rest in rests))


class ScopeDescriptions:
    """What scopes disclose, in words."""

    @staticmethod
    def describe(
        scope: Collection[str], project: str, translator: Translator, namespaces: Collection[str]
    ) -> list[Markup]:
        """What the scopes disclose about the user to an application of this project; if empty, only who they are."""
        found = [translator.gettext(text) for scope_name, text in _DESCRIPTIONS.items() if scope_name in scope]
        if any(_is_scope_in_namespace(scope_name, namespaces, _ORGANIZATION) for scope_name in scope):
            found.append(translator.gettext("your organization"))
        if any(_is_scope_in_namespace(scope_name, namespaces, _ATTRIBUTES) for scope_name in scope):
            found.append(translator.gettext("further details that your organization keeps about you"))
        if any(_requests_roles(scope_name, namespaces) for scope_name in scope):
            found.append(translator.gettext("your roles in {project}", project=project))
        return found

    @staticmethod
    def covers(scope: str, namespaces: Collection[str]) -> bool:
        """True if ``describe`` describes the scope, or it discloses nothing."""
        return (
            scope in _DESCRIPTIONS
            or _requests_roles(scope, namespaces)
            or _is_scope_in_namespace(scope, namespaces, _ORGANIZATION, _ATTRIBUTES, *_UNDESCRIBED_SCOPES)
        )

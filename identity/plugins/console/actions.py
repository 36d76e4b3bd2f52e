"""Action: a change with a confirmation page, such as deactivating or deleting. ActionPage is that page."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from pyramid.request import Request
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.domain.errors import Invalid
from identity.domain.messages import Message, ngettext_lazy
from identity.domain.messages import gettext_lazy as _
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.resource_types import EntityT, ResourcePage, ResourceType
from identity.plugins.console.routes import ConsoleRoute

#: The text that is typed to confirm.
CONFIRMATION_FIELD = "confirm_name"

#: Shared by several actions.
REACTIVATION_HINT = _("You can reactivate it later.")

#: Sentences, or what makes them of the page and the entity.
Sentences = Sequence[str] | Callable[[ResourcePage[EntityT], EntityT], Sequence[str]]
Text = str | Callable[[ResourcePage[EntityT], EntityT], str]


@dataclass(frozen=True, kw_only=True)
class Action(Generic[EntityT]):
    """``path`` is relative to the entity's, ``permission`` the last part of its name or, with a dot, all of it.

    ``run`` makes the change and may return a response to show instead of the page that ``done`` leads to, by default
    where Cancel leads: ``back``, which is a suffix of the entity's path, or makes a path. ``label`` and ``button`` are
    the heading and the button of the link on the entity's page, with ``description``. ``impact`` has one sentence for
    each kind of affected data. ``confirm`` is the text to type to confirm. ``page`` is the class of a page that shows
    more. With ``already_done`` the form makes something once, and this is the message the second time.
    """

    path: str
    permission: str = "write"
    run: Callable[[ResourcePage[EntityT], EntityT], object]
    title: str
    submit_label: Text[EntityT]
    label: str = ""
    button: str = ""
    description: Text[EntityT] = ""
    impact: Sentences[EntityT] = ()
    cancel_label: Text[EntityT] = _("Keep it")
    back: Text[EntityT] = ""
    done: Callable[[ResourcePage[EntityT], EntityT], str] | None = None
    confirm: Callable[[ResourcePage[EntityT], EntityT], str] | None = None
    is_destructive: bool = True
    is_available: Callable[[ResourcePage[EntityT], EntityT], bool] = lambda page, entity: True
    already_done: str = ""
    page: "type[ActionPage[EntityT]] | None" = None

    def sentences(self, page: ResourcePage[EntityT], entity: EntityT) -> Sequence[str]:
        """The impact on this entity."""
        return self.impact(page, entity) if callable(self.impact) else self.impact


def text_of(text: Text[EntityT], page: ResourcePage[EntityT]) -> str:
    return text if isinstance(text, str) else text(page, page.entity)


class ActionPage(ResourcePage[EntityT], ConsoleFormPage):
    """Asks for confirmation and lists the impact. The title is a question that names the entity."""

    template = "console/action.html"
    title = ""

    def __init__(
        self, context: RouteContext, request: Request, *, resource_type: ResourceType[EntityT], action: Action[EntityT]
    ) -> None:
        super().__init__(context, request, resource_type=resource_type)
        self.action, self.title, self.is_creation = action, action.title, bool(action.already_done)
        if action.confirm is not None:
            self.fields = (CONFIRMATION_FIELD,)

    @property
    def submit_label(self) -> str:
        return text_of(self.action.submit_label, self)

    @property
    def cancel_path(self) -> str:
        back = self.action.back
        return f"{self.breadcrumbs[-1][1]}{back}" if isinstance(back, str) else back(self, self.entity)

    @cached_property
    def confirmation_text(self) -> str:
        """The text to type to confirm; empty if none is needed."""
        return "" if self.action.confirm is None else self.action.confirm(self, self.entity)

    def template_variables(self) -> Mapping[str, object]:
        return {
            **super().template_variables(),
            "effects": [self.translate(sentence) for sentence in self.action.sentences(self, self.entity) if sentence],
            "keep": self.translate(text_of(self.action.cancel_label, self)),
            "danger": self.action.is_destructive,
            "name_to_type": self.confirmation_text,
        }

    def submit(self, form: Form) -> Response:
        check_confirmation(form, self.confirmation_text)
        if self.action.already_done:
            self.redeem_submission_id(form, self.action.already_done)
        done = self.cancel_path if self.action.done is None else self.action.done(self, self.entity)
        answer = self.action.run(self, self.entity)
        return answer if isinstance(answer, Response) else self.redirect(self.path_with_flash(done))


def check_confirmation(form: Form, expected: str) -> None:
    """Raises Invalid unless this text was typed, if any is expected."""
    if expected and _comparable(form.text(CONFIRMATION_FIELD)) != _comparable(expected):
        raise Invalid({CONFIRMATION_FIELD: _("Type {name} to confirm.", name=expected)})


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


def action_routes(kind: ResourceType[EntityT], *actions: Action[EntityT]) -> tuple[ConsoleRoute, ...]:
    return tuple(
        kind.route(
            action.path, partial(action.page or ActionPage, resource_type=kind, action=action), action.permission
        )
        for action in actions
    )


class _Deactivatable(Protocol):
    @property
    def active(self) -> bool: ...


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


DeactivatableT = TypeVar("DeactivatableT", bound=_Deactivatable)
IdentifiedT = TypeVar("IdentifiedT", bound=_Identified)


@dataclass(frozen=True, kw_only=True)
class Deactivation(Action[DeactivatableT]):
    path: str = "/deactivate"
    label: str = _("Deactivate")
    button: str = _("Deactivate …")
    cancel_label: Text[DeactivatableT] = _("Keep it active")
    is_destructive: bool = False
    is_available: Callable[[ResourcePage[DeactivatableT], DeactivatableT], bool] = lambda page, entity: entity.active


@dataclass(frozen=True, kw_only=True)
class AccessRevocation(Action[IdentifiedT]):
    """Ends all sessions and tokens, after the name is typed; the page shows how many. ``target`` is what they are
    counted for."""

    target: DeletionTarget
    path: str = "/revoke-access"
    label: str = _("Revoke access")
    button: str = _("Revoke access …")
    title: str = _("Revoke all access of “{name}”?")
    description: Text[IdentifiedT] = _(
        "Ends all sessions and tokens at once, and deletes personal access tokens. The rest stays as it is."
    )
    submit_label: Text[IdentifiedT] = _("Revoke all access")
    cancel_label: Text[IdentifiedT] = _("Cancel")
    confirm: Callable[[ResourcePage[IdentifiedT], IdentifiedT], str] | None = lambda page, entity: page.entity_name

    def sentences(self, page: ResourcePage[IdentifiedT], entity: IdentifiedT) -> Sequence[str]:
        counts = page.services.deletion_impact(self.target, entity.id)
        ended = DeletionImpact(
            sessions=counts.sessions,
            live_tokens=counts.live_tokens,
            personal_access_tokens=counts.personal_access_tokens,
            is_exact=counts.is_exact,
        )
        return [
            _("People sign in again, and programs get new tokens: passwords, keys and secrets stay."),
            *super().sentences(page, entity),
            *_counted(page, ended),
        ]


@dataclass(frozen=True, kw_only=True)
class Reactivation(Action[DeactivatableT]):
    path: str = "/reactivate"
    label: str = _("Reactivate")
    button: str = _("Reactivate …")
    cancel_label: Text[DeactivatableT] = _("Keep it deactivated")
    is_destructive: bool = False
    is_available: Callable[[ResourcePage[DeactivatableT], DeactivatableT], bool] = lambda page, entity: (
        not entity.active
    )


@dataclass(frozen=True, kw_only=True)
class Deletion(Action[IdentifiedT]):
    """Deletes permanently, after the name is typed, and redirects to the page above. ``impact`` comes before the
    numbers of what is deleted along with the ``target``."""

    target: DeletionTarget
    path: str = "/delete"
    permission: str = "delete"
    label: str = _("Delete")
    button: str = _("Delete …")
    confirm: Callable[[ResourcePage[IdentifiedT], IdentifiedT], str] | None = lambda page, entity: page.entity_name
    done: Callable[[ResourcePage[IdentifiedT], IdentifiedT], str] | None = lambda page, entity: page.parent_breadcrumbs[
        -1
    ][1]

    def sentences(self, page: ResourcePage[IdentifiedT], entity: IdentifiedT) -> Sequence[str]:
        return [
            *super().sentences(page, entity),
            *_counted(page, page.services.deletion_impact(self.target, entity.id)),
        ]


def _counted(page: ResourcePage[IdentifiedT], impact: DeletionImpact) -> Iterable[str]:
    """The lines of ``_impact_labels``, as lower bounds if not everything was counted."""
    labels = _impact_labels(impact)
    if impact.is_exact:
        return labels
    return [_("at least {counted}", counted=page.translate(label)) for label in labels]


def _impact_labels(effects: DeletionImpact) -> list[Message]:
    """One line with a count for each affected kind."""
    lines = (
        ngettext_lazy("{n} user", "{n} users", effects.users),
        ngettext_lazy("{n} service user", "{n} service users", effects.service_users),
        ngettext_lazy("{n} project", "{n} projects", effects.projects),
        ngettext_lazy("{n} application", "{n} applications", effects.applications),
        ngettext_lazy("{n} role", "{n} roles", effects.roles),
        ngettext_lazy("{n} project grant", "{n} project grants", effects.project_grants),
        ngettext_lazy("{n} user grant", "{n} user grants", effects.user_grants),
        ngettext_lazy("{n} manager role", "{n} manager roles", effects.managers),
        ngettext_lazy("{n} group", "{n} groups", effects.groups),
        ngettext_lazy("{n} key", "{n} keys", effects.keys),
        ngettext_lazy("{n} client secret", "{n} client secrets", effects.secrets),
        ngettext_lazy("{n} personal access token", "{n} personal access tokens", effects.personal_access_tokens),
        ngettext_lazy("{n} session", "{n} sessions", effects.sessions),
        ngettext_lazy("{n} live token", "{n} live tokens", effects.live_tokens),
    )
    return [line for line in lines if line.values["n"]]

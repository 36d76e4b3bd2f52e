"""Token preview: which tokens and claims a user and an application would get, and why; nothing is issued."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from identity.domain.errors import Invalid
from identity.domain.search import is_found
from identity.domain.users import TokenFormat
from identity.domain.words import say
from identity.http import targets
from identity.http.endpoints import context_of
from identity.http.token_previews import APPLICATION, USER, find_application, find_user, preview_of
from identity.plugins.console.application_words import GRANT_TYPES
from identity.plugins.console.asking_page import AskingPage
from identity.plugins.console.places import Place
from identity.provider.preview import Carried, Preview
from identity.provider.reasons import Carrier
from identity.provider.scope import OPENID
from identity.storage.paging import FIRST_PAGE, Page, PageRequest, every_row
from identity.storage.stores.users import UserKind

SCOPE, RESPONSE_TYPE = "scope", "response_type"

#: Narrow the lists to choose from.
USER_QUERY, APPLICATION_QUERY = "user_query", "application_query"

#: How many are offered to choose from; whoever is not among them is found by more letters.
_OFFERED = 50

_TITLES = {
    Carrier.CODE: say("Code"),
    Carrier.ACCESS_TOKEN: say("Access token"),
    Carrier.ID_TOKEN: say("ID token"),
    Carrier.REFRESH_TOKEN: say("Refresh token"),
    Carrier.USERINFO: say("Answer of userinfo"),
    Carrier.INTROSPECTION: say("Answer of introspection"),
}
_LEADS = {
    Carrier.CODE: say("The application exchanges it for the tokens below, once."),
    Carrier.REFRESH_TOKEN: say("Says nothing; it brings new tokens until it is not used for too long."),
    Carrier.USERINFO: say("What the access token opens for the application."),
    Carrier.INTROSPECTION: say("What an API learns that it is meant for."),
}
_OPAQUE = say("Opaque: it says nothing by itself. What it stands for is told by userinfo and introspection.")
_JWT = say("JWT: whoever receives it can read it.")


def lead_of(carried: Carried) -> str:
    """What it is good for; empty where there is nothing to say."""
    if carried.format is not None:
        return _JWT if carried.format is TokenFormat.JWT else _OPAQUE
    return _LEADS.get(carried.carrier, "")


@dataclass(frozen=True)
class Choice:
    """A list to choose from: values and texts, and whether there are more than these, or a search has narrowed it."""

    options: list[tuple[str, str]]
    searched: bool


class TokenPreviewPage(AskingPage):
    """A form that asks, and the answer below it."""

    template = "console/token_preview.html"
    section = "token-preview"
    title = say("Token preview")
    fields: ClassVar[tuple[str, ...]] = (USER, USER_QUERY, APPLICATION, APPLICATION_QUERY, SCOPE, RESPONSE_TYPE)

    def asked(self) -> Mapping[str, str]:
        """What was asked; before that, what is usual."""
        asked = {**({} if SCOPE in self.request.GET else {SCOPE: OPENID}), **super().asked()}
        named = find_user(context_of(self.request), self.principal, asked.get(USER, ""))
        return asked if named is None else {**asked, USER: named.user.id}

    def show(self) -> Mapping[str, object]:
        """The answer, if somebody is asked about; in any case what to choose from."""
        asked = self.asked()
        searches = not asked.keys() & {USER, APPLICATION} and asked.keys() & {USER_QUERY, APPLICATION_QUERY}
        answer = self._answer(asked) if USER in self.request.GET and not searches else None
        response_types = self.request.registry.identity.protocol.response_types.values()
        return {
            "users": self._users(asked),
            "applications": self._applications(asked),
            "response_types": [(one.value, one.value) for one in response_types],
            "ways": () if answer is None else answer.ways,
            "untold": () if answer is None else answer.untold,
            "grant_types": GRANT_TYPES,
            "titles": _TITLES,
            "lead_of": lead_of,
            "text": partial(json.dumps, ensure_ascii=False),
            "said": self.said,
        }

    def _answer(self, asked: Mapping[str, str]) -> Preview | None:
        """None if something asked for cannot be."""
        try:
            return preview_of(
                context_of(self.request),
                self.principal,
                user=asked.get(USER, ""),
                application=asked.get(APPLICATION, ""),
                scope=asked.get(SCOPE, ""),
                response_type=asked.get(RESPONSE_TYPE, "code"),
            )
        except Invalid as refused:
            self.problems.update(refused.fields)
            return None

    def _users(self, asked: Mapping[str, str]) -> Choice:
        """The chosen user, then those that fit the search."""
        context, query = context_of(self.request), asked.get(USER_QUERY, "")
        named = (find_user(context, self.principal, text) for text in (asked.get(USER, ""), query))
        offered = {one.user.id: (one.user.display_name, one.login_name) for one in named if one is not None}
        kind = None if self.may("service_user.read") else UserKind.HUMAN
        first = PageRequest(limit=_OFFERED, query=query)
        found: Page[Any] = self.services.storage.users.page(self.context.value.id, kind, first)
        offered |= {one.id: (one.display_name, one.user_name) for one in self.listed(found)}
        return _choice(offered, searched=bool(query) or found.next is not None)

    def _applications(self, asked: Mapping[str, str]) -> Choice:
        """The same of applications."""
        context, query = context_of(self.request), asked.get(APPLICATION_QUERY, "")
        named = (find_application(context, self.principal, text) for text in (asked.get(APPLICATION, ""), query))
        offered = {one.id: (one.application.name, one.project.name) for one in named if one is not None}
        found = list(islice(self._applications_named(query), _OFFERED + 1)) if self.may("application.read") else []
        offered |= dict(found[:_OFFERED])
        return _choice(offered, searched=bool(query) or len(found) > _OFFERED)

    def _applications_named(self, query: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """Client id, name and project of those that the query finds by their own name or that of their project."""
        storage = self.services.storage
        for project in every_row(lambda asked: self.listed(storage.projects.page(self.context.value.id, asked))):
            asked = FIRST_PAGE if is_found(query, project) else PageRequest(query=query)
            for one in storage.applications.page(project.id, asked):
                yield one.id, (one.name, project.name)


def _choice(offered: Mapping[str, tuple[str, str]], *, searched: bool) -> Choice:
    """Nothing, and what is offered."""
    texts = [(value, f"{name} ({note})") for value, (name, note) in offered.items()]
    return Choice([("", "–"), *texts], searched)


PLACES = (Place("/organizations/{organization}/token-preview", TokenPreviewPage, "user.read", targets.organization),)

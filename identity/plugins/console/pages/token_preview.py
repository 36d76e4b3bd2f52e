"""Token preview: which tokens and claims a user and an application would get, and why; nothing is issued."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from identity.domain.errors import Invalid
from identity.domain.users import TokenFormat
from identity.domain.words import say
from identity.http import targets
from identity.http.endpoints import context_of
from identity.http.token_previews import APPLICATION, USER, preview_of
from identity.plugins.console.asking_page import AskingPage
from identity.plugins.console.places import Place
from identity.provider.preview import Carried, Carrier, Preview
from identity.provider.scope import OPENID
from identity.storage.paging import PageRequest

SCOPE, RESPONSE_TYPE = "scope", "response_type"

#: How many names are offered to choose from; everybody else is found by login name or id.
_OFFERED = PageRequest(limit=20)
_OFFERED_PROJECTS = PageRequest(limit=5)

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


@dataclass(frozen=True)
class Row:
    """A claim as the table shows it; ``value`` is empty where it is a new one each time."""

    name: str
    value: str
    why: str


@dataclass(frozen=True)
class Part:
    """A token, or an answer about one."""

    id: str
    title: str
    lead: str
    expires_at: datetime | None
    rows: tuple[Row, ...]


class TokenPreviewPage(AskingPage):
    """A form that asks, and the answer below it."""

    template = "console/token_preview.html"
    section = "token-preview"
    fields = (USER, APPLICATION, SCOPE, RESPONSE_TYPE)

    def title(self) -> str:
        """The heading."""
        return say("Token preview")

    def asked(self) -> Mapping[str, str]:
        """What was asked; before that, what is usual."""
        usual = {} if SCOPE in self.request.GET else {SCOPE: OPENID}
        return {**usual, **super().asked()}

    def show(self) -> Mapping[str, object]:
        """The answer, if somebody is asked about; in any case what to choose from."""
        answer = self._answer() if USER in self.request.GET else None
        response_types = self.request.registry.identity.protocol.response_types.values()
        return {
            "users": self._users(),
            "applications": self._applications(),
            "response_types": [(one.value, one.value) for one in response_types],
            "answer": answer,
            "parts": [] if answer is None else [self._part(one) for one in answer.carried],
            "left_out": []
            if answer is None
            else [(self.words.t(o.what), self.words.t(o.why)) for o in answer.left_out],
        }

    def _answer(self) -> Preview | None:
        """None if something asked for cannot be."""
        asked = self.asked()
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

    def _users(self) -> list[tuple[str, str]]:
        """Ids and names of the first users."""
        found = self.services.storage.users.page(self.context.value.id, None, _OFFERED)
        return [(one.id, f"{one.display_name} ({one.user_name})") for one in found]

    def _applications(self) -> list[tuple[str, str]]:
        """Ids and names of the applications of the first projects."""
        if not self.may("application.read"):
            return []
        storage = self.services.storage
        return [
            (application.id, f"{application.name} ({project.name})")
            for project in self.listed(storage.projects.page(self.context.value.id, _OFFERED_PROJECTS))
            for application in storage.applications.page(project.id, _OFFERED)
        ]

    def _part(self, carried: Carried) -> Part:
        t = self.words.t
        lead = _LEADS.get(carried.carrier, "")
        if carried.format is not None:
            lead = _JWT if carried.format is TokenFormat.JWT else _OPAQUE
        return Part(
            id=carried.carrier.value,
            title=t(_TITLES[carried.carrier]),
            lead=t(lead) if lead else "",
            expires_at=carried.expires_at,
            rows=tuple(Row(one.name, _text(one.value), t(one.why)) for one in carried.claims),
        )


def _text(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


PLACES = (Place("/organizations/{organization}/token-preview", TokenPreviewPage, "user.read", targets.organization),)

"""Tiles, charts and tables of figures, for the overviews of an organization and of the instance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from babel.dates import format_skeleton

from identity.domain.applications import Application
from identity.domain.messages import gettext_lazy as _
from identity.pages.layout import NavigationItem
from identity.plugins.console.charts import axis_maximum, bars_path, grid_path, share, trend_path
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.services.figures import ClientTokens, DailyFigures

_WEEK, _MONTH = 7, 30
_TREND_DAYS = 14
_MAX_CLIENTS = 5
_GRID_LINES, _LOW_GRID_LINES = 4, 2
PERIOD_PARAM = "days"


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its change and trend; see the macro ``tile``."""

    label: str
    figure: str
    href: str
    change: str = ""
    change_kind: str = ""
    note: str = ""
    trend: str = ""
    trend_kind: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """The bars of one kind of figure, with the words of its axis from top to bottom."""

    path: str
    grid: str
    axis: Sequence[str]


@dataclass(frozen=True, slots=True)
class ClientRow:
    """Tokens of one client: ``width`` is percent of the largest, ``share`` percent of all."""

    name: str
    href: str
    tokens: str
    width: int
    share: int


class FigureCards:
    """``organization_id`` is None for the whole instance."""

    def __init__(self, page: ConsolePage, organization_id: str | None, links: Mapping[str, str]) -> None:
        """``links`` are the targets of the tiles by name; a tile without one leads to the chart."""
        self._page, self._organization_id, self._links = page, organization_id, links
        self._language, self._number = page.translator.language, page.translator.format_number
        self._month: Sequence[DailyFigures] = page.services.figures.list_daily(organization_id, _MONTH)

    @property
    def days(self) -> int:
        return _WEEK if self._page.request.GET.get(PERIOD_PARAM) == str(_WEEK) else _MONTH

    def template_variables(self) -> Mapping[str, object]:
        """What the template ``console/figures.html`` shows."""
        period = self._month[-self.days :]
        sign_ins, refused = [day.sign_ins for day in period], [day.refused_sign_ins for day in period]
        return {
            "tiles": self.tiles(),
            "days": self.days,
            "periods": self._periods(),
            "sign_ins": self._plot(sign_ins, _GRID_LINES),
            "refused": self._plot(refused, _LOW_GRID_LINES),
            "day_labels": self._day_labels(period),
            "peak": self._peak(period),
            "day_rows": [
                (self._day(day.day), self._number(day.sign_ins), self._number(day.refused_sign_ins))
                for day in reversed(period)
            ],
            "clients": self._client_rows(sum(day.tokens for day in period)),
            "factor": self._second_factor(),
        }

    def tiles(self) -> Sequence[Tile]:
        t = self._page.translator.gettext
        sign_ins, earlier_sign_ins = self._weeks(lambda day: day.sign_ins)
        refused, earlier_refused = self._weeks(lambda day: day.refused_sign_ins)
        new_people, earlier_people = self._weeks(lambda day: day.new_people)
        level = next((day for day in reversed(self._month) if day.people is not None), None)
        people, active = (0, 0) if level is None else (level.people or 0, level.active_people or 0)
        return (
            Tile(
                t(_("Sign-ins, 7 days")),
                self._number(sign_ins),
                self._link("sign_ins"),
                *_change(sign_ins, earlier_sign_ins, more_is="ok"),
                note=t(_("{number} the week before"), number=self._number(earlier_sign_ins)),
                trend=self._trend(lambda day: day.sign_ins),
            ),
            Tile(
                t(_("Refused, 7 days")),
                self._number(refused),
                self._link("refused"),
                *_change(refused, earlier_refused, more_is="bad"),
                note=t(_("{percent} % of all"), percent=share(refused, sign_ins + refused)),
                trend=self._trend(lambda day: day.refused_sign_ins),
                trend_kind="bad",
            ),
            Tile(
                t(_("New people, 7 days")),
                self._number(new_people),
                self._link("people"),
                *_change(new_people, earlier_people, more_is="ok"),
                note=t(_("{number} the week before"), number=self._number(earlier_people)),
                trend=self._trend(lambda day: day.new_people),
            ),
            Tile(
                t(_("Active people")),
                self._number(active),
                self._link("people"),
                f"{share(active, people)} %" if people else "",
                note=t(_("of {number}, last 30 days"), number=self._number(people))
                if level is not None
                else t(_("Not counted yet")),
                trend=trend_path([day.active_people for day in self._month if day.active_people is not None]),
            ),
        )

    def _weeks(self, count: Callable[[DailyFigures], int]) -> tuple[int, int]:
        """The last seven days, and the seven before."""
        return sum(map(count, self._month[-_WEEK:])), sum(map(count, self._month[-2 * _WEEK : -_WEEK]))

    def _trend(self, count: Callable[[DailyFigures], int]) -> str:
        return trend_path([count(day) for day in self._month[-_TREND_DAYS:]])

    def _link(self, name: str) -> str:
        return self._links.get(name) or "#figures"

    def _plot(self, values: Sequence[int], lines: int) -> Plot:
        maximum = axis_maximum(values)
        axis = [self._number(round(maximum * index / (lines - 1))) for index in reversed(range(lines))]
        return Plot(bars_path(values, maximum), grid_path(lines), axis)

    def _day(self, day: date) -> str:
        return str(format_skeleton("MMMd", day, locale=self._language))

    def _day_labels(self, period: Sequence[DailyFigures]) -> Sequence[str]:
        step = max(1, (len(period) - 1) / 4)
        positions = dict.fromkeys(round(step * index) for index in range(5))
        return [self._day(period[position].day) for position in positions if position < len(period)]

    def _peak(self, period: Sequence[DailyFigures]) -> str:
        """The day with the most refusals, as a sentence; empty without any."""
        peak = max(period, key=lambda day: day.refused_sign_ins)
        if not peak.refused_sign_ins:
            return ""
        text = _("Most on {day}: {number}")
        return str(
            self._page.translator.gettext(text, day=self._day(peak.day), number=self._number(peak.refused_sign_ins))
        )

    def _periods(self) -> Sequence[NavigationItem]:
        nt = self._page.translator.ngettext
        return [
            NavigationItem(
                label=nt("{n} day", "{n} days", days),
                href=f"{self._page.request.path}?{PERIOD_PARAM}={days}#figures",
                is_current=days == self.days,
            )
            for days in (_WEEK, _MONTH)
        ]

    def _client_rows(self, all_tokens: int) -> Sequence[ClientRow]:
        figures, t = self._page.services.figures, self._page.translator.gettext
        clients = figures.list_tokens_by_client(self._organization_id, self.days, principal=self._page.principal)
        largest_clients = clients[:_MAX_CLIENTS]
        largest = max((client.tokens for client in largest_clients), default=0)
        rows = [self._client_row(client, largest, all_tokens) for client in largest_clients]
        remaining = all_tokens - sum(client.tokens for client in largest_clients)
        if rows and remaining > 0:
            width = min(100, share(remaining, largest))
            rows.append(
                ClientRow(str(t(_("Others"))), "", self._number(remaining), width, share(remaining, all_tokens))
            )
        return rows

    def _client_row(self, client: ClientTokens, largest: int, all_tokens: int) -> ClientRow:
        kind = "applications" if isinstance(client.client, Application) else "service-users"
        return ClientRow(
            client.name,
            f"{CONSOLE_PATH}/{kind}/{client.client_id}",
            self._number(client.tokens),
            share(client.tokens, largest),
            share(client.tokens, all_tokens),
        )

    def _second_factor(self) -> Mapping[str, object] | None:
        """None before people were counted."""
        level = next((day for day in reversed(self._month) if day.people), None)
        if level is None or not level.people:
            return None
        protected = level.people_with_second_factor or 0
        return {
            "percent": share(protected, level.people),
            "protected": self._number(protected),
            "unprotected": self._number(level.people - protected),
        }


def _change(now: int, before: int, *, more_is: str) -> tuple[str, str]:
    """The change in percent and its kind; empty if there was nothing before."""
    if not before:
        return "", ""
    percent = round((now - before) * 100 / before)
    if not percent:
        return "± 0 %", ""
    fewer_is = "bad" if more_is == "ok" else "ok"
    sign, kind = ("▲", more_is) if percent > 0 else ("▼", fewer_is)
    # Fewer sign-ins or new people are no fault.
    return f"{sign} {abs(percent)} %", "" if (kind, more_is) == ("bad", "ok") else kind

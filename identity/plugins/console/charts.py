"""Charts as paths of SVG, from numbers alone. A plot's view box is 300 × 100, that of a trend 100 × 28; both are
stretched to their place."""

from collections.abc import Sequence

PLOT_WIDTH, PLOT_HEIGHT = 300, 100
_TREND_WIDTH, _TREND_HEIGHT = 100, 28
#: The part of a bar's slot that stays empty, and the space above and below a trend line.
_GAP, _TREND_MARGIN = 0.35, 3
_THIRDS = (1.2, 1.5, 3, 4.5, 6, 9, 12)


def axis_maximum(values: Sequence[int]) -> int:
    """The end of an axis that starts at 0: not below any value, and round, as are its thirds."""
    largest = max(values, default=0)
    if largest <= 9:
        return next(end for end in (3, 6, 9) if end >= largest)
    magnitude: int = 10 ** (len(str(largest)) - 1)
    return next(round(end * magnitude) for end in _THIRDS if end * magnitude >= largest)


def bars_path(values: Sequence[int], maximum: int) -> str:
    """A filled bar for each value, from the left; 0 has none."""
    if not values or maximum <= 0:
        return ""
    slot = PLOT_WIDTH / len(values)
    width = _number(slot * (1 - _GAP))
    bars = []
    for index, value in enumerate(values):
        if value > 0:
            height = _number(max(1.0, min(value, maximum) / maximum * PLOT_HEIGHT))
            bars.append(f"M{_number(slot * (index + _GAP / 2))} {PLOT_HEIGHT}v-{height}h{width}v{height}z")
    return "".join(bars)


def grid_path(lines: int) -> str:
    """Horizontal lines at equal distances, the first at the top and the last at the bottom."""
    return "".join(f"M0 {_number(index * PLOT_HEIGHT / (lines - 1))}h{PLOT_WIDTH}" for index in range(lines))


def trend_path(values: Sequence[int]) -> str:
    """A line through the values, closed below; empty without two values. The axis does not start at 0."""
    if len(values) < 2:
        return ""
    lowest, highest = min(values), max(values)
    span = highest - lowest
    room = _TREND_HEIGHT - 2 * _TREND_MARGIN
    points = []
    for index, value in enumerate(values):
        part = (value - lowest) / span if span else 0
        x = index * _TREND_WIDTH / (len(values) - 1)
        points.append(f"{_number(x)} {_number(_TREND_HEIGHT - _TREND_MARGIN - part * room)}")
    # The line of the shape is drawn outside of the view box at the sides and below.
    first, last = points[0].partition(" ")[2], points[-1].partition(" ")[2]
    below = _TREND_HEIGHT + 12
    return f"M-3 {first}L{' '.join(points)} 103 {last}V{below}H-3z"


def share(part: int, whole: int) -> int:
    """Percent, rounded; 0 of nothing. Neither 0 nor 100 unless it is exactly that."""
    if whole <= 0 or part <= 0:
        return 0
    return 100 if part >= whole else min(99, max(1, round(part * 100 / whole)))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")

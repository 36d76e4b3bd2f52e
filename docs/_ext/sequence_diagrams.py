"""Sequence diagrams, from a small part of the notation that Mermaid uses, one thing a line.

- ``participant app as Application``: who takes part, from left to right. Code stands between backticks.
- ``app->>identity: what is sent``: a message. ``-->>`` is an answer, ``app->>app`` a step of its own.
- ``Note over app,identity: words``: a note over one or several.
- ``alt this holds``, ``else that does``, ``end``: what happens in which case. ``opt`` for what need not happen,
  ``loop`` for what happens again and again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from svg_diagram import LINE_HEIGHT, DiagramError, SvgDiagram, text_width, wrap_text

_PARTICIPANT = re.compile(r"participant (\w+)(?: as (.+))?")
_MESSAGE = re.compile(r"(\w+)(--?)>>(\w+): (.+)")
_NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)")
_BLOCK = re.compile(r"(alt|opt|loop|else|end)(?: (.+))?")
_MESSAGES, _BLOCKS = ("message", "answer"), ("alt", "opt", "loop")
_WORDS = (*_BLOCKS, "else", "end")
#: How wide words may get beside a lifeline, and in the name of who takes part.
_WRAP, _NAME = 190, 130


@dataclass(frozen=True)
class SequenceStep:
    """One line of a notation: ``kind`` is message, answer, note, or the word of a block; over ``first`` to ``last``."""

    kind: str
    text: str
    line: int
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class ParsedSequence:
    """A notation that was read: who takes part, and what happens."""

    participants: tuple[str, ...]
    steps: tuple[SequenceStep, ...]


def parse_sequence(lines: Sequence[str]) -> ParsedSequence:
    """The notation in these lines. Raises DiagramError."""
    names: dict[str, str] = {}
    steps: list[SequenceStep] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if found := _PARTICIPANT.fullmatch(text):
            if found[1] in names:
                raise DiagramError(f"{found[1]} takes part already", number)
            names[found[1]] = found[2] or found[1]
        elif text:
            steps.append(_step(text, list(names), number))
    open_: list[SequenceStep] = []
    for step in steps:
        if step.kind in _BLOCKS:
            open_.append(step)
        elif step.kind in _WORDS and not (open_ and (step.kind == "end" or open_[-1].kind == "alt")):
            raise DiagramError(f"{step.kind} without its beginning", step.line)
        elif step.kind == "end":
            begun = open_.pop()
            if all(item.kind in _WORDS for item in steps[steps.index(begun) : steps.index(step)]):
                raise DiagramError(f"nothing happens in {begun.kind}", begun.line)
    if open_:
        raise DiagramError(f"{open_[-1].kind} has no end", open_[-1].line)
    active = {item for step in steps if step.kind not in _WORDS for item in (step.first, step.last)}
    if idle := [name for number, name in enumerate(names) if number not in active]:
        raise DiagramError(f"{idle[0]} does nothing")
    return ParsedSequence(tuple(names.values()), tuple(steps))


def _step(text: str, names: list[str], line: int) -> SequenceStep:
    def place(name: str) -> int:
        if name not in names:
            raise DiagramError(f"{name} is no participant", line)
        return names.index(name)

    if found := _MESSAGE.fullmatch(text):
        return SequenceStep(
            "answer" if found[2] == "--" else "message", found[4], line, place(found[1]), place(found[3])
        )
    if found := _NOTE.fullmatch(text):
        return SequenceStep("note", found[3], line, place(found[1]), place(found[2] or found[1]))
    if found := _BLOCK.fullmatch(text):
        return SequenceStep(found[1], found[2] or "", line)
    raise DiagramError(f"not understood: {text}", line)


def sequence_diagram(lines: Sequence[str]) -> tuple[SvgDiagram, str]:
    """The picture, and what it tells in sentences. Raises DiagramError."""
    flow = parse_sequence(lines)
    return render_sequence(flow), describe_sequence(flow)


def describe_sequence(flow: ParsedSequence) -> str:
    """The same in sentences."""
    sentences: list[str] = []
    number = 0
    for step in flow.steps:
        first, last = flow.participants[step.first], flow.participants[step.last]
        if step.kind in _MESSAGES:
            number += 1
            sentences.append(f"{number}. {first}{'' if first == last else f' to {last}'}: {step.text}.")
        elif step.kind == "note":
            sentences.append(f"{step.text}.")
        else:
            word = {"alt": "Either", "opt": "Perhaps", "else": "Or", "loop": "Repeated", "end": "After that"}[step.kind]
            sentences.append(f"{word}: {step.text}." if step.text else f"{word}:")
    return " ".join(sentences).replace("`", "").removesuffix(" After that:")


def render_sequence(flow: ParsedSequence) -> SvgDiagram:
    """The picture: lifelines from left to right, what happens from top to bottom."""
    picture = SvgDiagram()
    places = _places(flow)
    heads = [wrap_text(name, _NAME) for name in flow.participants]
    high = max(len(lines) for lines in heads) * LINE_HEIGHT + 14
    y = float(high + 12)
    number = 0
    open_: list[tuple[SequenceStep, float, float, float]] = []
    for at, step in enumerate(flow.steps):
        if step.kind in _MESSAGES:
            number += 1
            y = _message(picture, step, places, y, number)
        elif step.kind == "note":
            y = _note(picture, step, places, y)
        elif step.kind in _BLOCKS:
            room = 40 - 12 * len(open_)
            extents = [
                _extent(step, places) for step in flow.steps[at : _end(flow.steps, at)] if step.kind not in _WORDS
            ]
            left, right = min(left for left, _ in extents) - room, max(right for _, right in extents) + room
            open_.append((step, y + 4, left, right))
            y += _condition(picture, step.text, left + _tab(step), right, y + 20) + 4
        elif step.kind == "else":
            _, _, left, right = open_[-1]
            picture.add_line([(left, y + 6), (right, y + 6)], "case")
            y += _condition(picture, step.text, left, right, y + 22) + 6
        else:
            begin, top, left, right = open_.pop()
            picture.add_box(left, top, right - left, y + 6 - top, "block")
            picture.add_box(left, top, _tab(begin), 22, "word")
            picture.add_text(left + 8, top + 15, [begin.kind], "name")
            y += 16
    _lifelines(picture, places, heads, high, y + 10)
    return picture


def _lifelines(picture: SvgDiagram, places: list[float], heads: list[list[str]], high: float, bottom: float) -> None:
    """Who takes part, at the top, and at the end of a long picture once more; behind all that happens."""
    front, picture.elements = picture.elements, []
    for x, lines in zip(places, heads, strict=True):
        picture.add_line([(x, high), (x, bottom)], "lifeline")
        for top in (0.0, *((bottom,) if bottom > 420 else ())):
            picture.add_box(x - _wide(lines) / 2, top, _wide(lines), high, "participant")
            picture.add_text(x, top + (high - LINE_HEIGHT * len(lines)) / 2 + 13, lines, "name", anchor="middle")
    picture.elements += front


def _places(flow: ParsedSequence) -> list[float]:
    """Where the lifelines stand: as close as what happens between them allows."""
    heads = [_wide(wrap_text(name, _NAME)) for name in flow.participants]
    gaps = [(a + b) / 2 + 26 for a, b in pairwise(heads)]
    for step in sorted(flow.steps, key=lambda step: abs(step.last - step.first)):
        first, last = sorted((step.first, step.last))
        wide = max(text_width(line) for line in _lines(step)) + 34
        if step.kind in _MESSAGES and first < last:
            gaps[last - 1] += max(0, wide - sum(gaps[first:last]))
        elif step.kind in _MESSAGES and first < len(gaps):
            gaps[first] = max(gaps[first], wide + 28)
        elif step.kind == "note" and first == last:
            for gap in {first - 1, first} & set(range(len(gaps))):
                gaps[gap] = max(gaps[gap], wide / 2)
    return [heads[0] / 2 + sum(gaps[:number]) for number in range(len(heads))]


def _wide(head: list[str]) -> float:
    return max(70, *(text_width(item) for item in head)) + 20


def _lines(step: SequenceStep) -> list[str]:
    """The words of a step in lines."""
    return wrap_text(step.text, _limit(step))


def _limit(step: SequenceStep) -> float:
    """How wide words may get for which room has yet to be made: over several lifelines there is more."""
    return _WRAP + 110 * max(0, abs(step.last - step.first) - 1)


def _extent(step: SequenceStep, places: list[float]) -> tuple[float, float]:
    """From where to where a step reaches."""
    left, right = sorted((places[step.first], places[step.last]))
    if step.kind == "note":
        wide = max(right - left + 40 if right > left else 0, max(text_width(line) for line in _lines(step)) + 20)
        return (left + right - wide) / 2, (left + right + wide) / 2
    if left == right:
        return left, left + 36 + max(text_width(line) for line in _lines(step))
    return left, right


def _message(picture: SvgDiagram, step: SequenceStep, places: list[float], y: float, number: int) -> float:
    """Below the message, which stands over its arrow."""
    x, to = places[step.first], places[step.last]
    lines = wrap_text(step.text, max(_limit(step), abs(to - x) - 34))
    below = y + LINE_HEIGHT * len(lines) + 8
    if x == to:
        y, below = y + 8, below + 10
        at = (y + below) / 2 - 8
        picture.add_line([(x, at), (x + 26, at), (x + 26, at + 18), (x + 2, at + 18)], step.kind, has_arrowhead=True)
        picture.add_text(x + 34, y + 18, lines)
    else:
        at = below
        picture.add_text((x + to) / 2, y + 15, lines, anchor="middle")
        picture.add_line([(x, at), (to - 2 if to > x else to + 2, at)], step.kind, has_arrowhead=True)
    picture.add_number(x, at, str(number))
    return below + 12


def _note(picture: SvgDiagram, step: SequenceStep, places: list[float], y: float) -> float:
    left, right = _extent(step, places)
    lines = _lines(step)
    picture.add_box(left, y + 6, right - left, LINE_HEIGHT * len(lines) + 12, "note")
    picture.add_text((left + right) / 2, y + 25, lines, anchor="middle")
    return y + LINE_HEIGHT * len(lines) + 26


def _tab(begin: SequenceStep) -> float:
    """How wide the word of a block is."""
    return text_width(begin.kind) + 16


def _condition(picture: SvgDiagram, text: str, left: float, right: float, y: float) -> float:
    """The words in a block's corner, and how high they are."""
    lines = wrap_text(f"[{text}]", right - left - 20) if text else []
    picture.add_text(left + 10, y, lines, "condition")
    return LINE_HEIGHT * max(1, len(lines)) + 4


def _end(steps: Sequence[SequenceStep], at: int) -> int:
    """Where the block ends that begins at ``at``."""
    depths = accumulate((step.kind in _BLOCKS) - (step.kind == "end") for step in steps[at:])
    return at + list(depths).index(0)

"""Pieces of the report: tables in Markdown, sections, comparisons with a published number and their sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sweep.results import Summary

LARGE_GAP = 0.2  # from here on a gap needs a sentence
NOT_RUN = "not run"
SETS_A_ROW = 6  # the paper's means are multiples of 1/6


@dataclass(frozen=True)
class Published:
    """A number printed in the paper; without a spread where none is printed."""

    mean: float
    std: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:g}" if self.std is None else f"{self.mean:.1f} ± {self.std:.1f}"


@dataclass(frozen=True)
class Comparison:
    """A published number and ours."""

    where: str
    method: str
    measure: str
    published: Published
    ours: Summary

    @property
    def gap(self) -> float:
        return (self.ours.mean - self.published.mean) / abs(self.published.mean)

    @property
    def is_large(self) -> bool:
        return abs(self.gap) > LARGE_GAP

    @property
    def is_chance(self) -> bool:
        """Whether the two means lie within two standard errors of their difference."""
        if self.published.std is None or self.ours.count < 2:
            return False
        error = (self.published.std**2 / SETS_A_ROW + self.ours.error**2) ** 0.5
        return abs(self.ours.mean - self.published.mean) <= 2 * error

    def __str__(self) -> str:
        return (
            f"{self.where}, {self.method}: {self.measure} {self.ours.mean:.1f} over {self.ours.count} sets, "
            f"published {self.published}"
        )


Explain = Callable[[Comparison], str | None]


@dataclass
class Notes:
    """Sentences under a table, numbered as they come; the gaps that have none are kept."""

    explain: Explain
    sentences: list[str] = field(default_factory=list)
    unexplained: list[Comparison] = field(default_factory=list)
    compared: list[Comparison] = field(default_factory=list)

    def gap(self, comparison: Comparison) -> str:
        """The gap as it stands in a table, with the number of its sentence when it is large."""
        self.compared.append(comparison)
        shown = f"{comparison.gap:+.0%}".replace("%", " %")
        if not comparison.is_large:
            return shown
        sentence = self.explain(comparison)
        if sentence is None:
            self.unexplained.append(comparison)
            return f"{shown} [?]"
        if sentence not in self.sentences:
            self.sentences.append(sentence)
        return f"{shown} [{self.sentences.index(sentence) + 1}]"

    def __str__(self) -> str:
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(self.sentences, 1))


@dataclass
class Section:
    """A piece of the report."""

    title: str
    blocks: list[str] = field(default_factory=list)
    notes: list[Notes] = field(default_factory=list)
    verdict: str = ""  # a sentence for the opening paragraph

    def add(self, *blocks: str) -> Section:
        self.blocks += [block for block in blocks if block]
        return self

    def add_notes(self, notes: Notes) -> Section:
        """The sentences on the gaps of the table before."""
        self.notes.append(notes)
        return self.add("Gaps over 20 %:\n\n" + str(notes) if notes.sentences else "")

    @property
    def unexplained(self) -> list[Comparison]:
        return [comparison for notes in self.notes for comparison in notes.unexplained]

    def __str__(self) -> str:
        return "\n\n".join([f"## {self.title}", *self.blocks])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers line up on the right when read as text, which is all Markdown promises."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(ours: Summary | None, digits: int = 1) -> str:
    if ours is None:
        return NOT_RUN
    if ours.count == 1:
        return f"{ours.mean:.{digits}f}"
    return f"{ours.mean:.{digits}f} ± {ours.std:.{digits}f}"


def count(ours: Summary | None) -> str:
    return "0" if ours is None else str(ours.count)


def image(file: str, caption: str) -> str:
    return f"![{caption}](reproduction/{file})"

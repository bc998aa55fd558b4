"""What comes after the first order: mend it, then choose the edges; each choice is one function for the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from diffan.context import Context
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import Work
from diffan.ordering.result import Ordering
from diffan.pruning import PruneSettings, candidates_along, prune
from diffan.table import Table

if TYPE_CHECKING:
    from diffan.likelihood.refine import RefinedOrder

RefineSteps = Callable[[Ordering, Table, Context], Work[Ordering]]
EdgeSteps = Callable[[Ordering, Table, Context], Work[EdgeEvidence]]
Refine = Literal["auto", "additive", "kernel", False]
Edges = Literal["auto", "likelihood", "additive"]

MOST_VARIABLES = 50  # measured: above, the search over all pairs takes minutes on a laptop
MOST_CELLS = 200_000  # choice: of a wider table, up to which that search is worth its minutes


def is_ours(method: str, preset: str) -> bool:
    """Whether what is left open is ours to choose; baselines and the paper's preset stay as published."""
    return method == "diffan" and preset == "default"


def resolve(refine: Refine, edges: Edges, method: str, preset: str, table: Table) -> tuple[Refine, Edges]:
    """What "auto" means: DiffAN is finished by the likelihood; baselines and the paper's preset as published.

    The edges of a wide table are tested additively: there the rows are usually many and the search would be long.
    """
    _check("refine", refine, ("auto", "additive", "kernel", False))
    _check("edges", edges, ("auto", "likelihood", "additive"))
    ours = is_ours(method, preset)
    if refine == "auto":
        refine = "kernel" if ours else False
    if edges == "auto":
        edges = "likelihood" if ours and not is_wide(table) else "additive"
    return refine, edges


def is_wide(table: Table) -> bool:
    """Whether the search over all pairs would take too long, so that it is kept to screened neighbours."""
    wide = table.n_variables > MOST_VARIABLES
    return wide and (
        table.n_samples * table.n_variables > MOST_CELLS or table.n_variables > 2 * MOST_VARIABLES
    )


def steps(
    refine: Refine,
    edges: Edges,
    prune_settings: PruneSettings,
    settings: LikelihoodSettings,
    *,
    wide: bool | None = None,
    warn: bool = True,
) -> tuple[RefineSteps | None, EdgeSteps]:
    """How an order is mended, if at all, and how edges are chosen along it, as work that asks for its fits.

    `wide` says whether the search keeps to screened neighbours, None that each table's size does: replicates have fewer
    rows and must not go another way. With `warn=False` edges come without the warnings that nobody reads of a replicate.
    """

    def among_neighbours(table: Table) -> bool:
        return is_wide(table) if wide is None else wide

    mended: list[RefinedOrder] = []  # what refining fitted, so that choosing edges need not fit it again

    def refine_order(ordering: Ordering, table: Table, context: Context) -> Work[Ordering]:
        # imported here: a run without refinement does not need torch
        from diffan.likelihood.additive import refine_additively
        from diffan.likelihood.large import refine_large
        from diffan.likelihood.refine import refining
        from diffan.likelihood.snapshot import DONE, freeze, thaw

        place = context.keeper.stage("refine")
        saved = place.load()
        neighbours = ordering.neighbours
        if saved is not None and saved.record["phase"] == DONE:
            found = thaw(saved, table, settings, context)
            neighbours = saved.arrays.get("neighbours", neighbours)
        else:
            if among_neighbours(table):
                found, neighbours = refine_large(
                    ordering.order,
                    table,
                    context=context,
                    gram=ordering.gram,
                    neighbours=neighbours,
                    objective="additive" if refine == "additive" else "kernel",
                )
            elif refine == "additive":
                found = refine_additively(ordering.order, table, context=context)
            else:
                found = yield from refining(
                    ordering.order, table, settings=settings, context=context, place=place
                )
            if place.keeps:
                record, arrays = freeze(found)
                place.save(record, arrays if neighbours is None else {**arrays, "neighbours": neighbours})
        mended[:] = [found] if found.state is not None else []
        # A method's candidates were chosen along its own order; after a move they say nothing.
        candidates = ordering.candidates if found.order == ordering.order else None
        warnings = (*ordering.warnings, *found.warnings)
        return replace(
            ordering, order=found.order, candidates=candidates, neighbours=neighbours, warnings=warnings
        )

    def test_additively(ordering: Ordering, table: Table, context: Context) -> Work[EdgeEvidence]:
        yield from ()  # asks for no fits
        candidates: Any = ordering.candidates
        if candidates is None and ordering.neighbours is not None:
            candidates = candidates_along(ordering.order, ordering.neighbours)
        return prune(
            ordering.order, table, candidates, settings=prune_settings, context=context, gram=ordering.gram
        )

    def select_by_likelihood(ordering: Ordering, table: Table, context: Context) -> Work[EdgeEvidence]:
        from diffan.likelihood.select import selecting

        # A screen goes by main effects: it is for tables that are too wide to look at all pairs.
        screened = ordering.neighbours if among_neighbours(table) else None
        candidates = screened if ordering.candidates is None else ordering.candidates
        along = None if candidates is None else candidates_along(ordering.order, candidates)
        start = mended.pop() if mended else None  # its stored kernels are not needed beyond this stage
        return (
            yield from selecting(
                ordering.order,
                table,
                settings=settings,
                context=context,
                candidates=along,
                refined=start,
                warn=warn,
            )
        )

    return (
        None if refine is False else refine_order,
        select_by_likelihood if edges == "likelihood" else test_additively,
    )


def _check(option: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(value is choice or value == choice for choice in choices) or value is True:
        expected = ", ".join(map(repr, choices))
        raise InputError(f"The {option!r} parameter must be one of {expected}. Got {value!r} instead.")


def parse_refine(text: str) -> Refine:
    """The command line's word for a refinement: "none" stands for False."""
    return cast(Refine, False if text == "none" else text)

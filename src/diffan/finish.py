"""What comes after the first order: mend it, then choose the edges; each choice is one function for the pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from diffan.algorithm import EdgeStage, RefineStage
from diffan.context import Context
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.likelihood.settings import LikelihoodSettings
from diffan.ordering.result import Ordering
from diffan.pruning import PruneSettings, candidates_along, prune
from diffan.table import Table

if TYPE_CHECKING:
    from diffan.likelihood.refine import RefinedOrder

Refine = Literal["auto", "additive", "kernel", False]
Edges = Literal["auto", "likelihood", "additive"]

MOST_VARIABLES = 100  # choice: above, the kernel search takes minutes on a laptop


def resolve(refine: Refine, edges: Edges, method: str, preset: str, n_variables: int) -> tuple[Refine, Edges]:
    """What "auto" means: DiffAN is finished by the likelihood; baselines and the paper's preset as published."""
    _check("refine", refine, ("auto", "additive", "kernel", False))
    _check("edges", edges, ("auto", "likelihood", "additive"))
    by_likelihood = method == "diffan" and preset == "default" and n_variables <= MOST_VARIABLES
    if refine == "auto":
        refine = "kernel" if by_likelihood else False
    if edges == "auto":
        edges = "likelihood" if by_likelihood else "additive"
    return refine, edges


def stages(
    refine: Refine, edges: Edges, prune_settings: PruneSettings, settings: LikelihoodSettings
) -> tuple[RefineStage | None, EdgeStage]:
    """The stage that mends an order, if any, and the one that chooses edges along it."""
    mended: list[RefinedOrder] = []  # what refining fitted, so that choosing edges need not fit it again

    def refine_order(ordering: Ordering, table: Table, context: Context) -> Ordering:
        # imported here: a run without refinement does not need torch
        from diffan.likelihood.additive import refine_additively
        from diffan.likelihood.refine import refine as refine_by_kernel
        from diffan.likelihood.snapshot import freeze, thaw

        place = context.keeper.stage("refine")
        saved = place.load()
        if saved is not None:
            found = thaw(saved, table, settings, context)
        else:
            if refine == "additive":
                found = refine_additively(ordering.order, table, context=context)
            else:
                found = refine_by_kernel(ordering.order, table, settings=settings, context=context)
            place.save(*freeze(found))
        mended[:] = [found]
        # A method's candidates were chosen along its own order; after a move they say nothing.
        candidates = ordering.candidates if found.order == ordering.order else None
        warnings = (*ordering.warnings, *found.warnings)
        return replace(ordering, order=found.order, candidates=candidates, warnings=warnings)

    def test_additively(ordering: Ordering, table: Table, context: Context) -> EdgeEvidence:
        return prune(ordering.order, table, ordering.candidates, settings=prune_settings, context=context)

    def select_by_likelihood(ordering: Ordering, table: Table, context: Context) -> EdgeEvidence:
        from diffan.likelihood.select import select

        candidates = ordering.candidates
        along = None if candidates is None else candidates_along(ordering.order, candidates)
        start = mended[0] if mended else None
        return select(
            ordering.order, table, settings=settings, context=context, candidates=along, refined=start
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

"""Leaves left at a checkpoint as they are found, so that a run that was cut off looks only for those still missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from diffan.algorithm import LeafFinder
from diffan.keeping import Arrays, Stage

Array = npt.NDArray[np.float64]
START = "memory."


class Memory(Protocol):
    """What a finder carries from leaf to leaf beside the leaves themselves."""

    def state(self) -> Arrays: ...

    def restore(self, arrays: Arrays) -> None: ...


def kept_leaves(find_leaf: LeafFinder, place: Stage, memory: Memory | None = None) -> LeafFinder:
    """The same finder; what it answered before it was cut off is answered again from the record.

    Answers and memory are saved as one, so that a damaged save falls back to a leaf before, never to a mixture.
    """
    leaves, criteria = list[int](), list[Array]()
    saved = place.load()
    if saved is not None:
        leaves = [int(leaf) for leaf in saved.record["leaves"]]
        ends = np.cumsum(saved.record["sizes"])
        criteria = np.split(saved.arrays["criteria"], ends[:-1])
        if memory is not None:
            known = {name: values for name, values in saved.arrays.items() if name.startswith(START)}
            memory.restore({name[len(START) :]: values for name, values in known.items()})

    def find_or_recall(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
        step = len(removed)
        if step < len(leaves):
            return leaves[step], criteria[step]
        leaf, criterion = find_leaf(remaining, removed)
        leaves.append(leaf)
        criteria.append(criterion)
        if place.due():
            extra = {} if memory is None else memory.state()
            arrays = {f"{START}{name}": values for name, values in extra.items()}
            record = {"leaves": [int(one) for one in leaves], "sizes": [len(one) for one in criteria]}
            place.save(record, arrays | {"criteria": np.concatenate(criteria)})
        return leaf, criterion

    return find_or_recall

"""Every method as a scikit-learn estimator: inert constructor, `fit(X)`, learned values end in `_`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from diffan.discovery import Discovery
from diffan.likelihood.settings import LikelihoodSettings
from diffan.methods import METHODS, discover
from diffan.options import as_record
from diffan.pruning import PruneSettings

_COMMON: dict[str, Any] = {
    "seed": 0,
    "device": "auto",
    "missing": "error",
    "column_transform": "auto",  # discover's `transform`, a name that scikit-learn keeps for a method
    "standardize": True,
    "progress": False,
    "refine": "auto",
    "edges": "auto",
    "adjust": "none",
    "knowledge": None,
    "confidence": 0,
    "inspect": True,
}


class Estimator(BaseEstimator):  # type: ignore[misc]
    """The contract all methods share.

    After `fit(X)`: `adjacency_` (0/1, rows cause columns), `order_` (column positions, causes first),
    `p_values_`, and `discovery_`, the whole result.
    """

    _method: str
    discovery_: Discovery

    def fit(self, X: Any, y: Any = None) -> Estimator:
        """Discover the graph over the columns of X; y is ignored and there for pipelines."""
        self.discovery_ = discover(_dense(X), self._method, **self._given())
        names = self.discovery_.names
        self.n_features_in_ = len(names)
        if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        place = {name: i for i, name in enumerate(names)}
        self.order_ = [place[name] for name in self.discovery_.order]
        self.adjacency_ = np.array(self.discovery_.dag.adjacency)
        self.p_values_ = self.discovery_.evidence.p_values.copy()
        return self

    def _given(self) -> dict[str, Any]:
        given = {name: value for name, value in self.get_params(deep=False).items() if value is not None}
        return {"transform" if name == "column_transform" else name: value for name, value in given.items()}

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.non_deterministic = False
        return tags


def _dense(X: Any) -> Any:
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("Sparse data was passed, but a dense table is required; convert it with X.toarray().")
    return X


def _estimator(name: str, method: str, description: str) -> type[Estimator]:
    """An estimator class whose constructor takes the method's own settings by name.

    A setting left at None takes the value of the preset.
    """
    entry = METHODS[method]
    own = as_record(entry.default_settings("default"), PruneSettings(), LikelihoodSettings())
    defaults: dict[str, Any] = {**_COMMON}
    if method == "diffan":
        defaults |= {"variant": "auto", "preset": "default"} | {key: None for key in own if key != "variant"}
    else:
        defaults |= own
    fields = [
        (key, Any, dataclasses.field(default=_frozen(value))) for key, value in sorted(defaults.items())
    ]
    made: type[Estimator] = dataclasses.make_dataclass(
        name, fields, bases=(Estimator,), kw_only=True, eq=False, repr=False, namespace={"_method": method}
    )
    made.__doc__ = f"{description}\n\n{Estimator.__doc__}"
    made.__module__ = __name__
    return made


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


DiffAN = _estimator("DiffAN", "diffan", "DiffAN: leaves by the score of a diffusion model.")
SCORE = _estimator("SCORE", "score", "SCORE (Rolland 2022): leaves by a Stein estimate of the score.")
CAM = _estimator("CAM", "cam", "CAM (Buhlmann 2014): greedy search on the additive likelihood.")
GraNDAG = _estimator(
    "GraNDAG", "gran-dag", "GraN-DAG (Lachapelle 2020): neural networks under an acyclicity constraint."
)
NoGAM = _estimator(
    "NoGAM", "nogam", "NoGAM (Montagna 2023): leaves whose score is a function of their residual."
)
DAS = _estimator(
    "DAS", "das", "DAS (Montagna 2023): SCORE's order, parents preselected by the score's Jacobian."
)
VarSort = _estimator("VarSort", "var-sort", "Sort by raw variance: what a benchmark gives away for nothing.")
R2Sort = _estimator("R2Sort", "r2-sort", "Sort by R^2 (Reisach 2023): what survives standardisation.")
RandomOrder = _estimator("RandomOrder", "random", "A random order: the floor of every comparison.")

"""GraN-DAG's optimisation: an augmented Lagrangian whose subproblems RMSprop solves on small batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.baselines.checks import require_number, require_whole
from diffan.baselines.gran_dag_model import (
    Networks,
    connectivity,
    initial_weights,
    mean_absolute_jacobian,
    negative_log_likelihood,
    write_gradient,
)
from diffan.context import Context
from diffan.errors import FitError
from diffan.progress import Task
from diffan.table import Table

_MOST_HELD_OUT = 1000  # rows; more would only slow the checks down
_SMOOTHING = 0.99  # of RMSprop's running mean of squared gradients, its usual value


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """GraN-DAG's networks, its optimiser and its augmented Lagrangian."""

    hidden: int = 10  # paper: two hidden layers of ten units
    batch_size: int = 64  # paper
    learning_rate: float = 0.01  # paper: of RMSprop in the first subproblem
    later_rate: float = 3e-3  # measured: 1e-3 to 1e-2 order alike; the paper's 1e-4 takes many times as long
    multiplier: float = 0.0  # paper: lambda at the start
    penalty: float = 1e-3  # paper: mu at the start
    penalty_growth: float = 10.0  # paper: mu grows by this factor ...
    progress_wanted: float = (
        0.5  # measured: ... unless h fell below this share; the paper's 0.9 takes twice as long
    )
    tolerance: float = 1e-8  # paper: the h that counts as acyclic
    edge_clamp: float = 1e-4  # paper: connectivity below which an edge is switched off for good
    check_every: int = 100  # choice: iterations between looks at the held-out Lagrangian
    patience: int = 2  # choice: looks without a better one that end a subproblem
    max_steps: int = 30_000  # choice: over all subproblems
    holdout: float = 0.2  # paper: share of the rows that judges when a subproblem has converged

    def __post_init__(self) -> None:
        for name in ("hidden", "batch_size", "check_every", "patience", "max_steps"):
            require_whole(self, name, least=1)
        for name in ("learning_rate", "later_rate", "penalty", "tolerance", "edge_clamp"):
            require_number(self, name, above=0)
        require_number(self, "multiplier")
        require_number(self, "penalty_growth", above=1)
        for name in ("progress_wanted", "holdout"):
            require_number(self, name, above=0, below=1)


@dataclass
class _Lagrangian:
    """The weight of h(A) in the objective: multiplier h + penalty h^2 / 2."""

    multiplier: float
    penalty: float

    def cost(self, acyclicity: float) -> float:
        return self.multiplier * acyclicity + self.penalty / 2 * acyclicity**2

    def slope(self, acyclicity: float) -> float:
        return self.multiplier + self.penalty * acyclicity


class GranDagTraining:
    """The networks in training; `curves` holds the held-out negative log-likelihood and the acyclicity at every check."""

    def __init__(
        self, table: Table, allowed: npt.NDArray[np.bool_], settings: TrainingSettings, context: Context
    ) -> None:
        device = context.torch_device()
        self._settings = settings
        self._rng = context.rng("gran-dag")
        shuffled = table.values[self._rng.permutation(table.n_samples)]
        data = torch.tensor(shuffled / shuffled.std(axis=0), dtype=torch.float64, device=device)
        held = min(max(1, round(settings.holdout * table.n_samples)), _MOST_HELD_OUT)
        self._held_out, self._rows = data[:held], data[held:]
        self._n_nodes = table.n_variables
        self._mask = torch.tensor(allowed, dtype=torch.float64, device=device)  # [d, d]
        self._required = torch.tensor(context.rules(table.n_variables).required, device=device)
        start = initial_weights(self._n_nodes, settings.hidden, self._rng)
        self._weights = torch.tensor(start, device=device)
        self._gradient = torch.zeros_like(self._weights)
        self._networks = Networks.view(self._weights, self._n_nodes, settings.hidden)
        self._network_gradients = Networks.view(self._gradient, self._n_nodes, settings.hidden)
        self._iterations = 0
        self.curves: dict[str, list[float]] = {"step": [], "validation": [], "acyclicity": []}

    def run(self, task: Task) -> bool:
        """Solve subproblem after subproblem until the graph is acyclic; False when the iterations run out first."""
        settings = self._settings
        lagrangian = _Lagrangian(settings.multiplier, settings.penalty)
        before = self._solve(lagrangian, settings.learning_rate, clamp=False, task=task)
        while before >= settings.tolerance and self._iterations < settings.max_steps:
            lagrangian.multiplier += lagrangian.penalty * before
            after = self._solve(lagrangian, settings.later_rate, clamp=True, task=task)
            if after > settings.progress_wanted * before:
                lagrangian.penalty *= settings.penalty_growth
            before = after
        return before < settings.tolerance

    def strength(self) -> npt.NDArray[np.float64]:
        """How much each network's prediction reacts to each variable on average: [d, d], zero for clamped edges."""
        reaction = mean_absolute_jacobian(self._networks, self._mask, self._rows[:_MOST_HELD_OUT])
        strength: npt.NDArray[np.float64] = reaction.cpu().numpy()
        return strength

    def _solve(self, lagrangian: _Lagrangian, rate: float, *, clamp: bool, task: Task) -> float:
        """Minimise until the held-out Lagrangian no longer falls; returns the acyclicity reached."""
        settings = self._settings
        mean_square = torch.zeros_like(self._weights)
        best, idle = np.inf, 0
        while True:
            steps = min(settings.check_every, settings.max_steps - self._iterations)
            for batch in self._rng.integers(0, len(self._rows), size=(steps, settings.batch_size)):
                self._step(mean_square, lagrangian, rate, self._rows[torch.from_numpy(batch)])
            self._iterations += steps
            likelihood, acyclicity = self._check(clamp)
            task.advance(steps, note=f"acyclicity {acyclicity:.1e}")
            value = likelihood + lagrangian.cost(acyclicity)
            best, idle = (value, 0) if value < best else (best, idle + 1)
            out_of_steps = self._iterations >= settings.max_steps
            if idle >= settings.patience or acyclicity < settings.tolerance or out_of_steps:
                return acyclicity

    def _step(self, mean_square: Tensor, lagrangian: _Lagrangian, rate: float, batch: Tensor) -> None:
        """One step of RMSprop on the likelihood of a batch plus the Lagrangian's terms."""
        exponential = torch.matrix_exp(connectivity(self._networks, self._mask))
        slope = lagrangian.slope(float(exponential.trace()) - self._n_nodes)
        pull = slope * exponential.T  # the gradient of tr(exp A) is exp(A)^T
        write_gradient(self._networks, self._mask, batch, pull, self._network_gradients)
        mean_square.mul_(_SMOOTHING).addcmul_(self._gradient, self._gradient, value=1 - _SMOOTHING)
        self._weights.addcdiv_(self._gradient, mean_square.sqrt().add_(1e-8), value=-rate)

    def _check(self, clamp: bool) -> tuple[float, float]:
        """Held-out negative log-likelihood and acyclicity, after switching weak edges off if asked to."""
        if clamp:
            strong = connectivity(self._networks, self._mask) > self._settings.edge_clamp
            self._mask = self._mask * (strong | self._required)
        exponential = torch.matrix_exp(connectivity(self._networks, self._mask))
        acyclicity = max(0.0, float(exponential.trace()) - self._n_nodes)
        likelihood = float(negative_log_likelihood(self._networks, self._mask, self._held_out))
        if not np.isfinite(likelihood + acyclicity):
            raise FitError(
                f"GraN-DAG's objective is not a number after {self._iterations} iterations; "
                f"lower 'learning_rate', which is {self._settings.learning_rate:g}."
            )
        self.curves["step"].append(self._iterations)
        self.curves["validation"].append(likelihood)
        self.curves["acyclicity"].append(acyclicity)
        return likelihood, acyclicity

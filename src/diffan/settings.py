"""The settings of the score model and of the order, checked when they are made.

Each default says where it comes from: "paper" is the DiffAN paper, "measured" is our own tuning on the
paper's grid with standardised columns (never on evaluation seeds), "choice" is a matter of taste or safety.
A misspelt name is an error because these are dataclasses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from diffan.checks import number, one_of, whole, within
from diffan.errors import InputError
from diffan.local_settings import LocalSettings

Schedule = Literal["continuous", "ddpm"]
Conditioning = Literal["log_sigma", "timestep"]
Prediction = Literal["preconditioned", "noise"]
Architecture = Literal["plain", "paper"]
ActivationName = Literal["tanh", "silu", "softplus", "leaky_relu"]
HoldoutSplit = Literal["shared", "folds"]
Variant = Literal["auto", "masking", "deciduous", "greedy", "local"]
Criterion = Literal["variance", "mean", "spread"]
Vote = Literal["mean", "log_mean", "rank", "majority"]
EvaluateAt = Literal["clean", "noised", "as_latent"]
Residue = Literal["fill", "recursion"]


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """How the score is learned: noise schedule, network, optimiser, early stopping."""

    schedule: Schedule = "continuous"  # measured: a third of the DDPM steps carry no score
    log_sigma_mean: float = -1.0  # measured: log sigma ~ normal(-1, 0.7) on unit-variance columns
    log_sigma_std: float = 0.7  # measured
    timesteps: int = 100  # paper; used by the ddpm schedule only
    beta_min: float = 1e-4  # paper
    beta_max: float = 0.02  # paper
    conditioning: Conditioning = "log_sigma"  # measured: a raw step number is a badly scaled input
    prediction: Prediction = "preconditioned"  # Karras et al. 2022: the network's target has unit variance

    architecture: Architecture = "plain"  # measured: LayerNorm costs order accuracy
    activation: ActivationName = "tanh"  # measured: smooth, so its second derivatives mean something
    depth: int = 3  # measured: hidden layers
    width: int = (
        256  # measured: 512 at this rate stops too early (held-out 0.969 against 0.964) and costs 3 times
    )
    dropout: float = 0.2  # paper and measured; drawn in steps of 1/256
    init_gain: float = 1.7  # measured: weights start uniform in +-gain/sqrt(inputs), so tanh bends at once
    drop_columns: float = 0.0  # share of training rows that lack random columns and say so: marginals
    ensemble: int = 1  # choice: networks trained side by side, their scores averaged

    learning_rate: float = 3e-3  # measured: with init_gain it needs a third of the steps of the paper's 1e-3
    cosine: bool = False  # choice: let the rate fall to zero at max_steps along a cosine
    weight_decay: float = 1.0  # measured: overfitting is the enemy at n = 1000
    averaging: float = 0.98  # choice: decay of the running average of the weights; 0 for the last weights
    batch_size: int | None = None  # None: all rows up to 2000, then 2048, from 1e5 rows 8192
    max_steps: int = 3000  # choice: early stopping ends far sooner at n = 1000
    check_every: int = 20  # choice: steps between looks at the held-out loss
    patience: int = 120  # choice: steps without a better held-out loss before stopping
    holdout: float = 0.15  # choice: share of the rows held out, at most 5000 rows
    holdout_draws: int = 8  # choice: fixed noise draws per held-out row
    holdout_split: HoldoutSplit = "shared"  # "folds": every network of an ensemble holds out rows of its own
    refit: bool = False  # choice: train again on every row for as many steps as were best
    restarts: int = 3  # choice: after a loss that is not a number, each at 0.3 of the rate before

    def __post_init__(self) -> None:
        for name, allowed in (
            ("schedule", Schedule),
            ("conditioning", Conditioning),
            ("prediction", Prediction),
            ("architecture", Architecture),
            ("activation", ActivationName),
            ("holdout_split", HoldoutSplit),
        ):
            one_of(self, name, get_args(allowed))
        for name in ("timesteps", "depth", "width", "ensemble", "max_steps", "check_every", "holdout_draws"):
            whole(self, name, least=1)
        whole(self, "patience", least=1)
        whole(self, "restarts", least=0)
        if self.batch_size is not None:
            whole(self, "batch_size", least=1)
        within(self, "log_sigma_mean", -10.0, 10.0)
        within(self, "log_sigma_std", 0.0, 10.0, open_low=True)
        within(self, "beta_min", 0.0, 1.0, open_low=True, open_high=True)
        within(self, "beta_max", self.beta_min, 1.0, open_high=True)
        within(self, "init_gain", 0.0, 100.0, open_low=True)
        within(self, "dropout", 0.0, 1.0, open_high=True)
        within(self, "drop_columns", 0.0, 1.0)
        within(self, "learning_rate", 0.0, math.inf, open_low=True, open_high=True)
        within(self, "weight_decay", 0.0, math.inf, open_high=True)
        within(self, "averaging", 0.0, 1.0, open_high=True)
        within(self, "holdout", 0.0, 0.5, open_low=True)
        if self.conditioning == "timestep" and self.schedule != "ddpm":
            raise InputError(
                "The 'conditioning' parameter must be 'log_sigma' unless the schedule is 'ddpm'. "
                "Got 'timestep' instead."
            )

    @classmethod
    def paper(cls) -> ScoreSettings:
        """The paper's training: T = 100, linear betas, its layer table, early stopping, no weight decay."""
        return cls(
            schedule="ddpm",
            conditioning="timestep",
            prediction="noise",
            architecture="paper",
            activation="leaky_relu",
            init_gain=1.0,
            dropout=0.2,
            learning_rate=1e-3,
            weight_decay=0.0,
            averaging=0.0,
        )


@dataclass(frozen=True, kw_only=True)
class OrderSettings:
    """How leaves are chosen once there is a score."""

    noise_levels: tuple[float, ...] = (0.2, 0.3, 0.4)  # measured: sigma on unit-variance columns
    vote: Vote = "log_mean"  # choice: levels differ in scale, so their criteria are averaged as logarithms
    criterion: Criterion = "variance"  # paper
    mean_weight: float = (
        2.0  # measured: w in variance * |mean|^w of the derivative; a leaf's mean is small too
    )
    # a Stein kernel's derivatives are heard beside the network's (measured at 20 columns) up to this many (choice); 0: never
    kernel_columns: int = 50
    kernel_rows: int = 1000  # choice: rows the kernel looks at, since its time grows with their cube
    order_batch_size: int = 512  # choice: k rows, the same at every step
    resample: bool = False  # choice; the paper draws new rows at every step
    evaluate_at: EvaluateAt = "clean"  # choice; "noised": with the level's noise, "as_latent": the paper
    residue: Residue = "fill"  # exact and needs first derivatives only; "recursion" is the slow check
    fill_iterations: int = 8  # choice: Newton steps towards the conditional mode for each new leaf
    fill_step: float = 1.0  # choice: the longest Newton step, in standard deviations
    fill_floor: float = 0.6  # measured: the least curvature believed of removed columns of unit variance
    fill_tolerance: float = 0.05  # choice: |score| of the filled columns that counts as zero
    greedy_steps: int = 200  # choice: training steps after each removal, started from the weights before
    memory_mb: int | None = None  # bound on the derivatives held at once; None: 64 on a CPU, 4096 on a GPU

    def __post_init__(self) -> None:
        levels = self.noise_levels
        if not isinstance(levels, tuple) or not levels or not all(number(v) and 0 < v < 100 for v in levels):
            raise InputError(
                "The 'noise_levels' parameter of OrderSettings must be a tuple of numbers above 0. "
                f"Got {levels!r} instead."
            )
        for name, allowed in (
            ("vote", Vote),
            ("criterion", Criterion),
            ("evaluate_at", EvaluateAt),
            ("residue", Residue),
        ):
            one_of(self, name, get_args(allowed))
        whole(self, "order_batch_size", least=2)
        whole(self, "kernel_columns", least=0)
        whole(self, "kernel_rows", least=10)
        within(self, "mean_weight", 0.0, 100.0)
        for name in ("fill_iterations", "greedy_steps"):
            whole(self, name, least=1)
        if self.memory_mb is not None:
            whole(self, "memory_mb", least=1)
        within(self, "fill_floor", 0.0, math.inf, open_high=True)
        for name in ("fill_step", "fill_tolerance"):
            within(self, name, 0.0, math.inf, open_low=True, open_high=True)

    @classmethod
    def paper(cls) -> OrderSettings:
        """The paper's votes: three evenly spaced steps of T = 100, by majority, new rows at every step.

        The paper leaves k open ("can be arbitrarily small"); 100 is our reading.
        """
        score = ScoreSettings.paper()
        last = score.timesteps - 1
        return cls(
            noise_levels=tuple(ddpm_sigmas(score)[round(share * last)] for share in (0.0, 0.5, 1.0)),
            vote="majority",
            criterion="variance",
            mean_weight=0.0,
            kernel_columns=0,
            order_batch_size=100,
            resample=True,
            evaluate_at="as_latent",
        )


@dataclass(frozen=True, kw_only=True)
class DiffanSettings:
    """The whole ordering stage: a variant, the score it learns and the way it chooses leaves."""

    variant: Variant = "auto"  # by the number of variables, see `ordering.diffan_order.automatic_variant`
    score: ScoreSettings = field(default_factory=ScoreSettings)
    order: OrderSettings = field(default_factory=OrderSettings)
    local: LocalSettings = field(default_factory=LocalSettings)

    def __post_init__(self) -> None:
        one_of(self, "variant", get_args(Variant))
        if not isinstance(self.score, ScoreSettings) or not isinstance(self.order, OrderSettings):
            raise InputError("DiffanSettings needs score=ScoreSettings(...) and order=OrderSettings(...).")

    @classmethod
    def paper(cls, variant: Variant = "deciduous") -> DiffanSettings:
        """The paper's settings, with the sign of its residue mended."""
        return cls(variant=variant, score=ScoreSettings.paper(), order=OrderSettings.paper())


def ddpm_sigmas(settings: ScoreSettings) -> list[float]:
    """The noise level of each DDPM step on data of the original scale: sqrt((1 - alpha_t) / alpha_t)."""
    span = max(settings.timesteps - 1, 1)
    sigmas, alpha = [], 1.0
    for step in range(settings.timesteps):
        alpha *= 1.0 - (settings.beta_min + (settings.beta_max - settings.beta_min) * step / span)
        sigmas.append(math.sqrt((1.0 - alpha) / alpha))
    return sigmas

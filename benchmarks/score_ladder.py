"""What each choice in the score model gives: order divergence on tuning seeds, all data sets trained at once.

Every data set's networks are members of one batched network, so a whole ladder of settings runs in minutes on a
GPU. Tuning seeds only (below 1000); the settings that measured best became the defaults of `diffan.settings`.

    python benchmarks/score_ladder.py --seeds 0 --configs base wide ensemble
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import torch

from diffan.simulate.grid import NOISES, PaperCase


@dataclass(frozen=True)
class Config:
    width: int = 512
    depth: int = 3
    activation: str = "tanh"
    dropout: float = 0.2
    weight_decay: float = 1.0
    learning_rate: float = 1e-3
    log_sigma: tuple[float, float] = (-1.0, 0.7)
    ensemble: int = 1
    folds: bool = False
    masked: float = 0.0  # share of training rows with a random set of columns removed
    refit: bool = False
    input_dropout: float = 0.0
    max_steps: int = 2000
    patience: int = 160
    averaging: float = 0.98
    feature: str = "plain"
    cosine: bool = False  # learning rate falls to zero along a cosine
    gaussian_skip: bool = (
        False  # the exact denoiser of Gaussian data is built in; the network learns the rest
    )
    antithetic: bool = False  # every row with its noise and with its noise turned round
    draws: int = 1  # noise draws per row and step
    batch: int = 0  # rows a step; 0 for all


BASE = Config()
CONFIGS = {
    "base": BASE,
    "d2": replace(BASE, depth=2, dropout=0.0),
    "d2-drop1": replace(BASE, depth=2, dropout=0.1),
    "d2-lr2": replace(BASE, depth=2, dropout=0.0, learning_rate=2e-3),
    "d2-lr4": replace(BASE, depth=2, dropout=0.0, learning_rate=4e-3),
    "d2-b256": replace(BASE, depth=2, dropout=0.0, batch=256),
    "d2-w256": replace(BASE, depth=2, dropout=0.0, width=256),
    "d2-w1024": replace(BASE, depth=2, dropout=0.0, width=1024),
    "d2-wd3": replace(BASE, depth=2, dropout=0.0, weight_decay=3.0),
    "d2-refit": replace(BASE, depth=2, dropout=0.0, refit=True),
    "d2-ens4": replace(BASE, depth=2, dropout=0.0, ensemble=4),
    "d2-ens4-refit": replace(BASE, depth=2, dropout=0.0, ensemble=4, refit=True),
    "d2-ens4-folds": replace(BASE, depth=2, dropout=0.0, ensemble=4, folds=True),
    "d2-w256-ens4": replace(BASE, depth=2, dropout=0.0, width=256, ensemble=4),
    "d1": replace(BASE, depth=1, dropout=0.0, width=1024),
    "d2-drop2-ens4-refit": replace(BASE, depth=2, ensemble=4, refit=True, max_steps=3000),
    "d2-w1024-ens4-refit": replace(BASE, depth=2, dropout=0.1, width=1024, ensemble=4, refit=True),
    "s1": replace(BASE, depth=2, dropout=0.2, batch=256, max_steps=3000),
    "s2": replace(BASE, depth=2, dropout=0.2, batch=256, learning_rate=3e-3),
    "s3": replace(BASE, depth=2, dropout=0.1, batch=256, learning_rate=3e-3),
    "s4": replace(BASE, depth=2, dropout=0.1, batch=256, learning_rate=3e-3, weight_decay=2.0),
    "s5": replace(BASE, depth=2, dropout=0.2, batch=256, learning_rate=5e-3, max_steps=800, cosine=True),
    "s6": replace(BASE, depth=2, dropout=0.1, batch=256, learning_rate=5e-3, max_steps=800, cosine=True),
    "s7": replace(
        BASE,
        depth=2,
        dropout=0.1,
        batch=256,
        width=256,
        ensemble=4,
        learning_rate=5e-3,
        max_steps=800,
        cosine=True,
    ),
    "s8": replace(
        BASE,
        depth=3,
        dropout=0.1,
        batch=256,
        width=256,
        ensemble=4,
        learning_rate=3e-3,
        max_steps=800,
        cosine=True,
    ),
    "s9": replace(
        BASE, depth=2, dropout=0.2, batch=256, ensemble=4, learning_rate=5e-3, max_steps=1500, cosine=True
    ),
    "s10": replace(
        BASE,
        depth=2,
        dropout=0.2,
        batch=256,
        ensemble=4,
        learning_rate=5e-3,
        max_steps=1500,
        cosine=True,
        refit=True,
    ),
    "s11": replace(BASE, depth=2, dropout=0.2, ensemble=4, learning_rate=4e-3, max_steps=800, cosine=True),
    "s12": replace(
        BASE, depth=3, dropout=0.2, ensemble=4, learning_rate=2e-3, max_steps=800, cosine=True, refit=True
    ),
    "a1": replace(BASE, depth=2, averaging=0.995, max_steps=3000),
    "a2": replace(BASE, depth=2, dropout=0.1, averaging=0.995),
    "a3": replace(BASE, depth=2, dropout=0.1, averaging=0.995, learning_rate=2e-3, weight_decay=0.5),
    "a4": replace(BASE, depth=2, dropout=0.1, averaging=0.995, antithetic=True),
    "a5": replace(BASE, depth=2, dropout=0.1, draws=4),
    "a6": replace(BASE, depth=2, dropout=0.0, averaging=0.995),
    "a7": replace(BASE, depth=2, dropout=0.0, averaging=0.998, learning_rate=2e-3, weight_decay=0.5),
    "a8": replace(BASE, depth=2, dropout=0.0, averaging=0.995, width=256, antithetic=True),
    "a9": replace(BASE, depth=2, dropout=0.1, averaging=0.995, width=256, antithetic=True, ensemble=4),
    "a10": replace(BASE, depth=2, dropout=0.1, averaging=0.995, antithetic=True, ensemble=4, refit=True),
    "g1": replace(BASE, depth=2, dropout=0.1, gaussian_skip=True),
    "g2": replace(BASE, depth=2, dropout=0.2, gaussian_skip=True),
    "g3": replace(BASE, depth=2, dropout=0.0, gaussian_skip=True),
    "g4": replace(BASE, depth=2, dropout=0.1, width=256, gaussian_skip=True),
    "g5": replace(BASE, depth=3, dropout=0.2, gaussian_skip=True),
    "g6": replace(BASE, depth=2, dropout=0.1, weight_decay=3.0, gaussian_skip=True),
    "g7": replace(BASE, depth=2, dropout=0.2, gaussian_skip=True, ensemble=4, refit=True),
    "h1": replace(BASE, depth=2, dropout=0.1),
    "h2": replace(BASE, depth=2, dropout=0.1, log_sigma=(0.0, 0.7)),
    "h3": replace(BASE, depth=2, dropout=0.1, log_sigma=(-0.3, 1.0)),
    "ens4": replace(BASE, ensemble=4),
    "ens8": replace(BASE, ensemble=8),
    "folds5": replace(BASE, ensemble=5, folds=True),
    "wide": replace(BASE, width=1024, ensemble=4),
    "narrow": replace(BASE, width=256, ensemble=4),
    "deep2": replace(BASE, depth=2, ensemble=4),
    "deep4": replace(BASE, depth=4, ensemble=4),
    "drop0": replace(BASE, dropout=0.0, ensemble=4),
    "drop4": replace(BASE, dropout=0.4, ensemble=4),
    "wd3": replace(BASE, weight_decay=3.0, ensemble=4),
    "wd10": replace(BASE, weight_decay=10.0, ensemble=4),
    "slow": replace(BASE, learning_rate=3e-4, ensemble=4, patience=400),
    "silu": replace(BASE, activation="silu", ensemble=4),
    "softplus": replace(BASE, activation="softplus", ensemble=4),
    "masked5": replace(BASE, masked=0.5, ensemble=4, patience=300),
    "masked9": replace(BASE, masked=0.9, ensemble=4, patience=300),
    "refit": replace(BASE, refit=True, ensemble=4),
    "sig-lo": replace(BASE, log_sigma=(-1.5, 0.7), ensemble=4),
    "sig-hi": replace(BASE, log_sigma=(-0.7, 0.5), ensemble=4),
    "sig-narrow": replace(BASE, log_sigma=(-1.1, 0.35), ensemble=4),
}

ORDERS = {  # name: (criterion, sigmas, evaluate at)
    "var.2-.4": ("var", (0.2, 0.3, 0.4), "clean"),
    "var.1": ("var", (0.1,), "clean"),
    "var.3": ("var", (0.3,), "clean"),
    "var.5": ("var", (0.5,), "clean"),
    "var.3n": ("var", (0.3,), "noised"),
    "mean.3": ("mean", (0.3,), "clean"),
    "mean.2n": ("mean", (0.2,), "noised"),
    "mix.5": (0.5, (0.3,), "clean"),
    "mix1": (1.0, (0.3,), "clean"),
    "mix2": (2.0, (0.3,), "clean"),
    "mix4": (4.0, (0.3,), "clean"),
    "var.7": ("var", (0.7,), "clean"),
    "var1": ("var", (1.0,), "clean"),
    "var1n": ("var", (1.0,), "noised"),
    "var1.5": ("var", (1.5,), "clean"),
    "var2.5": ("var", (2.5,), "clean"),
    "mean1": ("mean", (1.0,), "clean"),
    "mix2.1": (2.0, (1.0,), "clean"),
    "mix2.15": (2.0, (1.5,), "clean"),
    "mix8": (8.0, (0.3,), "clean"),
    "mix4.2": (4.0, (0.2,), "clean"),
    "mix4.5": (4.0, (0.5,), "clean"),
    "mix1.5": (1.0, (0.5,), "clean"),
    "s2.3": ("s2", (0.3,), "clean"),
    "mad.3": ("mad", (0.3,), "clean"),
}


def draw(case: PaperCase) -> tuple[np.ndarray, np.ndarray]:
    torch.set_num_threads(1)
    frame, dag = case.draw(device="cpu")
    values = frame.to_numpy()
    return ((values - values.mean(0)) / values.std(0)).astype(np.float32), np.array(dag.adjacency)


def cases(seeds: list[int], d: int, n: int) -> list[PaperCase]:
    return [
        PaperCase(graph, density, noise, scale, seed, d, n)
        for graph in ("er", "sf")
        for density in (1, 5)
        for noise in NOISES
        for scale in range(3)
        for seed in seeds
    ]


class Net:
    def __init__(self, members: int, inputs: int, outputs: int, config: Config, device: torch.device) -> None:
        sizes = [inputs] + [config.width] * config.depth + [outputs]
        self.weights, self.biases = [], []
        for a, b in pairwise(sizes):
            bound = 1 / math.sqrt(a)
            self.weights.append(((torch.rand(members, a, b, device=device) * 2 - 1) * bound).requires_grad_())
            self.biases.append(((torch.rand(members, 1, b, device=device) * 2 - 1) * bound).requires_grad_())
        self.config = config

    def parameters(self):
        return self.weights + self.biases

    @staticmethod
    def act(name, z):
        return {
            "tanh": torch.tanh,
            "silu": torch.nn.functional.silu,
            "softplus": torch.nn.functional.softplus,
        }[name](z)

    @staticmethod
    def slope(name, z):
        if name == "tanh":
            return 1 - torch.tanh(z).square()
        if name == "silu":
            g = torch.sigmoid(z)
            return g * (1 + z * (1 - g))
        return torch.sigmoid(z)

    def forward(self, x, weights, train):
        k = len(weights) // 2
        for i in range(k):
            x = torch.baddbmm(weights[k + i], x, weights[i])
            if i < k - 1:
                x = self.act(self.config.activation, x)
                if train and self.config.dropout:
                    x = torch.nn.functional.dropout(x, self.config.dropout)
        return x

    def diagonal(self, x, weights, d):
        """Value [M, B, d] and diagonal of the Jacobian [M, B, d] with respect to the first d inputs."""
        k = len(weights) // 2
        tangent = None
        for i in range(k):
            z = torch.baddbmm(weights[k + i], x, weights[i])
            if i == 0:
                t = weights[0][:, None, :d].expand(-1, x.shape[1], -1, -1)  # [M, B, d, w]
            elif i < k - 1:
                t = torch.einsum("mbdw,mwv->mbdv", tangent, weights[i])
            else:
                t = torch.einsum("mbdw,mwd->mbd", tangent, weights[i])
                return z, t
            tangent = t * self.slope(self.config.activation, z)[:, :, None]
            x = self.act(self.config.activation, z)
        raise AssertionError


def network_input(x, sigma, mask):
    scaled = x * torch.rsqrt(1 + sigma**2)
    condition = (sigma.log() + 1) / 0.7
    parts = [scaled, condition.expand(*x.shape[:-1], 1)]
    if mask is not None:
        parts = [scaled * mask, condition.expand(*x.shape[:-1], 1), mask.expand_as(x)]
    return torch.cat(parts, -1)


def target(x, eps, sigma, spectrum=None):
    if spectrum is None:
        return (sigma * x - eps) * torch.rsqrt(1 + sigma**2)
    values, vectors = spectrum  # [M, d], [M, d, d]
    y = x + sigma * eps
    expected = ((y @ vectors) * (values[:, None] / (values[:, None] + sigma**2))) @ vectors.transpose(1, 2)
    return (x - expected) * torch.sqrt(1 + sigma**2) / sigma


def spectrum_of(data):
    return torch.linalg.eigh(data.transpose(1, 2) @ data / data.shape[1])


def gaussian_diagonal(data, kept, s):
    """Diagonal of the Gaussian part of the Jacobian over the kept columns: ((C + s^2 I)^-1 C - I)_jj / s^2."""
    mask = kept.float()
    covariance = data.transpose(1, 2) @ data / data.shape[1] * mask[:, :, None] * mask[:, None]
    eye = torch.eye(data.shape[2], device=data.device)
    return -torch.linalg.inv(covariance + s * s * eye).diagonal(dim1=1, dim2=2)


def random_masks(shape, share, device):
    """Half-open: a share of the rows keep a random number of columns, the rest keep all."""
    m, b, d = shape
    keep = torch.rand(m, b, 1, device=device)
    mask = (torch.rand(m, b, d, device=device) < keep).float()
    full = (torch.rand(m, b, 1, device=device) > share).float()
    return torch.maximum(mask, full)


def fit(data: torch.Tensor, config: Config, snapshot: torch.Tensor | None = None):
    """data [S, n, d]; returns the averaged weights at each data set's best step, and the held-out losses."""
    device = data.device
    sets, n, d = data.shape
    members = sets * config.ensemble
    net = Net(members, d + 1 + (d if config.masked else 0), d, config, device)
    data_m = data.repeat_interleave(config.ensemble, 0)
    held = 0 if snapshot is not None else int(0.15 * n)
    perm = torch.stack([torch.randperm(n, device=device) for _ in range(sets)]).repeat_interleave(
        config.ensemble, 0
    )
    if config.folds:
        perm = torch.stack([p.roll((i % config.ensemble) * held) for i, p in enumerate(perm)])
    rows = torch.arange(members, device=device)[:, None]
    train, val = data_m[rows, perm[:, held:]], data_m[rows, perm[:, :held]]
    spectrum = spectrum_of(data_m) if config.gaussian_skip else None
    mean, std = config.log_sigma
    opt = torch.optim.AdamW(
        [
            {"params": net.weights, "weight_decay": config.weight_decay},
            {"params": net.biases, "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        fused=True,
    )
    average = [p.detach().clone() for p in net.parameters()]
    best = [p.clone() for p in average]
    if held:
        draws = 8
        v = val.repeat(1, draws, 1)
        share = (torch.arange(draws, device=device).repeat_interleave(held)[None, :, None] + 0.5) / draws
        v_sigma = torch.exp(-1.0 + 0.7 * math.sqrt(2) * torch.erfinv(2 * share - 1)).expand(members, -1, 1)
        v_eps = torch.randn(sets, v.shape[1], d, device=device).repeat_interleave(config.ensemble, 0)
        v_mask = torch.ones_like(v) if config.masked else None
        v_in, v_target = (
            network_input(v + v_sigma * v_eps, v_sigma, v_mask),
            target(v, v_eps, v_sigma, spectrum),
        )
    lowest = torch.full((sets,), math.inf, device=device)
    best_step = torch.zeros(sets, device=device, dtype=torch.long) if snapshot is None else snapshot
    last = config.max_steps if snapshot is None else int(snapshot.max())
    for step in range(1, last + 1):
        if config.cosine:
            for group in opt.param_groups:
                group["lr"] = (
                    config.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - 1) / config.max_steps))
                )
        rows_now = train
        if config.batch:
            rows_now = train[:, torch.randint(train.shape[1], (config.batch,), device=device)]
        rows_now = rows_now.repeat(1, config.draws, 1)
        eps = torch.randn_like(rows_now)
        sigma = torch.exp(mean + std * torch.randn(members, rows_now.shape[1], 1, device=device))
        if config.antithetic:
            rows_now, eps, sigma = rows_now.repeat(1, 2, 1), torch.cat([eps, -eps], 1), sigma.repeat(1, 2, 1)
        mask = random_masks(rows_now.shape, config.masked, device) if config.masked else None
        out = net.forward(network_input(rows_now + sigma * eps, sigma, mask), net.parameters(), True)
        loss = (out - target(rows_now, eps, sigma, spectrum)).square()
        if mask is not None:
            loss = loss * mask / mask.mean(-1, keepdim=True).clamp_min(0.05)
        opt.zero_grad(set_to_none=True)
        (loss.mean((1, 2)).sum()).backward()
        opt.step()
        decay = min(config.averaging, (1 + step) / (10 + step))
        torch._foreach_lerp_(average, [p.detach() for p in net.parameters()], 1 - decay)
        if snapshot is not None:
            hit = (snapshot == step).repeat_interleave(config.ensemble)
            if bool(hit.any()):
                for kept, value in zip(best, average, strict=True):
                    kept[hit] = value[hit]
            continue
        if step % 20:
            continue
        with torch.no_grad():
            out = net.forward(v_in, average, False)
            if config.folds:
                current = (out - v_target).square().mean((1, 2)).view(sets, -1).mean(1)
            else:
                out = out.view(sets, config.ensemble, *out.shape[1:]).mean(1)
                current = (out - v_target[:: config.ensemble]).square().mean((1, 2))
        better = current < lowest
        lowest = torch.where(better, current, lowest)
        best_step = torch.where(better, step, best_step)
        hit = better.repeat_interleave(config.ensemble)
        for kept, value in zip(best, average, strict=True):
            kept[hit] = value[hit]
        if step - int(best_step.max()) >= config.patience:
            break
    return net, best, lowest, best_step


@torch.no_grad()
def orders(
    net: Net, weights, data: torch.Tensor, config: Config, criterion: str, sigmas, at: str, points: int = 400
):
    device = data.device
    sets, _, d = data.shape
    e = config.ensemble
    removed = torch.zeros(sets, d, dtype=torch.bool, device=device)
    found = torch.zeros(sets, d, dtype=torch.long, device=device)
    x0 = data[:, :points]
    noise = torch.randn(x0.shape, device=device, generator=torch.Generator(device).manual_seed(1))
    for step in range(d):
        total = torch.zeros(sets, d, device=device)
        for s in sigmas:
            sigma = torch.full((1, 1, 1), s, device=device)
            x = x0 + s * noise if at == "noised" else x0
            x = x * (~removed)[:, None]
            diag = torch.empty(sets, points, d, device=device)
            value = torch.empty(sets, points, d, device=device)
            group = max(1, 64 // e)
            for a in range(0, sets, group):
                b = min(sets, a + group)
                xm = x[a:b].repeat_interleave(e, 0)
                mask = (~removed[a:b]).float().repeat_interleave(e, 0)[:, None] if config.masked else None
                inputs = network_input(xm, sigma, mask)
                w = [p[a * e : b * e] for p in weights]
                v, t = net.diagonal(inputs, w, d)
                scale = 1 / math.sqrt(1 + s * s)
                v, t = (q.view(b - a, e, points, d).mean(1) for q in (v, t))
                diag[a:b] = -1 / (1 + s * s) + scale / s * t * scale
                if config.gaussian_skip:
                    part = gaussian_diagonal(data[a:b], ~removed[a:b], s)
                    diag[a:b] = part[:, None] + scale / s * t * scale
                value[a:b] = -x[a:b] / (1 + s * s) + scale / s * v
            if criterion == "var":
                total += diag.var(1).log()
            elif criterion == "mean":
                total += diag.mean(1).abs().log()
            elif isinstance(criterion, float):  # log variance plus so many times log |mean|
                total += diag.var(1).log() + criterion * diag.mean(1).abs().log()
            elif criterion == "s2":
                total += value.square().mean(1).log()
            elif criterion == "mad":
                total += (diag - diag.median(1, keepdim=True).values).abs().mean(1).log()
        total[removed] = math.inf
        leaf = total.argmin(1)
        removed[torch.arange(sets, device=device), leaf] = True
        found[:, d - 1 - step] = leaf
    return found.cpu().numpy()


def divergence(adjacency: np.ndarray, order: np.ndarray) -> int:
    place = np.argsort(order)
    i, j = np.nonzero(adjacency)
    return int((place[i] > place[j]).sum())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--configs", nargs="+", default=["base"])
    parser.add_argument("--orders", nargs="+", default=list(ORDERS))
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    if max(args.seeds) >= 1000:
        raise SystemExit("seeds of 1000 and above are for evaluation")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    grid = cases(args.seeds, args.nodes, args.samples)
    start = time.perf_counter()
    with get_context("spawn").Pool(args.jobs) as pool:
        drawn = pool.map(draw, grid, chunksize=1)
    print(f"{len(grid)} sets drawn in {time.perf_counter() - start:.1f} s", flush=True)
    data = torch.tensor(np.stack([values for values, _ in drawn]), device=device)
    graphs = [adjacency for _, adjacency in drawn]
    kinds = [f"{c.graph.upper()}{c.density}" for c in grid]
    print(
        f"{'config':12s} {'loss':>7s} {'steps':>6s} {'sec':>6s}  " + " ".join(f"{o:>9s}" for o in args.orders)
    )
    for name in args.configs:
        config = CONFIGS[name]
        torch.manual_seed(0)
        start = time.perf_counter()
        net, weights, loss, steps = fit(data, config)
        if config.refit:
            net, weights, _, _ = fit(data, config, steps)
        seconds = time.perf_counter() - start
        row, detail = [], {}
        for order_name in args.orders:
            found = orders(net, weights, data, config, *ORDERS[order_name])
            values = [divergence(a, o) for a, o in zip(graphs, found, strict=True)]
            row.append(float(np.mean(values)))
            detail[order_name] = {
                k: float(np.mean([v for v, q in zip(values, kinds, strict=True) if q == k]))
                for k in dict.fromkeys(kinds)
            }
        print(
            f"{name:12s} {float(loss.mean()):7.4f} {float(steps.float().mean()):6.0f} {seconds:6.1f}  "
            + " ".join(f"{v:9.2f}" for v in row),
            flush=True,
        )
        best = min(detail, key=lambda o: sum(detail[o].values()))
        print(
            "             "
            + "; ".join(
                f"{o}: " + "/".join(f"{v:.1f}" for v in detail[o].values()) for o in {best, args.orders[0]}
            ),
            flush=True,
        )
        if args.out:
            with open(args.out, "a") as stream:
                stream.write(
                    json.dumps(
                        {
                            "config": name,
                            "loss": float(loss.mean()),
                            "steps": steps.tolist(),
                            "orders": detail,
                        }
                    )
                    + "\n"
                )


if __name__ == "__main__":
    main()

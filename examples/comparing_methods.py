"""Several methods on simulated tables whose graph is known, beside what sorting gives for nothing.

Run with: python examples/comparing_methods.py
"""

import pandas as pd

import diffan

# for a real comparison add "diffan", which takes longer
METHODS = ("nogam", "score", "cam", "r2-sort", "random")


def compare(seeds: range, *, nodes: int = 10, rows: int = 500) -> pd.DataFrame:
    """Mean SHD, SID and order divergence of each method; small is good."""
    found = []
    for seed in seeds:
        truth = diffan.simulate.random_dag(nodes, nodes, graph="er", seed=seed)
        table = diffan.simulate.sample_anm(truth, rows, noise="gauss", noise_scale=(0.4, 0.8), seed=seed)
        for method in METHODS:
            result = diffan.discover(table, method, seed=0, inspect=False)
            scores = diffan.metrics.evaluate(truth, result.dag, result.order)
            found.append({"method": method, **scores})
    return pd.DataFrame(found).groupby("method")[["shd", "sid", "order_divergence"]].mean()


if __name__ == "__main__":
    means = compare(range(3))
    print(means.loc[list(METHODS)].round(1).to_string())
    better = [name for name in ("nogam", "score", "cam") if means.shd[name] < means.shd["random"]]
    print("better than a random order:", ", ".join(better))

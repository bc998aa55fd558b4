"""What is known beforehand settles what the data cannot.

Income is a straight line of schooling plus Gaussian noise: both directions fit equally well, and no method can tell
them apart. That schooling comes first is known, though, and tiers say so.

Run with: python examples/knowledge_with_tiers.py
"""

import numpy as np
import pandas as pd

import diffan


def survey(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    schooling = rng.normal(size=rows)
    income = 0.8 * schooling + 0.6 * rng.normal(size=rows)
    spending = np.sin(1.5 * income) + 0.4 * rng.normal(size=rows)
    return pd.DataFrame({"spending": spending, "income": income, "schooling": schooling})


if __name__ == "__main__":
    table = survey(rows=500)
    known = diffan.Knowledge(
        tiers=[["schooling"], ["income"], ["spending"]],  # nothing later causes anything earlier
        forbidden=["schooling -> spending"],  # pairs of names do as well: ("schooling", "spending")
    )
    blind = diffan.discover(table, method="cam", seed=0)
    told = diffan.discover(table, method="cam", knowledge=known, seed=0)

    print("links found without knowledge:", sorted("-".join(sorted(edge)) for edge in blind.dag.edges))
    print("what is said about them:", [one.topic for one in blind.diagnostics if one.level == "doubt"])
    print("with knowledge:", [f"{cause} -> {effect}" for cause, effect in told.dag.edges])

    try:
        diffan.Knowledge(required=["income -> schooling"], tiers=[["schooling"], ["income"]])
    except diffan.InputError as refusal:
        print("refused:", refusal)

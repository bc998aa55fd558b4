"""How often would half of the rows have led to the same edges?

Run with: python examples/confidence_of_edges.py
"""

import numpy as np
import pandas as pd

import diffan


def reactor(rows: int, seed: int = 1) -> pd.DataFrame:
    """Feed drives heat, heat drives pressure; the link from pressure to leak is faint."""
    rng = np.random.default_rng(seed)
    feed = rng.normal(size=rows)
    heat = np.sin(1.5 * feed) + 0.3 * rng.normal(size=rows)
    pressure = 1.5 * np.tanh(2 * heat) - heat**2 + 0.3 * rng.normal(size=rows)
    leak = 0.4 * np.cos(2 * pressure) + rng.normal(size=rows)
    return pd.DataFrame({"feed": feed, "heat": heat, "pressure": pressure, "leak": leak})


if __name__ == "__main__":
    settings = diffan.ConfidenceSettings(replicates=20)  # 100 for a real run; workers=2 for two processes
    result = diffan.discover(reactor(rows=600), method="cam", confidence=settings, seed=0)
    sure = result.confidence
    place = {name: i for i, name in enumerate(result.names)}

    for cause, effect in result.dag.edges:
        share = sure.frequency[place[cause], place[effect]]
        print(f"{cause} -> {effect}:", "in nearly every half" if share > 0.9 else "in some halves only")
    print("consensus:", [f"{cause} -> {effect}" for cause, effect in sure.consensus.edges])
    print("heat comes before pressure in all halves:", sure.precedence[place["heat"], place["pressure"]] == 1)

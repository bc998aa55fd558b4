"""A first discovery: a DataFrame in, a graph with its evidence out.

Run with: python examples/first_discovery.py
"""

import numpy as np
import pandas as pd

import diffan


def clinic(rows: int, seed: int = 0) -> pd.DataFrame:
    """Age drives the dose, the dose a marker in the blood, and marker and age the response."""
    rng = np.random.default_rng(seed)
    age = rng.normal(size=rows)
    dose = np.cos(1.5 * age) + 0.3 * rng.normal(size=rows)
    marker = np.sin(2 * dose) + 0.3 * rng.normal(size=rows)
    response = marker**2 - np.abs(age) + 0.3 * rng.normal(size=rows)
    return pd.DataFrame({"response": response, "marker": marker, "age": 50 + 12 * age, "dose": dose})


if __name__ == "__main__":
    table = clinic(rows=400)
    result = diffan.discover(table, seed=0)

    print("order:", " < ".join(result.order))
    print(result.adjacency)
    for (cause, effect), facts in result.edge_facts().items():
        print(f"{cause} -> {effect}", "p below 0.001" if facts["p_value"] < 0.001 else "weak")
    for doubt in (one for one in result.diagnostics if one.level == "doubt"):
        print("doubt:", doubt.text, doubt.advice)

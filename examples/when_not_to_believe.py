"""Three tables that break an assumption, and what the result says about itself.

Run with: python examples/when_not_to_believe.py
"""

import numpy as np
import pandas as pd

import diffan


def broken_tables(rows: int, seed: int = 0) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=rows)
    noise = rng.normal(size=rows)
    return {
        "straight lines with Gaussian noise": pd.DataFrame({"a": cause, "b": 0.8 * cause + 0.6 * noise}),
        "noise that grows with the cause": pd.DataFrame(
            {"a": cause, "b": np.sin(2 * cause) + (0.1 + 0.6 * np.abs(cause)) * noise}
        ),
        "a column of few values": pd.DataFrame({"a": cause, "b": np.round(2 * np.tanh(cause) + 0.3 * noise)}),
    }


if __name__ == "__main__":
    for what, table in broken_tables(rows=800).items():
        result = diffan.discover(table, method="cam", seed=0)
        print(f"{what}:")
        for one in result.diagnostics:
            if one.level == "doubt":
                print(f"  {one.text}")
                print(f"  -> {one.advice}")

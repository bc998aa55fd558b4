"""The discovered graph in networkx: paths, what to adjust for, and what each edge carries.

Run with: python examples/graph_into_networkx.py
"""

import networkx as nx
import numpy as np
import pandas as pd

import diffan


def farm(rows: int, seed: int = 0) -> pd.DataFrame:
    """Soil drives both fertiliser and yield: a confounder, but one that is in the table."""
    rng = np.random.default_rng(seed)
    soil = rng.normal(size=rows)
    fertiliser = np.tanh(1.5 * soil) + 0.4 * rng.normal(size=rows)
    harvest = 1.5 * np.sin(fertiliser) + 1.2 * soil**2 - soil + 0.3 * rng.normal(size=rows)
    price = np.exp(-harvest / 2) + 0.3 * rng.normal(size=rows)
    return pd.DataFrame({"soil": soil, "fertiliser": fertiliser, "harvest": harvest, "price": price})


if __name__ == "__main__":
    result = diffan.discover(farm(rows=800), method="cam", seed=0)
    graph = result.graph  # a networkx.DiGraph; edges carry p_value

    print("causes of the price:", sorted(nx.ancestors(graph, "price")))
    print("paths:", [" -> ".join(path) for path in nx.all_simple_paths(graph, "soil", "price")])
    # What to adjust for when asking what fertiliser does to the harvest: by the back-door rule its parents suffice.
    print("adjust for:", sorted(graph.predecessors("fertiliser")))
    print("each edge carries:", sorted(graph.edges["soil", "fertiliser"]))
    print(result.export("dagitty").splitlines()[0], "...", "and other tools: dot, graphml, pgmpy, dowhy")

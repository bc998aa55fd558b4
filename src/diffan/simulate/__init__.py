"""Simulated data with a known graph: random DAGs, additive-noise models, gene networks, the paper's grid."""

from diffan.simulate.anm import sample_anm, two_variable
from diffan.simulate.gene_network import GeneNetworkSettings, simulate_gene_network
from diffan.simulate.graphs import random_dag
from diffan.simulate.grid import PaperCase, paper_case, paper_grid

__all__ = [
    "GeneNetworkSettings",
    "PaperCase",
    "paper_case",
    "paper_grid",
    "random_dag",
    "sample_anm",
    "simulate_gene_network",
    "two_variable",
]

"""Additive regressions of columns on columns: splines, one Gram matrix, penalised fits, term tests."""

from diffan.additive.fit import NodeFit, fit_node, fit_nodes, term_effect
from diffan.additive.gram import SplineGram

__all__ = ["NodeFit", "SplineGram", "fit_node", "fit_nodes", "term_effect"]

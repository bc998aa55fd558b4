"""What the command line prints: summaries, scores, JSON for scripts, and one sentence when something fails."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import diffan
from diffan.discovery import Discovery
from diffan.runfolder import load_dag


def without_output() -> None:
    """Point standard output to nowhere, so that what it still holds does not fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def scores(truth: Path, run: Path) -> dict[str, Any]:
    true_dag, found = load_dag(truth), load_dag(run)
    order = diffan.load(run).order if (run / "graph.json").is_file() or run.name == "graph.json" else None
    found_scores: dict[str, Any] = diffan.metrics.evaluate(true_dag, found, order)
    return found_scores


def show_scores(scores: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(scores)
        return
    width = max(map(len, scores))
    say("\n".join(f"{name:<{width}}  {figure(value)}" for name, value in scores.items()))


def figure(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def result_record(result: Discovery) -> dict[str, Any]:
    edges = [{"source": a, "target": b, **facts} for (a, b), facts in result.edge_facts().items()]
    return {
        "method": result.method,
        "order": result.order,
        "edges": edges,
        "knowledge": result.knowledge.record(),
        "confidence": None if result.confidence is None else confidence_record(result.confidence),
        "timings": dict(result.timings),
        "warnings": list(result.warnings),
    }


def confidence_record(sure: diffan.Confidence) -> dict[str, Any]:
    whole = sure.record()
    kept = ("scheme", "n_replicates", "threshold", "expected_false", "worst_case")
    return {key: whole[key] for key in kept} | {"consensus": sure.consensus.edges}


def print_json(content: dict[str, Any]) -> None:
    say(json.dumps(content, indent=1))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def fail(sentence: str, code: int) -> None:
    sys.stderr.write(f"diffan: {' '.join(sentence.split())}\n")
    sys.exit(code)

"""The four marks of an edge can be told apart by every eye: simulated colour blindness keeps their colours distant."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

from diffan.report.drawing import COLOURS, DASHES

MARKS = ("correct", "extra", "reversed", "missing")
# Machado, Oliveira and Fernandes (2009), full severity, on linear RGB
EYES = {
    "ordinary": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def page_palettes() -> dict[str, dict[str, str]]:
    style = (files("diffan.report") / "assets" / "page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root(?:\[data-theme=\"dark\"\])? \{(.*?)\n\}", style, re.S)[:2]
    return {
        theme: {mark: re.search(rf"--{mark}: (#\w{{6}})", text)[1] for mark in MARKS}
        for theme, text in (("light", light), ("dark", dark))
    }


def lab(colour: str, eye: list[list[float]]) -> np.ndarray:
    """CIE L*a*b* of a colour as the eye sees it."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(eye) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ seen / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("palette", ["light", "dark", "figures"])
def test_marks_stay_apart(palette: str, eye: str) -> None:
    colours = COLOURS if palette == "figures" else page_palettes()[palette]
    for one, other in combinations(MARKS, 2):
        distance = np.linalg.norm(lab(colours[one], EYES[eye]) - lab(colours[other], EYES[eye]))
        assert distance > 20, (one, other, distance)


def test_marks_differ_without_any_colour() -> None:
    assert len({DASHES[mark] for mark in MARKS}) == 4

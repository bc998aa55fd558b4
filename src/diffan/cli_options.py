"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Output = Annotated[Path, Parameter(name=["--output", "-o"], help="Folder to write to.")]
Quiet = Annotated[
    bool, Parameter(name=["--quiet", "-q"], negative="", help="Show no progress and no summary.")
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON for a script.")]
Seed = Annotated[int, Parameter(help="Same seed, same device: same answer.")]
Device = Annotated[str, Parameter(help="auto, cpu or cuda.")]

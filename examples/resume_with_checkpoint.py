"""A run that is killed half way and started again ends as if nothing had happened.

Run with: python examples/resume_with_checkpoint.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import diffan

# width and max_steps keep this example short; checkpoint_every=0 saves at every chance, the default is every 30 seconds
OPTIONS = {"checkpoint_every": 0, "width": 64, "max_steps": 200}


def start_and_kill(table: Path, checkpoint: Path) -> None:
    """Another process runs the discovery; it is killed once it has left some progress."""
    code = f"import sys, diffan; diffan.discover(sys.argv[1], checkpoint=sys.argv[2], **{OPTIONS})"
    with subprocess.Popen([sys.executable, "-c", code, str(table), str(checkpoint)]) as process:
        while process.poll() is None and not list(checkpoint.glob("train.*.json")):
            time.sleep(0.01)
        process.kill()


def stages(checkpoint: Path) -> str:
    """Those that have left something in the folder."""
    return ", ".join(sorted({file.name.split(".")[0] for file in checkpoint.glob("*.json")}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        data, checkpoint = Path(folder) / "data.csv", Path(folder) / "checkpoint"
        truth = diffan.simulate.random_dag(4, 4, graph="er", seed=2)
        diffan.simulate.sample_anm(truth, 200, noise_scale=(0.4, 0.8), seed=2).to_csv(data, index=False)

        start_and_kill(data, checkpoint)
        print("left behind by the killed run:", stages(checkpoint))
        resumed = diffan.discover(data, checkpoint=checkpoint, **OPTIONS)
        print("after going on:", stages(checkpoint))
        undisturbed = diffan.discover(data, **OPTIONS)
        print("same p-values, to the last bit:", resumed.p_values.equals(undisturbed.p_values))

        try:
            diffan.discover(data, checkpoint=checkpoint, seed=1, **OPTIONS)
        except diffan.InputError as refusal:
            print("another seed is refused:", "(seed was 0 and is 1)" in str(refusal))

#!/usr/bin/env bash
# Two minutes alone on a GPU after a change to the likelihood's engine: does it run there, and how fast is it.
#     bash benchmarks/gpu_first_look.sh
set -u
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
timeout 50 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tail -12
timeout 50 "$python" benchmarks/confidence.py cost --device cuda 2>&1 | tail -12
timeout 40 "$python" benchmarks/engine.py replicates --device cuda 2>&1 | cut -c1-150 | tail -45

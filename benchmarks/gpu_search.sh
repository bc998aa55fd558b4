#!/usr/bin/env bash
# The likelihood's search on a machine with one GPU and 16 cores: do a GPU and a CPU agree, seconds of whole runs and of
# replicates, then settings on tuning seeds side by side. Leaves one archive:
#     bash benchmarks/gpu_search.sh OUT [seconds in all]
set -u
out=${1:?name the folder for the archive}
budget=${2:-240}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
timeout 60 "$python" -m pytest -q -p no:cacheprovider tests/test_likelihood_engine.py 2>&1 | tail -n 25
timeout 60 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$work/whole.log"
timeout 60 "$python" benchmarks/confidence.py cost --device cuda 2>&1 | tee "$work/cost.log"
source benchmarks/gpu_share.sh
timeout "$(left)" "$python" benchmarks/likelihood_tuning.py --device cuda --jobs 14 --seeds 0 1 --out "$work/search.jsonl" \
    --configs "" "edge_nats=3" > "$work/tables.log" 2>&1
echo quit | timeout 10 nvidia-cuda-mps-control > /dev/null 2>&1
tail -n 12 "$work/tables.log"
tar czf "$out/search.tgz" -C "$work" .

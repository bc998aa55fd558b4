#!/usr/bin/env bash
# What is missing of the paper's sweep, on a machine with one GPU and 16 cores: the seconds of 500 variables first, alone on
# the GPU, then the rest side by side. Real data are read from $DIFFAN_DATA. Leaves one archive:
#     bash benchmarks/gpu_paper.sh OUT [seconds in all]
#     tar xzf OUT/cells.tgz && python benchmarks/run.py unpack reproduction.jsonl CELLS
set -u
out=${1:?name the folder for the archive}
budget=${2:-450}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
cells=$work/cells
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$cells" > /dev/null
sweep() { timeout "$(left)" "$python" benchmarks/run.py sweep "$cells" --limit-seconds $(($(left) - 30)) --device cuda "$@"; }
timeout 200 "$python" benchmarks/run.py sweep "$cells" --limit-seconds 160 --device cuda --studies samples --ranks 0 1 \
    --redo masking local score --workers 0 2>&1 | tee "$work/alone.log" | cut -c1-120
source benchmarks/gpu_share.sh
sweep --studies samples --ranks 3 --lane gpu --workers 4 > "$work/samples.log" 2>&1 &
sweep --lane cpu --workers 5 > "$work/cpu.log" 2>&1 &
sweep --studies fifty sign units rows tables variants timestep overfitting batch_size --lane gpu --workers 6 > "$work/gpu.log" 2>&1 &
wait
for log in samples cpu gpu; do tail -n 1 "$work/$log.log" | cut -c1-150; done
timeout 30 "$python" benchmarks/run.py pack "$cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$cells"
tar czf "$out/cells.tgz" -C "$work" .

#!/usr/bin/env bash
# The rest of the paper's sweep, on a machine with one GPU and 16 cores: where the time of replicates goes and the seconds of
# the paper's network and SCORE at 500 variables first, alone on the GPU; then everything else side by side. Real data are
# read from $DIFFAN_DATA. Leaves one archive:
#     bash benchmarks/gpu_rest.sh OUT [seconds in all]
set -u
out=${1:?name the folder for the archive}
budget=${2:-540}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
cells=$work/cells
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$cells" > /dev/null
sweep() { timeout "$(left)" "$python" benchmarks/run.py sweep "$cells" --limit-seconds $(($(left) - 40)) --device cuda "$@"; }
for density in 1 5; do
    timeout 70 "$python" benchmarks/engine.py replicates --device cuda --density $density > "$work/replicates-$density.log" 2>&1
    grep -E "plain|profiled" "$work/replicates-$density.log"
done
sweep --lane cpu --workers 8 > "$work/cpu.log" 2>&1 &
timeout 230 "$python" benchmarks/run.py sweep "$cells" --limit-seconds 150 --device cuda --studies samples --ranks 3 \
    --redo paper-masking --workers 0 2>&1 | tee "$work/alone.log" | cut -c1-120
source benchmarks/gpu_share.sh
sweep --studies sign units fifty rows --lane gpu --workers 5 > "$work/gpu.log" 2>&1 &
sweep --studies tables samples --lane gpu --workers 4 > "$work/tables.log" 2>&1 &
wait
for log in cpu gpu tables; do tail -n 1 "$work/$log.log" | cut -c1-150; done
timeout 30 "$python" benchmarks/run.py pack "$cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$cells"
tar czf "$out/rest.tgz" -C "$work" .

#!/usr/bin/env bash
# The default after a change to how edges are judged, and the rest of the paper's sweep, on a machine with one GPU and 16
# cores: what replicates and whole runs cost first, alone on the GPU; then the default's cells, true tiers, calibration and
# what was never run side by side. Leaves one archive:
#     bash benchmarks/gpu_default.sh OUT [seconds in all]
set -u
out=${1:?name the folder for the archive}
budget=${2:-550}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
cells=$work/cells
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
run() { # a script with its options, as long as there is time
    [ "$(left)" -gt 20 ] && timeout $(($(left) - 15)) "$python" "$@"
}
timeout 80 "$python" benchmarks/confidence.py cost --device cuda 2>&1 | tee "$work/cost.log"
timeout 60 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$work/whole.log"
timeout 60 "$python" -m pytest -q -p no:cacheprovider -k "gpu or GPU" tests/test_confidence.py tests/test_likelihood_engine.py 2>&1 | tail -n 15
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$cells" > /dev/null
sweep() { # seconds that the last cell to begin may take, then options
    local last=$1
    shift
    run benchmarks/run.py sweep "$cells" --limit-seconds $(($(left) - last)) --device cuda --redo diffan local-default "$@"
}
source benchmarks/gpu_share.sh
sweep 45 --lane cpu --studies tables units rows --workers 6 > "$work/cpu.log" 2>&1 &
sweep 45 --lane gpu --studies fifty --ranks 2 3 --workers 2 > "$work/fifty.log" 2>&1 &
sweep 45 --lane gpu --studies rows sign --workers 2 > "$work/rows.log" 2>&1 &
sweep 200 --lane gpu --studies samples --ranks 3 --workers 2 > "$work/samples.log" 2>&1 &
(
    run benchmarks/knowledge.py --contenders diffan --seeds 1000 --device cuda --jobs 1 --out "$work/knowledge.jsonl"
    sweep 45 --lane gpu --studies units --workers 0
) > "$work/knowledge.log" 2>&1 &
run benchmarks/confidence.py calibration --contenders diffan+reuse --nodes 20 --samples 1000 200 --seeds 1000 1001 \
    --replicates 100 --device cuda --jobs 2 --out "$work/confidence-d20.jsonl" > "$work/calibration.log" 2>&1 &
wait
for log in cpu fifty rows samples knowledge calibration; do tail -n 1 "$work/$log.log" | cut -c1-150; done
timeout 30 "$python" benchmarks/run.py pack "$cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$cells"
wc -l "$work"/*.jsonl
tar czf "$out/default.tgz" -C "$work" .

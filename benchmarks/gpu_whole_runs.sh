#!/usr/bin/env bash
# Whole runs of the default after its search has changed, on a machine with one GPU and 16 cores: seconds first, alone on the
# GPU, then accuracy and calibration side by side. Leaves one archive:
#     bash benchmarks/gpu_whole_runs.sh OUT [seconds in all]
set -u
out=${1:?name the folder for the archive}
budget=${2:-370}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
timeout 60 "$python" benchmarks/confidence.py cost --device cuda 2>&1 | tee "$work/cost.log"
timeout 70 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$work/whole.log"
source benchmarks/gpu_share.sh
run() { # a script with its options, as long as there is time
    [ "$(left)" -gt 20 ] && timeout $(($(left) - 10)) "$python" "$@" >> "$work/scripts.log" 2>&1
}
accuracy() { run benchmarks/accuracy.py --device cuda --jobs 10 "$@"; }
default=masking+kernel+likelihood
cells=$work/cells
(
    accuracy --contenders $default --out "$work/accuracy-h200.jsonl"
    accuracy --seeds 1000 --scales 0 --nodes 50 --contenders $default --out "$work/accuracy-d50.jsonl"
    accuracy --seeds 1000 --scales 0 --samples 300 --contenders $default --out "$work/accuracy-n300.jsonl"
    accuracy --seeds 1000 --scales 0 --samples 3000 --contenders $default --out "$work/accuracy-n3000.jsonl"
    accuracy --seeds 1000 --scales 0 --nodes 10 --contenders $default --out "$work/accuracy-d10.jsonl"
    accuracy --seeds 1000 --scales 0 --out "$work/accuracy-h200.jsonl" --contenders {deciduous,greedy,local,score,random}+kernel+likelihood \
        masking+none+likelihood masking+kernel+additive
    for mechanism in additive-gp mlp sigmoid linear; do
        accuracy --seeds 1000 --scales 0 1 --mechanism $mechanism --contenders $default --out "$work/accuracy-mechanisms.jsonl"
    done
) &
run benchmarks/confidence.py calibration --contenders diffan+reuse --nodes 20 --samples 1000 200 --seeds 1000 1001 \
    --replicates 100 --device cuda --jobs 3 --out "$work/confidence-d20.jsonl" &
(
    "$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$cells" > /dev/null
    run benchmarks/run.py sweep "$cells" --lane gpu --studies rows fifty --redo diffan --workers 2 --device cuda \
        --ranks 0 1 2 3 --limit-seconds $(($(left) - 40))
) &
wait
echo quit | timeout 10 nvidia-cuda-mps-control > /dev/null 2>&1
timeout 30 "$python" benchmarks/run.py pack "$cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$cells"
wc -l "$work"/*.jsonl
tar czf "$out/whole_runs.tgz" -C "$work" .

#!/usr/bin/env bash
# The accuracy studies on a machine with one GPU and 16 cores, about nine minutes: speed first, alone on the GPU; then
# orders, whole runs, calibration and the paper's sweep side by side. What is already in benchmarks/results is not
# computed again. Real data are read from $DIFFAN_DATA. Leaves one archive, to be unpacked over benchmarks/results:
#     bash benchmarks/gpu_accuracy.sh OUT [seconds for the second part]
#     tar xzf OUT/all.tgz -C benchmarks/results
set -u
out=${1:?name the folder for the archive}
budget=${2:-400}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
mkdir "$work/cells"
for name in accuracy-h200 accuracy-d10 accuracy-n300 orders orders-300 orders-3000 orders-10000 orders-tuning confidence-d20; do
    cp "benchmarks/results/$name.jsonl" "$work" 2> /dev/null
done
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$work/cells" > /dev/null
timeout 100 "$python" benchmarks/confidence.py cost --device cuda 2>&1 | tee "$work/confidence.log"
timeout 110 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$work/whole.log"
source benchmarks/gpu_share.sh
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
run() { # a script with its options, as long as there is time
    [ "$(left)" -gt 10 ] && timeout "$(left)" "$python" "$@" >> "$work/scripts.log" 2>&1
}
orders() { run benchmarks/order_accuracy.py --device cuda --jobs 2 "$@"; }
accuracy() { run benchmarks/accuracy.py --device cuda "$@"; }
(
    orders --contenders masking --out "$work/orders.jsonl"
    orders --contenders deciduous greedy --seeds 1000 --out "$work/orders.jsonl"
    for n in 300 3000 10000; do
        orders --contenders masking --samples $n --seeds 1000 --scales 0 --out "$work/orders-$n.jsonl"
        orders --contenders masking "masking;kernel_columns=0" --samples $n --seeds 0 --scales 0 --out "$work/orders-tuning.jsonl"
    done
    orders --contenders greedy deciduous --out "$work/orders.jsonl"
) &
(
    accuracy --jobs 4 --contenders masking+kernel+likelihood --out "$work/accuracy-h200.jsonl"
    accuracy --jobs 4 --seeds 1000 --scales 0 --out "$work/accuracy-h200.jsonl"
    accuracy --jobs 4 --seeds 1000 --nodes 10 --contenders masking+kernel+likelihood score+none+additive \
        --out "$work/accuracy-d10.jsonl"
    accuracy --jobs 4 --seeds 1000 --samples 300 --contenders masking+kernel+likelihood score+none+additive \
        --out "$work/accuracy-n300.jsonl"
    accuracy --jobs 4 --seeds 1000 --out "$work/accuracy-h200.jsonl"
) &
run benchmarks/confidence.py calibration --contenders diffan+reuse --nodes 20 --samples 1000 200 --seeds 1000 1001 \
    --replicates 100 --device cuda --jobs 1 --out "$work/confidence-d20.jsonl" &
run benchmarks/run.py sweep "$work/cells" --lane gpu --studies rows --redo masking local score --workers 1 --device cuda &
timeout "$budget" "$python" benchmarks/run.py sweep "$work/cells" --lane gpu --ranks 0 1 2 3 --workers 3 --device cuda \
    --limit-seconds $((budget - 20)) > "$work/sweep-gpu.log" 2>&1 &
wait
tail -n 1 "$work"/sweep-*.log
timeout 30 "$python" benchmarks/run.py pack "$work/cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$work/cells"
wc -l "$work"/*.jsonl
tar czf "$out/all.tgz" -C "$work" .

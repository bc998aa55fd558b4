#!/usr/bin/env bash
# The accuracy studies on a machine with one GPU and 16 cores, about nine minutes, everything resumable: whole-run
# speed first, alone on the GPU; then orders, accuracy and the paper's sweep side by side. What is already in
# benchmarks/results is not computed again. Leaves one archive, all.tgz, to be unpacked over benchmarks/results here:
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
cp benchmarks/results/{accuracy-h200,accuracy-d10,accuracy-n300,orders,reproduction}.jsonl "$work" 2> /dev/null
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$work/cells" > /dev/null
timeout $((budget + 60)) "$python" benchmarks/run.py sweep "$work/cells" --lane cpu --workers 4 --device cpu \
    --limit-seconds $((budget + 40)) > "$work/sweep-cpu.log" 2>&1 &
timeout 40 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$work/whole.log"
timeout 60 "$python" benchmarks/confidence.py cost --device cuda --workers 8 2>&1 | tee "$work/confidence.log"
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
run() { # a script with its options, as long as there is time
    [ "$(left)" -gt 10 ] && timeout "$(left)" "$python" "$@" >> "$work/scripts.log" 2>&1
}
(
    run benchmarks/order_accuracy.py --device cuda --jobs 4 --contenders masking deciduous greedy score local \
        --out "$work/orders.jsonl"
    run benchmarks/accuracy.py --device cuda --jobs 4 --seeds 1000 --samples 300 \
        --contenders masking+kernel+likelihood score+none+additive --out "$work/accuracy-n300.jsonl"
) &
(
    run benchmarks/accuracy.py --device cuda --jobs 4 --seeds 1000 --out "$work/accuracy-h200.jsonl" --contenders \
        deciduous+kernel+likelihood greedy+kernel+likelihood local+kernel+likelihood masking+none+likelihood \
        masking+kernel+additive masking+additive+additive deciduous+none+additive greedy+none+additive \
        local+none+additive masking+none+additive score+kernel+likelihood score+additive+additive \
        random+kernel+likelihood
    run benchmarks/accuracy.py --device cuda --jobs 4 --seeds 1000 --nodes 10 \
        --contenders masking+kernel+likelihood score+none+additive --out "$work/accuracy-d10.jsonl"
) &
timeout "$budget" "$python" benchmarks/run.py sweep "$work/cells" --lane gpu --workers 4 --device cuda \
    --limit-seconds $((budget - 20)) > "$work/sweep-gpu.log" 2>&1 &
wait
timeout 30 "$python" benchmarks/run.py pack "$work/cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$work/cells"
tar czf "$out/all.tgz" -C "$work" .
wc -l "$work"/*.jsonl

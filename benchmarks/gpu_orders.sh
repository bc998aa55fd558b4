#!/usr/bin/env bash
# The score's own orders on the evaluation grid and the paper's studies side by side, for as many seconds as it is
# given; what is already in benchmarks/results is not computed again. Leaves one archive:
#     bash benchmarks/gpu_orders.sh OUT [SECONDS] [options of `run.py sweep`]
#     tar xzf OUT/all.tgz -C benchmarks/results
set -u
out=${1:?name the folder for the archive}
budget=${2:-400}
shift $(($# < 2 ? $# : 2))
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
source benchmarks/gpu_share.sh
work=$(mktemp -d)
mkdir "$work/cells"
cp benchmarks/results/orders.jsonl "$work"
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$work/cells" > /dev/null
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
orders() { # contenders and options, as long as there is time
    [ "$(left)" -gt 10 ] && timeout "$(left)" "$python" benchmarks/order_accuracy.py --device cuda --jobs 1 \
        --out "$work/orders.jsonl" --contenders "$@" >> "$work/orders.log" 2>&1
}
(
    orders masking
    orders deciduous greedy local score --seeds 1000
    orders local score deciduous
) &
timeout $((budget + 20)) "$python" benchmarks/run.py sweep "$work/cells" --lane cpu --workers "${CPU_WORKERS:-6}" \
    --limit-seconds $((budget - 20)) "$@" > "$work/sweep-cpu.log" 2>&1 &
timeout $((budget + 20)) "$python" benchmarks/run.py sweep "$work/cells" --lane gpu --workers "${GPU_WORKERS:-6}" \
    --device cuda --limit-seconds $((budget - 20)) "$@" > "$work/sweep-gpu.log" 2>&1 &
wait
tail -n 2 "$work"/sweep-*.log "$work/orders.log"
timeout 30 "$python" benchmarks/run.py pack "$work/cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$work/cells"
tar czf "$out/all.tgz" -C "$work" .

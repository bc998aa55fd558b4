#!/usr/bin/env bash
# The accuracy studies on a machine with one GPU and 16 cores, about nine minutes, everything resumable:
# whole-run speed first, alone on the GPU; then accuracy, orders and the paper's sweep side by side.
#     bash benchmarks/gpu_accuracy.sh results/ [seconds for the second part]
set -u
out=${1:-benchmarks/results}
budget=${2:-420}
mkdir -p "$out/cells"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$out/cells" > /dev/null
timeout $((budget + 100)) "$python" benchmarks/run.py sweep "$out/cells" --lane cpu --workers 5 --device cpu \
    --limit-seconds $((budget + 60)) > "$out/sweep-cpu.log" 2>&1 &
timeout 45 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$out/whole.log"
timeout 70 "$python" benchmarks/speed.py --device cuda --only-large 2>&1 | tee "$out/large.log"
# Let the processes share the GPU side by side instead of in turns, where the driver allows it.
if nvidia-cuda-mps-control -d 2> /dev/null; then
    timeout 30 "$python" -c 'import torch; torch.zeros(1, device="cuda")' || echo quit | nvidia-cuda-mps-control
fi
started=$(date +%s)
left() { echo $((budget - $(date +%s) + started)); }
(
    accuracy() { timeout "$(left)" "$python" benchmarks/accuracy.py --device cuda --jobs 5 "$@" > /dev/null 2>&1; }
    accuracy --contenders masking+kernel+likelihood --out "$out/accuracy.jsonl"
    accuracy --seeds 1000 --scales 0 --nodes 50 --contenders masking+kernel+likelihood --out "$out/accuracy-d50.jsonl"
    accuracy --seeds 1000 --scales 0 --samples 3000 --contenders masking+kernel+likelihood --out "$out/accuracy-n3000.jsonl"
    for kind in additive-gp mlp sigmoid linear; do
        accuracy --seeds 1000 --scales 0 1 --mechanism "$kind" --contenders masking+kernel+likelihood \
            score+none+additive --out "$out/accuracy-mechanisms.jsonl"
    done
    accuracy --seeds 1000 --scales 0 1 2 --contenders deciduous+kernel+likelihood greedy+kernel+likelihood \
        local+kernel+likelihood masking+none+likelihood masking+kernel+additive masking+additive+additive \
        deciduous+none+additive greedy+none+additive local+none+additive masking+none+additive \
        --out "$out/accuracy.jsonl"
    accuracy --seeds 1000 --nodes 10 --contenders masking+kernel+likelihood score+none+additive --out "$out/accuracy-d10.jsonl"
    accuracy --seeds 1000 --samples 300 --contenders masking+kernel+likelihood score+none+additive --out "$out/accuracy-n300.jsonl"
    accuracy --seeds 1000 --contenders score+kernel+likelihood score+additive+additive random+kernel+likelihood \
        --out "$out/accuracy.jsonl"
) &
(
    orders() { timeout "$(left)" "$python" benchmarks/order_accuracy.py --device cuda --jobs 3 "$@" > /dev/null 2>&1; }
    orders --seeds 1000 --contenders masking deciduous greedy score --out "$out/orders.jsonl"
    for n in 10000 3000 300; do
        orders --seeds 1000 --scales 0 --samples $n --contenders masking score local --out "$out/orders-$n.jsonl"
    done
    orders --seeds 1000 --contenders local --out "$out/orders.jsonl"
    orders --seeds 1001 1002 --contenders masking deciduous greedy score --out "$out/orders.jsonl"
) &
timeout "$budget" "$python" benchmarks/run.py sweep "$out/cells" --lane gpu --workers 4 --device cuda \
    --limit-seconds $((budget - 15)) > "$out/sweep-gpu.log" 2>&1 &
wait
"$python" benchmarks/run.py pack "$out/cells" "$out/reproduction.jsonl" | tail -1
rm -rf "$out/cells"
echo quit | nvidia-cuda-mps-control 2> /dev/null
tail -n 2 "$out"/sweep-*.log
wc -l "$out"/*.jsonl

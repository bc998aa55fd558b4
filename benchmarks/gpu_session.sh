#!/usr/bin/env bash
# Everything that a machine with one GPU and 16 cores is asked to measure in one sitting, about three minutes:
# speed at 20 and 500 variables, pruning at 500 variables, the orders on the evaluation grid, the baselines.
#     bash benchmarks/gpu_session.sh results/
set -u
out=${1:-benchmarks/results}
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
timeout 158 "$python" benchmarks/baselines.py --jobs 9 --out "$out/baselines.jsonl" \
    --methods score cam das nogam r2-sort var-sort random gran-dag > "$out/baselines.log" 2>&1 &
timeout 50 "$python" benchmarks/speed.py --device cuda --large --brief 2>&1 | tee "$out/speed.log"
timeout 25 "$python" benchmarks/pruning.py --device cuda --largest 2>&1 | tail -4 | tee "$out/pruning.log"
timeout 40 "$python" benchmarks/simulate.py --device cuda 2>&1 | tee "$out/simulate.log"
timeout 55 "$python" benchmarks/order_accuracy.py --device cuda --jobs 6 --contenders masking deciduous \
    --out "$out/orders.jsonl" 2>&1 | grep -v ^failed | tee "$out/orders.log"
timeout 18 "$python" benchmarks/order_accuracy.py --device cuda --jobs 6 --contenders masking score --samples 10000 \
    --seeds 1000 --scales 0 --out "$out/orders-10000.jsonl" > "$out/orders-10000.log" 2>&1
timeout 14 "$python" benchmarks/order_accuracy.py --device cuda --jobs 6 --contenders masking score --samples 3000 \
    --seeds 1000 --scales 0 --out "$out/orders-3000.jsonl" > "$out/orders-3000.log" 2>&1
wait
tail -3 "$out/baselines.log"

#!/usr/bin/env bash
# The paper's studies on a machine with one GPU and 16 cores, for as many seconds as it is given; goes on from what
# is already packed, and packs what it has into the folder it is given.
#     bash benchmarks/gpu_sweep.sh OUT [SECONDS] [options for both lanes, such as --ranks 0 1]
set -u
out=${1:?name the folder for the packed cells}
seconds=${2:-420}
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
cells=${CELLS:-/tmp/diffan-cells}
mkdir -p "$out" "$cells"
packed=benchmarks/results/reproduction.jsonl
[ -f "$packed" ] && "$python" benchmarks/run.py unpack "$packed" "$cells"
patience=$((seconds + 45)) # cells under way may end; then they are cut off and are simply missing
timeout "$patience" "$python" benchmarks/run.py sweep "$cells" --lane cpu --workers "${CPU_WORKERS:-8}" \
    --limit-seconds "$seconds" "$@" > "$out/cpu.log" 2>&1 &
timeout "$patience" "$python" benchmarks/run.py sweep "$cells" --lane gpu --workers "${GPU_WORKERS:-7}" --device cuda \
    --limit-seconds "$seconds" "$@" > "$out/gpu.log" 2>&1
wait
tail -n 2 "$out/cpu.log" "$out/gpu.log"
"$python" benchmarks/run.py pack "$cells" "$out/reproduction.jsonl"

#!/usr/bin/env bash
# Speed alone on the GPU first (whole runs, replicates, where their time goes, growth), then the paper's studies for as
# many seconds as it is given. Leaves one archive to be unpacked over benchmarks/results:
#     bash benchmarks/gpu_speed.sh OUT [seconds for the studies] [options of `run.py sweep`, such as --ranks 0 1]
set -u
out=${1:?name the folder for the archive}
budget=${2:-300}
shift $(($# < 2 ? $# : 2))
mkdir -p "$out"
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
python=${PYTHON:-python3}
work=$(mktemp -d)
mkdir "$work/cells"
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$work/cells" > /dev/null
timeout 60 "$python" benchmarks/speed.py --device cuda --whole 2>&1 | tee "$work/whole.log"
timeout 50 "$python" benchmarks/speed.py --device cuda --profile > "$work/profile.log" 2>&1
timeout 90 "$python" benchmarks/confidence.py cost --device cuda 2>&1 | tee "$work/confidence.log"
timeout 60 "$python" benchmarks/engine.py replicates --device cuda 2>&1 | tee "$work/replicates.log"
for part in factors fits; do
    timeout 30 "$python" benchmarks/engine.py "$part" --device cuda 2>&1 | tee "$work/$part.log"
done
timeout 40 "$python" benchmarks/speed.py --device cuda 2>&1 | tee "$work/growth.log"
patience=$((budget + 25))
timeout "$patience" "$python" benchmarks/run.py sweep "$work/cells" --lane cpu --workers 7 --limit-seconds "$budget" \
    "$@" > "$work/sweep-cpu.log" 2>&1 &
timeout "$patience" "$python" benchmarks/run.py sweep "$work/cells" --lane gpu --workers 8 --device cuda \
    --limit-seconds "$budget" "$@" > "$work/sweep-gpu.log" 2>&1
wait
tail -n 2 "$work"/sweep-*.log
timeout 30 "$python" benchmarks/run.py pack "$work/cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$work/cells"
tar czf "$out/all.tgz" -C "$work" .

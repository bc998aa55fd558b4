#!/usr/bin/env bash
# What was left of the studies, on a machine with one GPU and 16 cores, in parts of ten minutes:
#     bash benchmarks/gpu_rest.sh OUT fresh    # the cost of replicates alone on the GPU; then the figures of the default again, side by side
#     bash benchmarks/gpu_rest.sh OUT alone    # 500 variables on more seeds, alone on the GPU
#     bash benchmarks/gpu_rest.sh OUT rest     # the other cells, side by side
# Each leaves one archive, OUT/PART.tgz. Cells go on from benchmarks/results/reproduction.jsonl.
set -u
out=${1:?name the folder for the archive}
part=${2:?fresh, alone or rest}
budget=${3:-560}
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
sweep() { # seconds that the last cell to begin may take, then options
    local last=$1
    shift
    run benchmarks/run.py sweep "$cells" --limit-seconds $(($(left) - last)) --device cuda --ranks 4 "$@"
}
accuracy() { # file of results, then options
    local file=$1
    shift
    run benchmarks/accuracy.py --device cuda --seeds 1000 --out "$work/$file" "$@" >> "$work/accuracy.log" 2>&1
}
"$python" benchmarks/run.py unpack benchmarks/results/reproduction.jsonl "$cells" > /dev/null
case $part in
fresh)
    timeout 180 "$python" benchmarks/confidence.py cost --device cuda --turns 3 2>&1 | tee "$work/cost.log"
    source benchmarks/gpu_share.sh
    default=masking+kernel+likelihood
    run benchmarks/confidence.py calibration --contenders diffan+reuse --nodes 20 --samples 1000 200 --seeds 1000 1001 \
        --replicates 100 --device cuda --jobs 2 --out "$work/confidence-d20.jsonl" > "$work/calibration.log" 2>&1 &
    (
        accuracy accuracy-d50.jsonl --nodes 50 --scales 0 --contenders $default --jobs 2
        accuracy accuracy-n3000.jsonl --samples 3000 --scales 0 --contenders $default --jobs 2
    ) &
    (
        for mechanism in additive-gp mlp sigmoid linear; do
            accuracy accuracy-mechanisms.jsonl --mechanism $mechanism --scales 0 1 --contenders $default --jobs 3
        done
    ) &
    accuracy accuracy-h200.jsonl --scales 0 --jobs 4 --contenders deciduous+kernel+likelihood greedy+kernel+likelihood \
        local+kernel+likelihood masking+none+likelihood masking+kernel+additive score+kernel+likelihood random+kernel+likelihood &
    sweep 60 --studies tables variants --lane gpu --workers 3 > "$work/greedy.log" 2>&1 &
    wait
    ;;
alone)
    sweep 60 --studies samples --methods masking local --workers 0 2>&1 | tee "$work/alone.log" | cut -c1-120
    sweep 60 --studies samples --methods score --workers 0 2>&1 | tee -a "$work/alone.log" | cut -c1-120
    ;;
rest)
    source benchmarks/gpu_share.sh
    sweep 100 --studies samples --methods paper-masking --workers 4 > "$work/samples.log" 2>&1 &
    sweep 60 --studies samples --methods r2-sort random --workers 3 > "$work/sorts.log" 2>&1 &
    sweep 60 --studies fifty --workers 4 > "$work/fifty.log" 2>&1 &
    sweep 60 --studies tables variants --lane gpu --workers 4 > "$work/greedy.log" 2>&1 &
    wait
    ;;
esac
for log in "$work"/*.log; do echo "${log##*/}: $(tail -n 1 "$log" | cut -c1-150)"; done
timeout 30 "$python" benchmarks/run.py pack "$cells" "$work/reproduction.jsonl" | tail -1
rm -rf "$cells"
wc -l "$work"/*.jsonl
tar czf "$out/$part.tgz" -C "$work" .

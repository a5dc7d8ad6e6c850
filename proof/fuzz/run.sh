#!/usr/bin/env bash
# Runs every target of a fuzzer built with `--features libfuzzer`, guided by coverage, all of them at once.
#
#   proof/fuzz/run.sh FUZZER SECONDS OUT
#
# Starts from the corpus kept in proof/fuzz/corpus and from what earlier runs left in OUT/TARGET; new inputs, what
# made a target fail, and the fuzzer's own words go to OUT. Fails if a target fails or hangs, and if it ran
# nothing but the inputs it began with: a fuzzer that never got to work finds nothing.
set -euo pipefail

fuzzer=$1 seconds=$2 out=$3
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
# A target waits up to 20 seconds for its daemon to answer; what takes longer hangs.
limits=(-max_total_time="$seconds" -timeout=60 -max_len=600 -print_final_stats=1)

declare -A pids known
for target in "$corpus"/*/; do
    target=$(basename "$target")
    mkdir -p "$out/$target"
    known[$target]=$(find "$corpus/$target" "$out/$target" -type f | wc -l)
    SEAWALL_FUZZ=$target "$fuzzer" "${limits[@]}" -artifact_prefix="$out/$target-" \
        "$out/$target" "$corpus/$target" >"$out/$target.log" 2>&1 &
    pids[$target]=$!
done

failed=0
for target in "${!pids[@]}"; do
    status=0
    wait "${pids[$target]}" || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log")
    echo "fuzz $target: ${runs:-0} inputs in $seconds s, ${known[$target]} of them known"
    if ((status != 0)); then
        tail -n 60 "$out/$target.log"
        echo "fuzz $target: failed with status $status; its input is $out/$target-*"
        failed=1
    elif ((${runs:-0} <= known[$target] + 1)); then
        tail -n 20 "$out/$target.log"
        echo "fuzz $target: nothing was tried but what was known"
        failed=1
    fi
done
exit "$failed"

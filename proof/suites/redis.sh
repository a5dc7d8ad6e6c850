# Redis' own tests of its append-only file, its snapshots and what ends it.
# shellcheck shell=bash disable=SC2034,SC2154
preset=redis
units=(integration/aof integration/aof-multi-part integration/aof-race integration/rdb integration/shutdown
    unit/aofrw unit/dump unit/expire unit/other)

prepare() {
    source_of redis
    local program
    for program in server cli benchmark check-aof check-rdb; do
        ln -sf "$(command -v redis-$program)" "$kept/src/redis/src/redis-$program"
    done
}

tests() {
    cp -r "$kept/src/redis" "$data/redis"
    rm -rf "$data/redis/deps"
    mkdir -p "$data/redis/tests/tmp"
    # Each by itself: one that throws ends its run.
    # shellcheck disable=SC2016
    "${under[@]}" bash -c '
        cd "$1" && shift
        for unit; do
            echo "unit $unit"
            tclsh tests/test_helper.tcl --clients 1 --dont-clean --single "$unit"
        done' "$suite" "$data/redis" "${units[@]}" > "$side/log" 2>&1 || true
    sed -r 's/\x1b\[[0-9;]*m//g' "$side/log" | awk '
        /^unit / { unit = $2 }
        match($0, /^\[(ok|err|skip|ignore|exception|timeout)\]: /) {
            kind = substr($0, 2, index($0, "]") - 2); name = substr($0, RLENGTH + 1)
            sub(/ \([0-9]+ ms\)$/, "", name)
            sub(/^Executing test client: .*/, "to its end", name)
            sub(/ in tests\/.*\.tcl.*$/, "", name)
            gsub(/\t/, " ", name)
            printf "%s\t%s: %s\tlog\n", kind == "ok" ? "pass" : kind ~ /^(skip|ignore)$/ ? "skip" : "fail", unit, name
        }'
}

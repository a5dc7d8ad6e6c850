# RocksDB has no suite among Debian's packages: db_bench writes and verifies, ldb checks, copies, restores and destroys.
# shellcheck shell=bash disable=SC2034,SC2154
preset=rocksdb

prepare() { command -v db_bench ldb > /dev/null; }

tests() {
    # shellcheck disable=SC2016
    "${under[@]}" bash -c '
        data=$1 side=$2
        try() {
            local test=$1 result=pass; shift
            "$@" > "$side/${test// /-}" 2>&1 || result=fail
            printf "%s\t%s\t%s\n" $result "$test" "${test// /-}"
        }
        bench() { db_bench --db="$data/db" --wal_dir="$data/db" --num=20000 --value_size=200 --seed=1 "$@"; }
        scan() { ldb --db="$1" scan | sha256sum; }
        # Small memtables: the log is changed often, and tables are compacted.
        small=(--write_buffer_size=262144 --target_file_size_base=262144)
        try "fillseq" bench --benchmarks=fillseq "${small[@]}"
        try "fillsync" bench --benchmarks=fillsync --use_existing_db=0 --sync=1 "${small[@]}"
        try "overwrite" bench --benchmarks=overwrite --use_existing_db=1 --sync=1 --writes=2000 --threads=2 "${small[@]}"
        try "readwhilewriting" bench --benchmarks=readwhilewriting --use_existing_db=1 --reads=2000 --sync=1 "${small[@]}"
        try "verifychecksum" bench --benchmarks=verifychecksum --use_existing_db=1
        try "deleterandom" bench --benchmarks=deleterandom --use_existing_db=1 --deletes=1000 --sync=1 "${small[@]}"
        try "compact" bench --benchmarks=compact --use_existing_db=1
        try "checkconsistency" ldb --db="$data/db" checkconsistency
        try "checkpoint" ldb --db="$data/db" checkpoint --checkpoint_dir="$data/checkpoint"
        try "checkpoint is equal" diff <(scan "$data/db") <(scan "$data/checkpoint")
        try "backup" ldb --db="$data/db" backup --backup_dir="$data/backup"
        try "restore" ldb --db="$data/restored" restore --backup_dir="$data/backup"
        try "restored is equal" diff <(scan "$data/db") <(scan "$data/restored")
        mv "$data/restored" "$data/renamed"
        try "renamed is equal" diff <(scan "$data/db") <(scan "$data/renamed")
        try "repair" ldb --db="$data/renamed" repair
        try "destroy" bench --benchmarks=fillseq --use_existing_db=0 "${small[@]}"
        try "removed" rm -r "$data/db" "$data/renamed" "$data/checkpoint" "$data/backup"' "$suite" "$data" "$side"
}

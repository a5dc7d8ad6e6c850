# LMDB's own test programs, its tools on what they left, and a copy.
# shellcheck shell=bash disable=SC2034,SC2154
preset=lmdb fronts="run mount"
programs=(mtest mtest2 mtest3 mtest4 mtest5)

prepare() {
    source_of lmdb
    mkdir -p "$kept/bin"
    local program
    for program in "${programs[@]}"; do
        cc -O1 -pthread -o "$kept/bin/$program" "$kept/src/lmdb/libraries/liblmdb/$program.c" -llmdb 2> /dev/null
    done
}

tests() {
    # shellcheck disable=SC2016
    "${under[@]}" bash -c '
        data=$1 side=$2 kept=$3; shift 3
        try() {
            local test=$1 result=pass; shift
            "$@" > "$side/${test// /-}" 2>&1 || result=fail
            printf "%s\t%s\t%s\n" $result "$test" "${test// /-}"
        }
        cd "$data"
        for program; do
            mkdir -p "$data/$program/testdb" && cd "$data/$program"
            try "$program" "$kept/bin/$program"
            try "$program mdb_stat" mdb_stat -a testdb
            mkdir copy
            try "$program mdb_copy" mdb_copy testdb copy
            try "$program dump of the copy" diff <(mdb_dump -a testdb) <(mdb_dump -a copy)
            cd "$data"
            try "$program removed" rm -r "$program"
        done' "$suite" "$data" "$side" "$kept" "${programs[@]}"
}

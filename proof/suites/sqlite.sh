# SQLite's own tests in Tcl: those of pagers, journals, locks and files. SUITES_SQLITE="a b" runs other files of test/.
# shellcheck shell=bash disable=SC2034,SC2154
preset=sqlite
files=(attach attach2 attach3 atomic backup crash dbpage delete_db exclusive exclusive2 fallocate filectrl
    incrvacuum io jrnlmode jrnlmode2 jrnlmode3 journal1 journal2 journal3 lock lock2 lock5 lock6 lock7 misc1
    mmap1 mmap2 mmap3 multiplex nolock oserror pager1 pagesize rollback savepoint shared sidedelete symlink
    symlink2 sync syscall tempdb temptable unixexcl uri vacuum vacuum2 vacuum-into wal wal2 wal4 wal5 wal6
    wal7 wal8 wal9 walbak walblock walcksum walcrash walhook walmode walnoshm waloverwrite walpersist
    walprotocol walro)

# With real fsyncs: its own Makefile leaves them out.
prepare() {
    [[ ! -x $kept/build/testfixture ]] || return 0
    source_of sqlite3
    mkdir -p "$kept/build"
    (
        cd "$kept/build"
        ../src/sqlite3/configure --with-tcl="$(dirname "$(find /usr/lib -name tclConfig.sh -path '*tcl*' | head -n 1)")" CFLAGS=-O1
        sed -i 's/-DSQLITE_NO_SYNC=1//' Makefile
        make -j"$(nproc)" testfixture
    ) > "$kept/build.log" 2>&1 || { tail "$kept/build.log" >&2; return 1; }
}

tests() {
    local chosen=("${files[@]}")
    [[ -z ${SUITES_SQLITE:-} ]] || read -ra chosen <<< "$SUITES_SQLITE"
    # shellcheck disable=SC2016
    "${under[@]}" bash -c '
        data=$1 side=$2 kept=$3; shift 3
        for file; do
            [[ -e $kept/src/sqlite3/test/$file.test ]] || continue
            mkdir "$data/$file" && cd "$data/$file" || exit
            timeout 300 "$kept/build/testfixture" "$kept/src/sqlite3/test/$file.test" > "$side/$file" 2>&1
            echo "ended with status $?" >> "$side/$file"
            cd / && rm -rf "$data/$file" >> "$side/$file" 2>&1 || echo "! $file-removed" >> "$side/$file"
        done' "$suite" "$data" "$side" "$kept" "${chosen[@]}"
    local file
    for file in "${chosen[@]}"; do
        [[ -e $side/$file ]] || continue
        awk -v file="$file" '
            /^! .* expected:/ || /^! [^ ]+-removed$/ { bad[$2] = 1 }
            /^[^ !]+\.\.\. / { sub(/\.\.\.$/, "", $1); if ($2 == "Ok") good[$1] = 1; else if ($2 ~ /^[Oo]mitted/) left[$1] = 1 }
            /^[0-9]+ errors out of [0-9]+ tests/ { whole = 1 }
            END {
                for (t in bad) printf "fail\t%s: %s\t%s\n", file, t, file
                for (t in good) if (!(t in bad)) printf "pass\t%s: %s\t%s\n", file, t, file
                for (t in left) if (!(t in bad) && !(t in good)) printf "skip\t%s: %s\t%s\n", file, t, file
                printf "%s\t%s: to its end\t%s\n", whole ? "pass" : "fail", file, file
            }' "$side/$file"
    done
}

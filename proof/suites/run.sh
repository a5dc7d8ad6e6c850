#!/usr/bin/env bash
# The databases' own test suites, bare and under Seawall, and what differs. A test that passes bare must pass under Seawall.
#
#   proof/suites/run.sh SEAWALL OUT SUITE...
#
# SEAWALL is the program, with libseawall_preload.so beside it. A suite is a file NAME.sh here, which defines
#
#   fronts     which sides there are besides the bare file system: run (the preload), mount
#   preset     what Seawall takes its files for
#   prepare    gets and builds, into $kept, which stays for the next time; fails if it cannot
#   tests      runs everything in $data, a fresh directory, its databases by "${under[@]}" COMMAND..., and prints
#              a line "pass|fail|skip TAB TEST TAB OUTPUT" for each test; OUTPUT is a file below $side
#
# and may define `as` (the user for all of it) and `unlogged` (no preset takes its files: what is shown is that Seawall
# does a program no harm that it has nothing to do for). The outputs go to OUT/SUITE/SIDE, the table to OUT/table.md.
# Status 1: a test passed bare and did not under Seawall, and the file `known` does not name it with a reason.
# shellcheck disable=SC2317
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
seawall=$(realpath "$1") out=$2
shift 2
mkdir -p "$out"
out=$(realpath "$out")
# On a disk, and where every user can go: a checkout may lie in a closed home directory.
kept_root=${SUITES_KEPT:-/var/tmp/seawall-suites}
mkdir -p "$kept_root"
work=$(mktemp -d "$kept_root/run.XXXXXX")
chmod 755 "$kept_root" "$work"
install -m 755 "$seawall" "$(dirname "$seawall")/libseawall_preload.so" "$work"
seawall=$work/$(basename "$seawall")
pool=/dev/shm/$(basename "$kept_root")-$$.pool
mounted=

end() {
    [[ -z $mounted ]] || "$seawall" umount "$mounted" || true
    "$seawall" stop --pool "$pool" > /dev/null 2>&1 || true
    rm -f "$pool" "$pool".*
    rm -rf --one-file-system "$work"
}
trap end EXIT

say() { echo "== $*" >&2; }

# The source of a Debian package, as this machine's sources have it: $kept/src/PACKAGE is the tree. The newest
# version first; a mirror may not have that of today. With "tar" the upstream's alone, without Debian's changes: of those
# a mirror may have lost the file.
source_of() {
    local package=$1 kind=${2:-} apt=$kept/apt file version
    [[ ! -d $kept/src/$package ]] || return 0
    mkdir -p "$apt/lists/partial" "$apt/sources" "$kept/fetch"
    for file in /etc/apt/sources.list.d/*.sources; do
        [[ ! -f $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" > "$apt/sources/${file##*/}"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ ! -f $file ]] || sed -n 's/^deb /deb-src /p' "$file" > "$apt/sources/${file##*/}.list"
    done
    printf '%s "%s";\n' Dir::Etc::SourceList /dev/null Dir::Etc::SourceParts "$apt/sources" \
        Dir::State::Lists "$apt/lists" Dir::Cache::pkgcache "" Dir::Cache::srcpkgcache "" \
        APT::Sandbox::User root > "$apt/conf"
    (
        export APT_CONFIG=$apt/conf
        cd "$kept/fetch"
        apt-get -qq update
        for version in $(apt-cache showsrc "$package" | sed -n 's/^Version: //p' | sort -Vru); do
            if apt-get -qq source --only-source ${kind:+--tar-only} "$package=$version"; then break; fi
        done
        [[ $kind != tar ]] || tar -xf *.orig.tar.*
    ) >&2
    mkdir -p "$kept/src"
    mv "$kept/fetch"/*/ "$kept/src/$package"
}

# Whatever a side needs to be there: sets data and under.
begin() {
    local front=$1
    # One name for all sides: some tests count what fits into a path.
    data=$work/data under=()
    mkdir "$data"
    # A test that fails leaves its files, and every suite has its own log: what is missed is missed here.
    case $front in
        run) under=("$seawall" run --quiet --emulated --pool "$pool" --size 256M --preset "$preset" --data "$data") ;;
        mount)
            mkdir "$data.backing"
            "$seawall" mount "$data.backing" "$data" --preset "$preset" --emulated --pool "$pool" --size 256M >&2
            mounted=$data
            ;;
    esac
    if [[ -n $as ]]; then
        chown "$as" "$data" "$side"
        [[ $front != run ]] || under+=(--user "$as")
        [[ $front == run ]] || under+=(runuser -u "$as")
    fi
    under+=(--)
    [[ $front == run || -n $as ]] || under=(env)
}

# The side is over. One that wrote nothing to the log was a bare one, whatever it is called.
finish() {
    if [[ -n $mounted ]]; then
        "$seawall" umount "$mounted" >&2
        mounted=
    fi
    # Not grep -q: it goes at the first match, and what still writes to it then fails.
    if [[ $1 != bare && -z $unlogged ]] && ! "$seawall" inspect "$pool" | grep -E '^last LSN +[1-9]' > /dev/null; then
        say "$suite, $1: the log was never used: $side/stderr"
        status=1
    fi
    rm -f "$pool" "$pool".*
    rm -rf --one-file-system "$data" "$data.backing"
}

one_side() {
    local front=$1
    side=$out/$suite/$front
    rm -rf "$side"
    mkdir -p "$side"
    say "$suite, $front"
    begin "$front"
    local from=$SECONDS
    tests > "$side/results" 2> "$side/stderr" || echo "$suite: the suite itself ended with status $?" >> "$side/stderr"
    echo $((SECONDS - from)) > "$side/seconds"
    LC_ALL=C sort -t $'\t' -k 2,2 -o "$side/results" "$side/results"
    finish "$front"
}

# PASSED, FAILED, SKIPPED of a side, as three columns of the table.
counts() {
    awk -F '\t' '{ n[$1]++ } END { printf "%d | %d | %d", n["pass"], n["fail"], n["skip"] }' "$1/results"
}

# Each test whose result differs: WORSE|better|known, test, what it was and is, where its output lies.
differences() {
    local bare=$out/$suite/bare/results side=$out/$suite/$1
    awk -F '\t' -v suite="$suite" -v front="$1" -v side="$side" '
        FILENAME == ARGV[1] { if ($0 !~ /^#/ && $1 == suite) known[$2] = $3; next }
        FILENAME == ARGV[2] { bare[$2] = $1; next }
        { now[$2] = $1; place[$2] = $3 }
        END {
            for (test in bare) if (!(test in now)) { now[test] = "missing"; place[test] = "stderr" }
            for (test in now) {
                was = test in bare ? bare[test] : "missing"
                if (was == now[test]) continue
                kind = was == "pass" ? "WORSE" : "better"
                if (kind == "WORSE") for (k in known) if ((test " " now[test]) ~ ("^(" k ")$")) kind = "known"
                printf "%s\t%s (%s)\t%s\t%s → %s\t%s/%s\n", kind, suite, front, test, was, now[test], side, place[test]
            }
        }' "$here/known" "$bare" "$side/results" | LC_ALL=C sort
}

status=0
rows=() differing=$work/differing
: > "$differing"
for suite in "$@"; do
    as='' unlogged='' fronts=run kept=$kept_root/$suite
    mkdir -p "$kept"
    # shellcheck source=/dev/null
    source "$here/$suite.sh"
    prepare
    one_side bare
    rows+=("$suite | bare | $(counts "$side") | | $(cat "$side/seconds")")
    [[ -s $side/results ]] || { say "$suite: no test ran bare: $side/stderr"; status=1; }
    for front in $fronts; do
        one_side "$front"
        differences "$front" > "$work/now"
        cat "$work/now" >> "$differing"
        worse=$(grep -c ^WORSE "$work/now" || true)
        rows+=("$suite | $front | $(counts "$side") | $worse | $(cat "$side/seconds")")
        ((worse == 0)) || status=1
    done
done

{
    echo '| suite | side | passed | failed | skipped | passed bare, not here | seconds |'
    echo '|---|---|---|---|---|---|---|'
    printf '| %s |\n' "${rows[@]}"
    if [[ -s $differing ]]; then
        printf '\n| | suite | test | bare → here | output |\n|---|---|---|---|---|\n'
        sed 's/|/\\|/g; s/\t/ | /g; s/.*/| & |/' "$differing"
    fi
} | tee "$out/table.md"
exit "$status"

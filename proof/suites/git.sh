# Git's own tests of what it does with files: objects, packs, references, the index, clones, repairs. Built from source,
# as they need programs that no package has. No preset takes a repository's files.
# shellcheck shell=bash disable=SC2034,SC2154
preset=sqlite unlogged=yes
files=(t0001-init t0060-path-utils t1050-large t1300-config t1400-update-ref t1401-symbolic-ref t1403-show-ref
    t1404-update-ref-errors t1410-reflog t1450-fsck t1600-index t2400-worktree-add t3200-branch t3600-rm t3903-stash
    t5300-pack-object t5302-pack-index t5304-prune t5500-fetch-pack t5604-clone-reference t6500-gc t7001-mv t7300-clean
    t7600-merge t7700-repack)

prepare() {
    [[ ! -x $kept/src/git/t/helper/test-tool ]] || return 0
    source_of git
    make -C "$kept/src/git" -j"$(nproc)" CFLAGS=-O1 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1 NO_PERL=1 NO_PYTHON=1 \
        NO_TCLTK=1 all > "$kept/build.log" 2>&1 || { tail "$kept/build.log" >&2; return 1; }
}

tests() {
    # shellcheck disable=SC2016
    TEST_OUTPUT_DIRECTORY=$side "${under[@]}" bash -c '
        data=$1 side=$2; cd "$3/src/git/t"; shift 3
        for file; do
            timeout 300 "./$file.sh" --root="$data" > "$side/$file" 2>&1 || true
        done' "$suite" "$data" "$side" "$kept" "${files[@]}"
    local file
    for file in "${files[@]}"; do
        awk -v file="$file" '
            !/^(ok|not ok) [0-9]+/ { whole = whole || /^1\.\.[0-9]+/; next }
            { result = $1 == "ok" ? "pass" : "fail" }
            / # (skip|TODO)/ { result = "skip" }
            { sub(/^(not )?ok [0-9]+ (- )?/, ""); sub(/ # (skip|TODO).*/, ""); gsub(/\t/, " ") }
            { printf "%s\t%s: %s\t%s\n", result, file, $0, file }
            END { printf "%s\t%s: to its end\t%s\n", whole ? "pass" : "fail", file, file }' "$side/$file"
    done
}

# Python's own tests of its sqlite3 module and of what programs do with files and directories, all below one directory.
# shellcheck shell=bash disable=SC2034,SC2154
preset=sqlite fronts="run mount"
modules=(test_sqlite3 test_dbm test_dbm_dumb test_dbm_gnu test_dbm_ndbm test_shelve test_mailbox test_shutil test_tempfile
    test_threadedtempfile test_os test_posix test_pathlib test_glob test_fileio test_bufio test_largefile test_mmap
    test_tarfile test_zipfile)

# Debian's package of the tests leaves those of sqlite3 out.
prepare() {
    [[ ! -d $kept/lib/test/test_sqlite3 ]] || return 0
    source_of python3.11
    mkdir -p "$kept/lib"
    cp -r /usr/lib/python3.11/test "$kept/lib"
    cp -r "$kept/src/python3.11/Lib/test/test_sqlite3" "$kept/lib/test"
}

# Each module by itself: what one leaves behind is not the next one's.
tests() {
    # shellcheck disable=SC2016
    TMPDIR=$data PYTHONPATH=$kept/lib "${under[@]}" bash -c '
        data=$1 side=$2; shift 2
        for module; do
            mkdir "$data/$module"
            /usr/bin/python3.11 -m test --timeout 300 --tempdir "$data/$module" --junit-xml "$side/$module.xml" "$module" \
                > "$side/$module" 2>&1 || true
        done' "$suite" "$data" "$side" "${modules[@]}"
    /usr/bin/python3.11 - "$side" "${modules[@]}" << 'END'
import sys, xml.etree.ElementTree as tree
for module in sys.argv[2:]:
    seen = {}
    try:
        root = tree.parse(f"{sys.argv[1]}/{module}.xml")
    except (OSError, tree.ParseError):
        print(f"fail\t{module}\t{module}")
        continue
    for case in root.iter("testcase"):
        if case.get("name"):
            bad = case.find("failure") is not None or case.find("error") is not None
            result = "fail" if bad else "skip" if case.find("skipped") is not None else "pass"
            name = case.get("name")
            seen[name] = "fail" if seen.get(name) == "fail" else result
    for name, result in seen.items():
        print(f"{result}\t{name}\t{module}")
END
}

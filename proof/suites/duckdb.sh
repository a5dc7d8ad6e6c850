# DuckDB's own tests are in no package: a script of ours by its Python package, with what it does to files. No preset takes
# DuckDB's files.
# shellcheck shell=bash disable=SC2034,SC2154
preset=sqlite fronts="run mount" unlogged=yes

prepare() {
    [[ -d $kept/lib/duckdb ]] || /usr/bin/python3 -m pip install -q --target "$kept/lib" duckdb==1.4.2 >&2
    cp "$here/duckdb_files.py" "$kept/tests.py"
}

tests() {
    PYTHONPATH=$kept/lib "${under[@]}" /usr/bin/python3 "$kept/tests.py" "$data" "$side"
}

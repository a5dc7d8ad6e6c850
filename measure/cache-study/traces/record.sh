#!/usr/bin/env bash
# Records the traces in this directory anew: what PostgreSQL and SQLite read and write below their own caches.
#
# Needs Debian's postgresql, postgresql-contrib, strace, and a built seawall-load; as root, for PostgreSQL refuses
# to be. Small databases under small caches: what counts is how often and in what order blocks come back.
#
#   measure/cache-study/traces/record.sh TARGET/debug/seawall-load
set -euo pipefail
load=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
bin=$(echo /usr/lib/postgresql/*/bin | awk '{ print $NF }')
limit=40000
work=$(mktemp -d /tmp/seawall-traces.XXXXXX)
postmaster=
chmod 755 "$work"
cp "$load" "$work/load"

as() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
stop() {
    [[ -z $postmaster ]] || as "$bin/pg_ctl" -D "$work/pg" -m fast -w stop >/dev/null
    postmaster=
}
trap 'stop; rm -rf "$work"' EXIT
finish() { # NAME PATH_PART BLOCK_BYTES
    cargo run --quiet -p xtask -- cache-trace "$work/strace" "$2" "$3" "$limit" "$here/$1.trace"
    rm -f "$work/strace"
}

mkdir "$work/pg"
chown postgres "$work" "$work/pg"
as "$bin/initdb" -D "$work/pg" -A trust --no-sync >/dev/null
start() { # [COMMAND IN FRONT…]
    as "$@" "$bin/postgres" -D "$work/pg" -k "$work" -c listen_addresses= -c fsync=off -c autovacuum=off \
        -c shared_buffers=1MB -c max_wal_size=10GB -c checkpoint_timeout=30s >"$work/log" 2>&1 &
    postmaster=$!
    until as "$bin/pg_isready" -q -h "$work"; do sleep 0.2; done
}
traced() { start strace -f -qq -y -s 0 --seccomp-bpf -e trace=pread64,pwrite64 -o "$work/strace"; }
sql() { as "$bin/psql" -q -h "$work" postgres "$@"; }
bench() { as "$bin/pgbench" -n -h "$work" -c 4 "$@" postgres >/dev/null; }

start
as "$bin/pgbench" -q -i -s 4 -h "$work" postgres 2>/dev/null
sql -c vacuum -c checkpoint
stop

traced; bench -S -t 6000; stop
finish pgbench-select /base/ 8192

traced; bench -t 3000; stop
finish pgbench-tpcb /base/ 8192

# Popular rows all over the table, and now and then somebody counts all of them.
cat >"$work/zipf" <<'SQL'
\set rank random_zipfian(1, 400000, 1.05)
\set id permute(:rank, 400000, 7)
SELECT abalance FROM pgbench_accounts WHERE aid = :id;
SQL
chown postgres "$work/zipf"
traced
for _ in 1 2 3; do
    bench -f "$work/zipf" -t 2000
    sql -At -c 'SET max_parallel_workers_per_gather = 0; SELECT count(abalance) FROM pgbench_accounts' >/dev/null
done
bench -f "$work/zipf" -t 2000
stop
finish pgbench-zipf-scan /base/ 8192

slob=(--set UPDATE_PCT=25 --set RUN_TIME=0 --set WORK_LOOP=900 --set DO_HOTSPOT=TRUE --set HOTSPOT_MB=4 --set HOTSPOT_OFFSET_MB=8
    --scale 40M -s 1)
start
connect="host=$work user=postgres dbname=postgres"
as "$work/load" slob setup --database postgres --connect "$connect" --ledger "$work/ledger-pg" "${slob[@]}" >/dev/null
sql -c checkpoint
stop
traced
as "$work/load" slob run --database postgres --connect "$connect" --ledger "$work/ledger-pg" "${slob[@]}" >/dev/null
stop
finish slob-postgres /base/ 8192

as "$work/load" slob setup --database sqlite --db "$work/slob.db" --ledger "$work/ledger-sqlite" "${slob[@]}" >/dev/null
as strace -f -qq -y -s 0 --seccomp-bpf -e trace=pread64,pwrite64 -o "$work/strace" \
    "$work/load" slob run --database sqlite --db "$work/slob.db" --ledger "$work/ledger-sqlite" "${slob[@]}" >/dev/null
finish slob-sqlite slob.db 4096

# PostgreSQL's regression and isolation tests, against a server of Debian's.
# shellcheck shell=bash disable=SC2034,SC2154
preset=postgres
bin=/usr/lib/postgresql/15/bin pgxs=/usr/lib/postgresql/15/lib/pgxs/src/test
((EUID != 0)) || as=postgres

# The tests' own C functions, and the two modules of contrib that they use.
prepare() {
    source_of postgresql-15
    mkdir -p "$kept/lib"
    cc -O1 -shared -fPIC -I"$("$bin/pg_config" --includedir-server)" -o "$kept/lib/regress.so" \
        "$kept/src/postgresql-15/src/test/regress/regress.c"
    cp /usr/lib/postgresql/15/lib/{autoinc,refint}.so "$kept/lib"
    chmod -R go+rX "$kept"
}

by_user() { if [[ -n $as ]]; then runuser -u "$as" -- "$@"; else "$@"; fi; }

tests() {
    local socket server kind tool
    socket=$(mktemp -d /tmp/seawall-suites.XXXXXX)
    [[ -z $as ]] || chown "$as" "$socket"
    by_user "$bin/initdb" --no-sync --auth=trust --username=tester --no-locale --encoding=UTF8 -D "$data/pg" > "$side/initdb" 2>&1
    [[ ${under[*]} != *" --data "* ]] || under=("${under[@]/%"$data"/"$data/pg"}")
    # As a developer's make check has it.
    "${under[@]}" "$bin/postgres" -D "$data/pg" -k "$socket" -c listen_addresses= -c max_prepared_transactions=2 \
        -c log_statement_stats=off > "$side/server" 2>&1 &
    server=$!
    until "$bin/pg_isready" -q -h "$socket" || ! kill -0 $server 2> /dev/null; do sleep 0.2; done
    for kind in regress isolation; do
        tool=$pgxs/regress/pg_regress
        local schedule=parallel_schedule name=regression
        if [[ $kind == isolation ]]; then
            tool=$pgxs/isolation/pg_isolation_regress schedule=isolation_schedule name=isolation_regression
        fi
        by_user mkdir -p "$side/$kind"
        # The server, by its own user, writes files there, and reads the sources' data.
        (
            cd "$side/$kind"
            by_user "$tool" --inputdir="$kept/src/postgresql-15/src/test/$kind" --outputdir="$side/$kind" \
                --bindir="$bin" --dlpath="$kept/lib" --host="$socket" --user=tester --dbname="$name" --max-concurrent-tests=20 \
                --schedule="$kept/src/postgresql-15/src/test/$kind/$schedule"
        ) > "$side/$kind.log" 2>&1 || true
        sed -nE 's/^(test| +|ok|not ok)? *([a-z0-9_-]+) +\.\.\. +(ok|FAILED).*/\3 \2/p' "$side/$kind.log" |
            while read -r result test; do
                case $result in ok) result=pass ;; *) result=fail ;; esac
                printf '%s\t%s: %s\t%s\n' $result $kind "$test" "$kind/results/$test.out"
            done
    done
    # A fast shutdown, by the postmaster's own pid; the run ends with it.
    kill -INT "$(head -n 1 "$data/pg/postmaster.pid")"
    wait $server && printf 'pass\tended in order\tserver\n' || printf 'fail\tended in order\tserver\n'
    rm -rf "$socket"
}

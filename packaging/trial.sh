#!/usr/bin/env bash
# The package on a fresh Debian with systemd as its first process: installed, attached to Debian's own PostgreSQL, killed,
# rebooted, detached, purged, as an administrator would. A program commits one number after the other all the while, and
# every number that was acknowledged must be there.
#
# trial.sh PACKAGE.deb, as root. debootstrap makes the system in a directory of its own, systemd-nspawn boots it; both are
# gone afterwards. A reboot here ends every process at once and loses the memory of the system, but the kernel stays:
# power cuts are the virtual machine's (make soak).
set -euo pipefail
package=$(realpath "${1:?trial.sh PACKAGE.deb}")
service=postgresql@15-main
drop_ins=/etc/systemd/system
environment=/etc/postgresql/15/main/environment

for tool in debootstrap systemd-nspawn nsenter; do
    command -v $tool > /dev/null || { echo "$tool is missing: apt-get install debootstrap systemd-container"; exit 1; }
done
((EUID == 0)) || { echo "run this as root: it boots a system of its own"; exit 1; }
work=$(mktemp -d /var/tmp/seawall-trial.XXXXXX)
system=$work/system nspawn=

end() {
    [[ -z $nspawn ]] || cut_off
    rm -rf --one-file-system "$work"
}
trap end EXIT

# The system's first process.
first() { pgrep -P "$nspawn" || true; }

# Every process of the system at once.
cut_off() {
    local pid
    pid=$(first)
    [[ -z $pid ]] || kill -KILL "$pid"
    wait "$nspawn" || true
    nspawn=
}

boot() {
    local options=(--register=no --keep-unit)
    [[ ! -d /run/systemd/system ]] || options=(--register=no)
    systemd-nspawn --quiet --directory="$system" --boot "${options[@]}" --console=pipe \
        < /dev/null > "$work/console" 2>&1 &
    nspawn=$!
    for _ in {1..300}; do
        case $(inside systemctl is-system-running 2> /dev/null || true) in
            running | degraded) return ;;
        esac
        sleep 0.2
    done
    tail "$work/console"
    fail "it did not come up"
}

# Runs a command in the system, as root.
inside() {
    local pid
    pid=$(first)
    [[ -n $pid ]] || return 1
    nsenter --target "$pid" --mount --uts --ipc --pid --cgroup \
        env -i -C / PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"
}
as_postgres() { inside runuser -u postgres -- "$@"; }
sql() { as_postgres psql -XqAt -c "$1"; }

say() { echo "== $*"; }
fail() { echo "FAILED: $*"; exit 1; }

# WORDS: COMMAND…: it must succeed.
must() {
    local what=$1
    shift
    "$@" > "$work/said" 2>&1 || { cat "$work/said"; fail "$what"; }
}

# WORDS: TEXT: COMMAND…: it must fail and say so.
refused() {
    local what=$1 text=$2
    shift 2
    ! "$@" > "$work/said" 2>&1 || { cat "$work/said"; fail "$what: not refused"; }
    grep -q "$text" "$work/said" || { cat "$work/said"; fail "$what: it does not say \"$text\""; }
}

# TEXT COMMAND…: what it prints must contain that.
prints() {
    local text=$1
    shift
    "$@" > "$work/said" 2>&1 || true
    grep -q "$text" "$work/said" || { cat "$work/said"; fail "$*: no \"$text\""; }
}

# Commits one number after the other until its server goes away. What psql prints was acknowledged.
commit() {
    local from
    from=$(sql "select coalesce(max(i), 0) from ledger")
    seq $((from + 1)) 100000000 | sed 's/.*/insert into ledger values (&) returning i;/' |
        as_postgres psql -XqAt >> "$work/acknowledged" 2> /dev/null || true
}

# Commits for a while, does something, and goes on for as long if the server is there.
while_committing() {
    commit 2> /dev/null &
    local client=$!
    sleep 2
    "$@"
    sleep 1
    pkill -P $client seq || true
    wait $client || true
}

nothing_is_missing() {
    local acknowledged there
    acknowledged=$(grep -c . "$work/acknowledged")
    cat "$work/acknowledged" | sed 's/.*/(&)/' | paste -sd, > "$work/values"
    there=$({ echo "select count(distinct i) from ledger where i in (select * from (values"; cat "$work/values"; echo ") v);"; } |
        as_postgres psql -XqAt)
    ((there == acknowledged)) || fail "$1: $acknowledged numbers were acknowledged, $there are there"
    echo "   $acknowledged numbers acknowledged, none is missing"
}

unit_is_active() { prints '^active' inside systemctl is-active "$1"; }
daemon() { inside systemctl list-units --plain --no-legend 'seawalld@*' | cut -d' ' -f1; }
kill_unit() { inside systemctl kill --kill-who="$2" -s KILL "$1"; }
monotonic() { inside systemctl show -P ActiveEnterTimestampMonotonic "$1"; }

say "a fresh Debian 12 with PostgreSQL"
must "debootstrap" debootstrap --variant=minbase \
    --include=systemd,systemd-sysv,dbus,ca-certificates,procps,postgresql-15 bookworm "$system"
cp "$package" "$system/root/seawall.deb"
boot
must "PostgreSQL" as_postgres createdb postgres_is_there
sql "create table ledger (i int primary key)"
must "its environment" cp "$system$environment" "$work/environment"

say "installed"
must "apt-get install" inside apt-get install -y /root/seawall.deb
refused "status of a service that is not attached" "is not attached" inside seawall status $service

say "attached, from the next start on; a log on the disk beside the data"
must "dry run" inside seawall attach $service --size 256M --dry-run
[[ ! -e $system$drop_ins/$service.service.d ]] || fail "a dry run wrote something"
must "attach" inside seawall attach $service --size 256M
prints "WITHOUT Seawall" inside seawall status $service
must "restart" inside systemctl restart $service
prints "running with Seawall" inside seawall status $service
while_committing true
nothing_is_missing "at rest"

say "the daemon is killed under load: commits go on, and it is there again"
unit=$(daemon)
while_committing kill_unit "$unit" main
unit_is_active "$unit"
unit_is_active $service
nothing_is_missing "the daemon was killed"

say "PostgreSQL is killed under load"
while_committing kill_unit $service all
must "start" inside systemctl start $service
nothing_is_missing "PostgreSQL was killed"

say "the machine is reset under load: the log is recovered before PostgreSQL starts"
while_committing cut_off
boot
unit_is_active $service
(($(monotonic "$(daemon)") < $(monotonic $service))) || fail "PostgreSQL did not wait for the log"
prints "guards down" inside journalctl --boot --no-pager --unit seawall-recover
(($(monotonic seawall-recover) < $(monotonic basic.target))) || fail "services did not wait for the recovery"
nothing_is_missing "the machine was reset"

say "neither removed nor detached while in use; drained at its stop"
refused "purge" "attached" inside apt-get purge -y seawall
refused "detach" "is running" inside seawall detach $service
must "stop" inside systemctl stop $service
[[ -z $(daemon) ]] || fail "the daemon stays without a service"
must "detach" inside seawall detach $service
! grep -rq seawall "$system$drop_ins" || fail "detach left something"
cmp -s "$work/environment" "$system$environment" || fail "detach left something in $environment"
must "start without Seawall" inside systemctl start $service
nothing_is_missing "without Seawall"

say "attached with a log on two files, of which one is lost while the machine is off, and made again under load"
logs=/var/lib/postgresql/trial-log
must "attach" inside seawall attach $service --block $logs-a --mirror $logs-b --size 128M
must "restart" inside systemctl restart $service
while_committing cut_off
rm "$system$logs-b"
boot
# The copy that is there does not say that it went on alone.
prints "seawall mirror --alone" inside journalctl --boot --no-pager --unit "$(daemon)"
refused "start on one of two copies" "failed" inside systemctl start $service
must "mirror --alone" inside seawall mirror --alone --pool $logs-a
must "reset-failed" inside systemctl reset-failed
must "start" inside systemctl start $service
nothing_is_missing "one of two files was lost"
while_committing must "mirror" inside seawall mirror --pool $logs-a --on $logs-b
while_committing kill_unit "$(daemon)" main
unit_is_active $service
nothing_is_missing "a log on two files"
must "stop" inside systemctl stop $service
must "detach" inside seawall detach $service

say "attached with a small pool in memory and a spill area"
must "attach" inside seawall attach $service --pool /dev/shm/small.pool --emulated --size 32M \
    --spill /var/lib/postgresql/trial-spill --spill-size 128M
prints "RequiresMountsFor=/var/lib/postgresql/trial-spill" cat "$system$drop_ins"/seawalld@*.service.d/*.conf
must "restart" inside systemctl restart $service
while_committing kill_unit "$(daemon)" main
nothing_is_missing "a spill area"
must "stop" inside systemctl stop $service
must "detach" inside seawall detach $service
rm "$system"$logs-? "$system/var/lib/postgresql/trial-spill"

say "attached with a pool in memory, a block cache, and tables that are followed"
must "attach" inside seawall attach $service --pool /dev/shm/trial.pool --emulated --size 128M --cache 64M --follow-tables
must "restart" inside systemctl restart $service
must "keep" inside seawall cache keep postgres.public.ledger --pool /dev/shm/trial.pool
sql "vacuum full ledger"
file=$(sql "select pg_relation_filepath('ledger')")
# A table that was just named is known to the follower within half a minute.
for _ in {1..250}; do
    inside seawall cache list --pool /dev/shm/trial.pool --json > "$work/said" 2>&1 || true
    ! grep -q "$file" "$work/said" || break
    sleep 0.2
done
prints "$file" inside seawall cache list --pool /dev/shm/trial.pool --json
while_committing kill_unit "$(daemon)" main
nothing_is_missing "with a block cache"
must "stop" inside systemctl stop $service
must "detach" inside seawall detach $service
[[ ! -e $system/dev/shm/trial.pool.cache ]] || fail "detach left the cache"

say "purged"
must "purge" inside apt-get purge -y seawall
[[ -z $(inside find / -xdev -path /proc -prune -o -path /root -prune -o -name '*seawall*' ! -name main.seawall -print) ]] ||
    fail "purge left something"
must "start" inside systemctl start $service
nothing_is_missing "purged"
echo "passed"

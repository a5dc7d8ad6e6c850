# MariaDB's mysql-test-run, of Debian's package: what makes, renames, changes and removes tables and databases, InnoDB's
# crashes, backups by mariadb-backup. Each server that it starts is a run of its own on one pool; the backups are bare.
# shellcheck shell=bash disable=SC2034,SC2154
preset=mariadb
# A regular expression for each suite: what its tests' names begin with.
main='(alter_table|backup|bootstrap|create|drop|flush|innodb|rename|repair|sequence|shutdown|truncate|xa)'
innodb='(alter_missing|alter_not|create|drop|innodb-alter|innodb-truncate|innodb_bug|log_(data|file|upgrade)|read_only|recovery|rename|restart|row_format|tablespace|truncate|xa)'
mariabackup='(alter_copy_race|backup_grants|backup_lock|create_during|data_directory|defer_space|drop_table|innodb_ddl|log_tables|mdev|partial|recreate|rename_during|row_format|skip_innodb|small_ibd|truncate_during|xb_history|xb_partition)'

prepare() { [[ -x /usr/share/mysql/mysql-test/mtr ]] && command -v mariadb-backup > /dev/null; }

# In MariaDB's place: the server, on the data that its options name, under Seawall.
server() {
    cat << 'END'
#!/usr/bin/env bash
for option; do
    case $option in
        --defaults-file=*) variables=$(dirname "${option#*=}") ;;
        --defaults-group-suffix=*) name=mysqld${option#*=} ;;
        --datadir=*) data=${option#*=} ;;
    esac
done
: "${data:=${variables:-}/${name:-}/data}"
[[ -d $data && -n ${name:-} ]] || exec /usr/sbin/mariadbd "$@"
END
    local word
    for word in "${under[@]}"; do
        # shellcheck disable=SC2016
        [[ $word == "$data" ]] && printf '"$data" ' || printf '%q ' "$word"
    done
    # shellcheck disable=SC2016
    echo '/usr/sbin/mariadbd "$@"'
}

tests() {
    local name root=() variables
    mkdir -p "$side/bin/sbin"
    server | sed '$s/^/exec /' > "$side/bin/sbin/mariadbd"
    chmod 755 "$side/bin/sbin/mariadbd"
    ((EUID != 0)) || root=(--user=root --mysqld=--user=root)
    for name in main innodb mariabackup; do
        variables=$data/$name
        (
            cd /usr/share/mysql/mysql-test
            MTR_BINDIR_FORCED=$side/bin ./mtr "${root[@]}" --vardir="$variables" --suite=$name --do-test="^${!name}" \
                --parallel=2 --force --max-test-fail=0 --retry=0 --testcase-timeout=3 --suite-timeout=15
        ) > "$side/$name" 2>&1 || true
        awk -v name=$name '
            match($0, /\[ (pass|fail|skipped|retry-pass|retry-fail) +\]/) {
                result = $0 ~ /pass +\]/ ? "pass" : $0 ~ /skipped +\]/ ? "skip" : "fail"
                test = substr($0, 1, RSTART - 1)
                sub(/ +w[0-9]+ *$/, "", test); sub(/ +$/, "", test)
                printf "%s\t%s\t%s\n", result, test, name
            }
            /^Completed:/ { whole = 1 }
            END { printf "%s\t%s: to its end\t%s\n", whole ? "pass" : "fail", name, name }' "$side/$name"
    done
}

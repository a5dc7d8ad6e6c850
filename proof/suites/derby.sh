# Derby's own tests of its store: backups, recovery, encryption, locks; compiled against the Debian package of the same
# version. No preset takes Derby's files.
# shellcheck shell=bash disable=SC2034,SC2154
preset=sqlite unlogged=yes
classes=(AccessTest BackupRestoreTest BootAllTest ClassLoaderBootTest DecryptDatabaseTest Derby3625Test Derby4577Test
    Derby4923Test EncryptionKeyAESTest HoldCursorJDBC30Test KeepDisposableStatsPropertyTest LockTableVtiTest OCRecoveryTest
    OSReadOnlyTest OfflineBackupTest PositionedStoreStreamTest RecoveryTest RowLockBasicTest ServicePropertiesFileTest
    SpaceTableTest TableLockBasicTest UpdateLocksTest)
jars=/usr/share/java
jars=$jars/derby.jar:$jars/derbynet.jar:$jars/derbytools.jar:$jars/derbyclient.jar:$jars/junit.jar

prepare() {
    [[ ! -d $kept/classes ]] || return 0
    source_of derby tar
    local tree=$kept/src/derby/java made=$kept/classes.new sanity=org/apache/derby/shared/common/sanity
    local testing=$tree/testing/org/apache/derbyTesting
    rm -rf "$made" && mkdir "$made"
    # What Derby's own build makes: its constants, and a parser of which no test here has need.
    sed 's/@SANE@/false/' "$tree/shared/$sanity/SanityState.tmpl" > "$tree/shared/$sanity/SanityState.java"
    sed -i '/mtGrammar parser/d; s/parser.grammarStatement()/null/' "$testing/functionTests/harness/MultiTest.java"
    javac -nowarn -proc:none -encoding UTF-8 -cp "$jars" -sourcepath "$tree/testing:$tree/shared" -d "$made" \
        "$tree"/tools/org/apache/derby/impl/tools/ij/mt*.java "$testing"/junit/*.java \
        "$testing"/functionTests/util/T_ConsistencyChecker.java "$testing"/functionTests/tests/store/*Test.java \
        > "$kept/build.log" 2>&1 || { tail "$kept/build.log" >&2; return 1; }
    # A security manager from outside keeps the tests from their own, which knows another layout.
    echo 'grant { permission java.security.AllPermission; };' > "$made/policy"
    mv "$made" "$kept/classes"
}

tests() {
    # shellcheck disable=SC2016
    "${under[@]}" bash -c '
        data=$1 side=$2 kept=$3 jars=$4; shift 4
        for class; do
            mkdir "$data/$class" && cd "$data/$class" || exit
            timeout 120 java -Xmx1g -Djava.security.manager -Djava.security.policy=="$kept/classes/policy" \
                -Dderby.tests.trace=true -cp "$jars:$kept/classes:$kept/src/derby/java/testing" junit.textui.TestRunner \
                "org.apache.derbyTesting.functionTests.tests.store.$class" > "$side/$class" 2>&1
            echo "ended with status $?" >> "$side/$class"
            cd / && rm -rf "$data/$class" >> "$side/$class" 2>&1 || echo "not removed" >> "$side/$class"
        done' "$suite" "$data" "$side" "$kept" "$jars" "${classes[@]}"
    local class
    for class in "${classes[@]}"; do
        awk -v class="$class" '
            match($0, /[A-Za-z0-9_]+ used [0-9]+ ms/) { split(substr($0, RSTART), word, " "); seen[word[1]] = 1 }
            /^[0-9]+\) / { sub(/^[0-9]+\) /, ""); sub(/\(.*/, ""); bad[$0] = 1 }
            /^ended with status 0/ { well = 1 } /^not removed/ { left = 1 }
            END {
                for (t in seen) printf "%s\t%s: %s\t%s\n", t in bad ? "fail" : "pass", class, t, class
                for (t in bad) if (!(t in seen)) printf "fail\t%s: %s\t%s\n", class, t, class
                printf "%s\t%s: as a whole\t%s\n", well ? "pass" : "fail", class, class
                printf "%s\t%s: removed\t%s\n", left ? "fail" : "pass", class, class
            }' "$side/$class"
    done
}

# H2's own tests of what is on the disk: databases, stores, files; compiled against the Debian package of the same version.
# Each is a program. No preset takes H2's files.
# shellcheck shell=bash disable=SC2034,SC2154
preset=sqlite unlogged=yes
classes=(db.TestAlter db.TestBackup db.TestBigDb db.TestCases db.TestCheckpoint db.TestCsv db.TestEncryptedDb db.TestExclusive
    db.TestIndex db.TestLargeBlob db.TestLinkedTable db.TestLob db.TestOpenClose db.TestPersistentCommonTableExpressions
    db.TestPowerOff db.TestReadOnly db.TestRunscript db.TestSequence db.TestSessionsLocks db.TestSpaceReuse
    db.TestTempTables db.TestTransaction db.TestTwoPhaseCommit store.TestKillProcessWhileWriting
    store.TestMVStoreConcurrent store.TestMVTableEngine store.TestTransactionStore unit.TestFile unit.TestFileLock
    unit.TestFileSystem unit.TestRecovery unit.TestReopen unit.TestTools)
# What needs libraries that H2 itself does not.
foreign='TestWeb|TestJakartaWeb|TestKeywords|TestJakartaServlet|TestValueMemory|TestServlet|TestGeometryUtils|TestFullText|TestSpatial'

prepare() {
    [[ ! -d $kept/classes ]] || return 0
    source_of h2database tar
    local tree=$kept/src/h2database made=$kept/classes.new
    rm -rf "$made" && mkdir "$made"
    find "$tree/src/test" -regextype posix-extended -regex ".*/($foreign|TestAllJunit)\.java" -delete
    sed -i -E "/\b($foreign)\b/d" "$tree/src/test/org/h2/test/TestAll.java"
    javac -nowarn -proc:none -encoding UTF-8 -cp /usr/share/java/h2.jar -sourcepath "$tree/src/test:$tree/src/tools" \
        -d "$made" "$tree"/src/test/org/h2/test/{TestAll,db/*,store/*,unit/TestFile*}.java > "$kept/build.log" 2>&1 ||
        { tail "$kept/build.log" >&2; return 1; }
    mv "$made" "$kept/classes"
}

tests() {
    # shellcheck disable=SC2016
    "${under[@]}" bash -c '
        data=$1 side=$2 path=$3; shift 3
        for class; do
            mkdir "$data/$class" && cd "$data/$class" || exit
            result=pass
            timeout 120 java -ea -Xmx1g -cp "$path" "org.h2.test.$class" > "$side/$class" 2>&1 || result=fail
            printf "%s\t%s\t%s\n" $result "$class" "$class"
            cd / && result=pass
            rm -rf "$data/$class" >> "$side/$class" 2>&1 || result=fail
            printf "%s\t%s: removed\t%s\n" $result "$class" "$class"
        done' "$suite" "$data" "$side" "/usr/share/java/h2.jar:$kept/classes:$kept/src/h2database/src/test" "${classes[@]}"
}

//! Programs that cannot be preloaded, and preloads that cannot be used: Seawall says so, and pretends nothing.

use crate::common;
use std::fs;
use std::io::Write as _;

use crate::common::{Place, cc, has};

#[test]
fn a_missing_preload_library() {
    let place = Place::new();
    let said = place.run_command(&["true"]).env("SEAWALL_PRELOAD", "/no/such/lib.so").output().expect("runs");
    common::Said::from(said).fails(125, &["/no/such/lib.so", "cannot read", "install"]);
}

#[test]
fn a_preload_library_that_is_none() {
    let place = Place::new();
    let fake = place.file("lib.so");
    fs::write(&fake, "text").expect("written");
    let said = place.run_command(&["true"]).env("SEAWALL_PRELOAD", &fake).output().expect("runs");
    common::Said::from(said).fails(125, &["not a library for this machine"]);
}

/// Says Hello in version 99, as a library of another build would. Before that it opens what OPEN_FIRST names.
const OTHER_VERSION: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
__attribute__((constructor)) static void hello(void) {
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    unsigned request[4] = { 'S' | 'W' << 8 | 'L' << 16 | 99u << 24, 1, 0, 0 };
    char reply[64];
    const char *path = getenv("SEAWALL_SOCKET");
    if (getenv("OPEN_FIRST"))
        open(getenv("OPEN_FIRST"), O_WRONLY | O_APPEND);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strncpy(to.sun_path, path ? path : "", sizeof to.sun_path - 1);
    if (connect(fd, (void *)&to, sizeof to) == 0 && send(fd, request, sizeof request, 0) > 0)
        recv(fd, reply, sizeof reply, 0);
    close(fd);
}
"#;

#[test]
fn a_preload_library_of_another_version() {
    let place = Place::new();
    let name = "libseawall_preload.so";
    let Some(library) = cc(&place, name, OTHER_VERSION, &["-shared", "-fPIC"]) else { return };
    let said = place.run_command(&["sleep", "0.8"]).env("SEAWALL_PRELOAD", library).output().expect("runs");
    common::Said::from(said).succeeds().says(&["another version", "WITHOUT Seawall", "same build"]);
}

/// What `status` says of x-wal.
fn wal_flags(place: &Place) -> String {
    let status = place.status();
    let files = status["files"].as_array().expect("files").clone();
    let wal = files.iter().find(|f| f["path"].as_str().is_some_and(|p| p.ends_with("x-wal")));
    wal.expect("x-wal is managed")["flags"].to_string()
}

/// Greeted, and then it cannot map the log: the daemon believed that it logs its writes.
#[test]
fn a_process_that_cannot_map_the_log_is_a_foreign_writer() {
    const TIGHT: &str = r#"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void) {
    struct rlimit none = { .rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY };
    char byte;
    int fd = open("x-wal", O_WRONLY | O_APPEND);
    if (setrlimit(RLIMIT_AS, &none) != 0 || write(fd, "x", 1) != 1 || fdatasync(fd) != 0)
        return 1;
    return read(0, &byte, 1) != 0;
}
"#;
    let place = Place::new();
    let Some(program) = cc(&place, "tight", TIGHT, &["-O1"]) else { return };
    let mut writer = common::Writer::start(&place);
    writer.write(4);
    let mut command = place.run_command(&[program.to_str().expect("a path")]);
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut process = command.spawn().expect("starts");
    common::wait_for("the file to leave the log", || wal_flags(&place).contains("foreign writer"));
    drop(process.stdin.take());
    let said = common::Said::from(process.wait_with_output().expect("it ends"));
    said.succeeds().says(&["not active in this process"]);
    common::wait_for("the file to come back", || !wal_flags(&place).contains("foreign writer"));
    writer.finish().succeeds();
}

/// Opens are reported then, and the daemon looks for the process that may have made one. It skips those that have not
/// run since, or every open of the database's own would cost milliseconds.
#[test]
fn without_root_a_stranger_who_waited_for_long_is_seen_when_it_opens_the_file() {
    let place = Place::new();
    let mut writer = common::Writer::start_less_privileged(&place);
    writer.write(4);
    assert_eq!(place.status()["watch"], "inotify");
    let mut stranger = std::process::Command::new("sh");
    stranger.args(["-c", "read x; exec 9>>x-wal; read x"]).current_dir(place.data.path());
    let mut stranger = stranger.stdin(std::process::Stdio::piped()).spawn().expect("sh starts");
    let looks = || {
        for _ in 0..20 {
            drop(std::fs::File::open(place.file("x-wal")).expect("opened for reading"));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    looks();
    assert!(!wal_flags(&place).contains("foreign"), "{}", wal_flags(&place));
    stranger.stdin.as_mut().expect("piped").write_all(b"\n").expect("it waits");
    common::wait_for("the file to leave the log", || wal_flags(&place).contains("foreign writer"));
    writer.write(4);
    stranger.kill().expect("killed");
    stranger.wait().expect("reaped");
    common::wait_for("the file to come back", || !wal_flags(&place).contains("foreign writer"));
    writer.finish().succeeds();
}

/// After an upgrade under a running database: what it starts then loads the new library and is refused by the
/// old daemon, yet it looks like one of ours. Its writes pass by the log, so the file must leave it.
#[test]
fn a_process_that_was_refused_for_its_version_is_a_foreign_writer() {
    let place = Place::new();
    let Some(library) = cc(&place, "libseawall_preload.so", OTHER_VERSION, &["-shared", "-fPIC"]) else {
        return;
    };
    let mut writer = common::Writer::start(&place);
    writer.write(4);
    let socket =
        std::path::PathBuf::from(place.status()["log"].as_str().expect("a log")).with_extension("sock");
    let flags = || wal_flags(&place);
    assert!(!flags().contains("foreign"), "{}", flags());
    // Opened before it was refused, and after. Without children, which would be refused in their turn.
    for (script, first) in [("read x", Some("x-wal")), ("exec 9>>x-wal; read x", None)] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).current_dir(place.data.path()).stdin(std::process::Stdio::piped());
        command.env("LD_PRELOAD", &library).env("SEAWALL_SOCKET", &socket);
        command.envs(first.map(|path| ("OPEN_FIRST", path)));
        let mut process = command.spawn().expect("sh starts");
        common::wait_for("the file to leave the log", || flags().contains("foreign writer"));
        process.kill().expect("killed");
        process.wait().expect("reaped");
        common::wait_for("the file to come back", || !flags().contains("foreign writer"));
    }
    writer.finish().succeeds();
}

#[test]
fn another_library_in_ld_preload_works_too() {
    let place = Place::new();
    let source = "#include <unistd.h>\n__attribute__((constructor)) static void c(void) { write(1, \"other\\n\", 6); }";
    let Some(library) = cc(&place, "other.so", source, &["-shared", "-fPIC"]) else { return };
    let said =
        place.run_command(&["cat", "/proc/self/maps"]).env("LD_PRELOAD", &library).output().expect("runs");
    let said = common::Said::from(said);
    said.succeeds();
    for word in ["other\n", "/other.so", "libseawall_preload.so"] {
        assert!(said.out.contains(word), "no {word:?} in:\n{}", said.out);
    }
}

#[test]
fn a_static_program() {
    let place = Place::new();
    let source = "#include <unistd.h>\nint main(void) { usleep(2000000); return 7; }";
    let Some(program) = cc(&place, "still", source, &["-static"]) else { return };
    place.run(&[program.to_str().expect("a path")]).fails(7, &["statically linked", "WARNING"]);
    let said = place.run(&["sh", "-c", "./still; exit 3"]);
    said.fails(3, &["still", "statically linked", "WITHOUT Seawall"]);
}

#[test]
fn a_32_bit_program() {
    let place = Place::new();
    let mut header = vec![0; 52];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    // ET_EXEC for i386, version 1, a header of 52 bytes and nothing else.
    (header[16], header[18], header[20], header[40]) = (2, 3, 1, 52);
    common::program(place.file("old"), header);
    // It holds no code, so the kernel refuses it and the exec hands it to sh, as a shell would.
    place.run(&["./old"]).fails(127, &["32-bit", "WARNING"]);
}

#[test]
fn a_scrubbed_environment() {
    let place = Place::new();
    let said = place.run(&["env", "-i", "sleep", "2"]);
    said.succeeds().says(&["WITHOUT Seawall", "scrubbed", "--user"]);
}

#[test]
fn a_program_that_was_protected_is_not_warned_about() {
    let place = Place::new();
    let said = place.run(&["sh", "-c", "sleep 0.7; exit 0"]);
    assert!(!said.succeeds().err.contains("WARNING"), "{}", said.err);
}

#[test]
fn exit_codes_are_the_commands() {
    let place = Place::new();
    place.run(&["sh", "-c", "exit 9"]).fails(9, &[]);
    place.run(&["sh", "-c", "kill -9 $$"]).fails(137, &[]);
    place.run(&["no-such-program"]).fails(127, &["not found on PATH"]);
    place.run(&["/etc/passwd"]).fails(126, &["not an executable file"]);
    assert!(has("sh"));
}

//! Programs of another C library, and of sanitizers: they work as they always did, and `run` names what goes without
//! Seawall.

use crate::common;
use std::process::Stdio;

use crate::common::{Place, cc, compiled, wait_for};

/// Files, streams, children, threads: what the hooks are passed by for. A cancelled thread is joined.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
static int ends[2];
static void *fill(void *a) { static char page[65536]; for (;;) write(ends[1], page, sizeof page); return a; }
int main(void) {
    char page[4096] = "page";
    struct stat found;
    int fd = open("x-wal", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (pwrite(fd, page, sizeof page, 4096) != sizeof page || fdatasync(fd) || ftruncate(fd, 6000) || close(fd))
        return 1;
    if (stat("x-wal", &found) || found.st_size != 6000 || rename("x-wal", "y-wal") || truncate("y-wal", 5))
        return 2;
    FILE *stream = fopen("y-wal", "a");
    if (!stream || fputs("text", stream) < 0 || fclose(stream) || unlink("y-wal"))
        return 3;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || send(pair[0], page, 10, 0) != 10)
        return 4;
    struct iovec part = { page, sizeof page };
    struct msghdr message;
    memset(&message, 0xff, sizeof message);
    message.msg_name = NULL, message.msg_namelen = 0, message.msg_control = NULL, message.msg_controllen = 0;
    message.msg_iov = &part, message.msg_iovlen = 1;
    if (recvmsg(pair[1], &message, 0) != 10)
        return 5;
    pthread_t thread;
    void *end;
    if (pipe(ends) || pthread_create(&thread, NULL, fill, NULL))
        return 6;
    usleep(100000);
    if (pthread_cancel(thread) || pthread_join(thread, &end) || end != PTHREAD_CANCELED)
        return 7;
    if (system("exit 3") != 3 << 8)
        return 8;
    puts("all of it");
    usleep(600000);
    return 0;
}
"#;

#[test]
fn a_program_of_another_c_library_works_as_without_and_is_named() {
    let place = Place::new();
    let Some(program) = compiled("musl-gcc", &place, "other", PROGRAM, &["-O1"]) else {
        return eprintln!("skipped: no musl-gcc (Debian: musl-tools)");
    };
    let said = place.run(&[program.to_str().expect("a path")]);
    said.succeeds().says(&["a C library other than glibc", "cannot use Seawall"]);
    assert!(said.out.contains("all of it"), "{}", said.out);
    let said = place.run(&["sh", "-c", "./other && exit 3"]);
    said.fails(3, &["other", "a C library other than glibc", "WITHOUT Seawall"]);
}

/// It has the library in its memory, and yet its writes pass by the log.
#[test]
fn a_child_of_another_c_library_is_a_foreign_writer() {
    const WAITS: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int main(void) { char byte; return open("x-wal", O_WRONLY | O_APPEND) < 0 || read(0, &byte, 1) != 0; }
"#;
    let place = Place::new();
    let Some(program) = compiled("musl-gcc", &place, "waits", WAITS, &["-O1"]) else {
        return eprintln!("skipped: no musl-gcc (Debian: musl-tools)");
    };
    let flags = || {
        let status = place.status();
        let files = status["files"].as_array().expect("files").clone();
        let wal = files.into_iter().find(|f| f["path"].as_str().is_some_and(|p| p.ends_with("x-wal")));
        wal.expect("x-wal is managed")["flags"].to_string()
    };
    let mut writer = common::Writer::start(&place);
    writer.write(4);
    let mut run = place.run_command(&[program.to_str().expect("a path")]);
    let mut run = run.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    wait_for("the file to leave the log", || flags().contains("foreign writer"));
    drop(run.stdin.take());
    assert!(run.wait().expect("ends").success());
    wait_for("the file to come back", || !flags().contains("foreign writer"));
    writer.finish().succeeds();
}

/// ASan wants to be the first library of all.
#[test]
fn a_program_with_a_sanitizer_is_in_the_log() {
    for sanitizer in ["address", "thread", "undefined"] {
        let place = Place::new();
        let flag = format!("-fsanitize={sanitizer}");
        let Some(program) = cc(&place, "checked", PROGRAM, &["-O1", &flag]) else {
            eprintln!("skipped: cc has no {flag}");
            continue;
        };
        let said = place.run(&[program.to_str().expect("a path")]);
        said.succeeds();
        assert!(!said.err.contains("WITHOUT"), "{}", said.err);
    }
}

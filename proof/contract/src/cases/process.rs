//! fork, vfork, exec, posix_spawn: descriptors travel, offsets are shared, children die.

use crate::cases::library::native;
use crate::context::{Context, open_quietly};
use crate::process::{self, Arguments};
use libc::{O_APPEND, O_RDWR};
use std::ffi::{c_char, c_int, c_void};

fn forked_child_writes(cx: &Context, fd: c_int) {
    cx.write(fd, b'p', 10);
    cx.in_child(|| {
        cx.write(fd, b'c', 10);
        cx.fsync(fd);
        0
    });
    cx.write(fd, b'P', 10);
    cx.sync_show(fd);
}

fn parent_writes_child_syncs(cx: &Context) {
    let fd = cx.file("a");
    for fill in [b'1', b'2', b'3'] {
        cx.pwrite(fd, fill, 3000, 1000);
        cx.in_child(|| {
            cx.sync_show(fd);
            0
        });
    }
}

fn grandchildren(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    cx.in_child(|| {
        cx.write(fd, b'1', 10);
        cx.in_child(|| {
            cx.write(fd, b'2', 10);
            cx.in_child(|| cx.write(fd, b'3', 10) as c_int);
            cx.fsync(fd) as c_int
        });
        cx.write(fd, b'4', 10);
        0
    });
    cx.write_sync_show(fd);
}

fn child_closes_its_copy(cx: &Context) {
    let fd = cx.file("a");
    cx.in_child(|| {
        cx.close(fd);
        cx.write(fd, b'x', 10);
        let again = open_quietly(&cx.path("a"), O_RDWR);
        cx.write_sync_show(again);
        0
    });
    cx.write_sync_show(fd);
}

fn forked_from_a_thread(cx: &Context, fd: c_int) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cx.write(fd, b't', 10);
            cx.in_child(|| {
                cx.write(fd, b'c', 10);
                cx.fsync(fd) as c_int
            });
            cx.write(fd, b'T', 10);
        });
    });
}

/// Two threads never stop writing while a third forks writers.
fn forks_while_threads_write(cx: &Context) {
    let fd = cx.file("a");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let path = cx.path("a");
    std::thread::scope(|scope| {
        for lane in 0..2_i64 {
            let (stop, path) = (&stop, &path);
            scope.spawn(move || {
                let fd = open_quietly(path, O_RDWR);
                // Once at least: what it leaves is looked at, and on a busy machine it may start when all is over.
                loop {
                    // SAFETY: plain calls on our own descriptor and a static text.
                    unsafe {
                        libc::pwrite(fd, c"thread".as_ptr().cast(), 6, 100 + lane * 100);
                        libc::fdatasync(fd);
                    }
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    // A thread that always syncs leaves no turn to the children on a busy machine.
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            });
        }
        for round in 0..30_i64 {
            let child = process::fork(|| {
                // SAFETY: as above; the child only makes calls that are safe after fork.
                let written = unsafe { libc::pwrite(fd, c"forked".as_ptr().cast(), 6, 1000 + round * 10) };
                // SAFETY: as above.
                c_int::from(written != 6) + unsafe { libc::fsync(fd) }
            });
            let ending = process::ending(child);
            if ending != "exit 0" {
                cx.note(format_args!("round {round}: {ending}"));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    cx.write_sync_show(fd);
}

fn executed_child_inherits(cx: &Context, fd: c_int) {
    cx.seek(fd, 4000, libc::SEEK_SET);
    let number = fd.to_string();
    cx.executed(&["write", &number, "e", "100"]);
    cx.executed(&["append", &number, "s"]);
    cx.write(fd, b'p', 10);
    cx.sync_show(fd);
}

fn executed_child_appends(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    for _ in 0..3 {
        cx.write(fd, b'p', 10);
        cx.executed(&["append", &fd.to_string(), "e"]);
    }
    cx.sync_show(fd);
}

fn close_on_exec(cx: &Context, fd: c_int) {
    call!(cx, fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC));
    cx.executed(&["write", &fd.to_string(), "e", "100"]);
}

/// exec that fails leaves everything as it was.
fn failed_exec(cx: &Context, _: c_int) {
    let vector = [c"nothing".as_ptr(), std::ptr::null()];
    call!(cx, execv(c"/does/not/exist".as_ptr(), vector.as_ptr()));
}

fn spawned_child(cx: &Context, fd: c_int) {
    let path = cx.path("a");
    let arguments = Arguments::child(&["append", "801", "s"]);
    // SAFETY: file actions and attributes are initialised before use; strings outlive the calls.
    let child = unsafe {
        let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&raw mut actions);
        libc::posix_spawn_file_actions_adddup2(&raw mut actions, fd, 801);
        libc::posix_spawn_file_actions_addclose(&raw mut actions, fd);
        libc::posix_spawn_file_actions_addopen(&raw mut actions, 802, path.as_ptr(), O_RDWR, 0);
        let mut child = 0;
        let environment = environ();
        let error = libc::posix_spawn(
            &raw mut child,
            arguments.program(),
            &raw const actions,
            std::ptr::null(),
            arguments.vector().cast(),
            environment,
        );
        cx.note(format_args!("posix_spawn = {error}"));
        libc::posix_spawn_file_actions_destroy(&raw mut actions);
        child
    };
    cx.note(process::ending(child));
    cx.write(fd, b'p', 10);
}

fn environ() -> *const *mut c_char {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    // SAFETY: nobody changes the environment in this program.
    unsafe { environ }
}

fn shell_redirection(cx: &Context, fd: c_int) {
    let path = cx.path_text("a");
    let command =
        std::ffi::CString::new(format!("printf shell >> '{path}'; cat '{path}' | wc -c > /dev/null"))
            .expect("no NUL");
    call!(cx, system(command.as_ptr()));
    cx.show(fd);
    cx.fsync(fd);
}

/// What a vfork child does to its descriptors must not disturb the parent it shares memory with.
fn vfork_child_closes(cx: &Context) {
    let Some(vfork_close) = native(cx, c"contract_vfork_close") else { return };
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    // SAFETY: `int contract_vfork_close(int)`, in native/native.c.
    let status =
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(vfork_close)(fd) };
    cx.note(format_args!("vfork child: {status}"));
    cx.write_sync_show(fd);
    cx.write_sync_show(fd);
}

fn vfork_child_moves_descriptors_and_executes(cx: &Context) {
    let Some(vfork_exec) = native(cx, c"contract_vfork_exec") else { return };
    let (fd, other) = (cx.file("a"), cx.file("b"));
    cx.pwrite(fd, b'B', 100, 0);
    let arguments = Arguments::child(&["append", &other.to_string(), "v"]);
    // SAFETY: `int contract_vfork_exec(int from, int to, char *const *vector)`, in native/native.c.
    let status = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn(c_int, c_int, *const *const c_char) -> c_int>(
            vfork_exec,
        )(fd, other, arguments.vector())
    };
    cx.note(format_args!("vfork child: {status}"));
    cx.write_sync_show(fd);
    cx.write_sync_show(other);
}

/// A writer killed in the middle of anything must not leave the file locked or its bytes wrong.
fn killed_writers(cx: &Context) {
    let fd = cx.file("a");
    for round in 0..15_u64 {
        let child = process::fork(|| {
            let own = open_quietly(&cx.path("a"), O_RDWR);
            let page = [b'k'; 3000];
            loop {
                // SAFETY: plain calls; the loop ends by SIGKILL.
                unsafe {
                    libc::pwrite(own, page.as_ptr().cast(), page.len(), 4096);
                    libc::fdatasync(own);
                }
            }
        });
        std::thread::sleep(std::time::Duration::from_micros(500 + round * 400));
        process::kill(child);
        cx.note(process::ending(child));
        let started = std::time::Instant::now();
        cx.pwrite(fd, b'p', 3000, 4096);
        cx.fsync(fd);
        if started.elapsed().as_secs() >= 20 {
            cx.note("the survivor waited for more than twenty seconds");
        }
        cx.show(fd);
    }
}

/// As above, with both writing at once to their own halves.
fn killed_while_the_parent_writes(cx: &Context) {
    let fd = cx.file("a");
    for _ in 0..10 {
        let child = process::fork(|| {
            loop {
                let page = [b'k'; 512];
                // SAFETY: plain calls; the loop ends by SIGKILL.
                unsafe {
                    libc::pwrite(fd, page.as_ptr().cast(), page.len(), 0);
                    libc::fdatasync(fd);
                }
            }
        });
        for step in 0..40_i64 {
            if step == 20 {
                process::kill(child);
            }
            let page = [b'p'; 600];
            // SAFETY: as above.
            unsafe {
                assert_eq!(libc::pwrite(fd, page.as_ptr().cast(), page.len(), 4096 + step * 64), 600);
                assert_eq!(libc::fdatasync(fd), 0);
            }
        }
        cx.note(process::ending(child));
        cx.pwrite(fd, b'0', 512, 0);
        cx.show(fd);
    }
}

fn exits_without_closing(cx: &Context) {
    cx.file("a");
    cx.in_child(|| {
        let fd = open_quietly(&cx.path("a"), O_RDWR);
        cx.pwrite(fd, b'q', 5000, 100);
        0
    });
    let fd = cx.open(&cx.path("a"), libc::O_RDONLY);
    cx.sync_show(fd);
}

family!("process" => on_a_file [
    forked_child_writes, forked_from_a_thread, executed_child_inherits, close_on_exec, failed_exec,
    spawned_child, shell_redirection,
], others [
    parent_writes_child_syncs, grandchildren, child_closes_its_copy, forks_while_threads_write,
    executed_child_appends, vfork_child_closes, vfork_child_moves_descriptors_and_executes, killed_writers,
    killed_while_the_parent_writes, exits_without_closing,
]);

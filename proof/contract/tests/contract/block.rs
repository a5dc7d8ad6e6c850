//! The log on a block device: what was acknowledged survives a power cut that takes all memory, whatever an application
//! does to descriptors, children and signals, and whoever made its files durable.

use crate::common::crash::Crash;

/// Plays `scene`, kills everything, cuts the power, replays.
fn survives(scene: &str, size: &'static str) {
    Crash::play_on_block(scene, size, false).survives();
}

/// The same with a daemon that is stopped from the scene's beginning on: what is durable was made so by the
/// application's own calls. Not for scenes that need it: a new open, a path, a new program.
fn survives_alone(scene: &str) {
    Crash::play_on_block(scene, "32M", true).survives();
}

macro_rules! tests {
    ($play:ident: $($test:ident = $scene:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            $play($scene);
        }
    )*};
}

fn survives_usually(scene: &str) {
    survives(scene, "32M");
}

tests! { survives_usually:
    fdatasync_with_a_daemon = "fdatasync",
    a_log_file_that_did_not_exist = "dsync-new",
    vectored = "vectored",
    dsync = "dsync",
    truncate = "truncate",
    open_truncate = "open-truncate",
    dsync_of_the_kernel = "kernel-dsync",
    descriptors_in_children = "descriptors-in-children",
    append = "append",
    rename = "rename",
    rename_over = "rename-over",
    unlink = "unlink",
    link = "link",
    a_mapping = "mapping",
    fallocate = "fallocate",
    second_process = "second-process",
    files_that_may_not_be_as_long_as_the_log = "small-files",
    two_writers = "two-writers",
    descriptors_closed_by_instruction = "descriptors-closed-unseen",
}

tests! { survives_alone:
    fsync = "fsync",
    fdatasync = "fdatasync",
    large = "large",
    fork = "fork",
    sync_all = "sync",
    sync_of_the_file_system = "syncfs",
    sync_of_a_mapping = "msync",
    sync_by_libc_aio = "aio-fsync",
    descriptors_closed = "descriptors-closed",
    descriptors_taken = "descriptors-taken",
    signals = "signals",
}

#[test]
fn log_full() {
    survives("log-full", "16M");
}

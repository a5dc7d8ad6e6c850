//! What programs print: the one way, for every command.
//!
//! std's own macros panic where nobody reads any more (`| head`), or the disk is full (`> /dev/full`), and a panic in the
//! middle of a recovery is no answer to a closed pipe. Here a line that cannot be printed is dropped, and the command
//! goes on with what it does. At its end [`finish`] says whether something is missing: a reader who has left is none, as
//! with other tools; any other failure is an error.

use std::fmt::Arguments;
use std::io::{self, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

/// Why the first text that was lost was lost: an errno, or 0.
static LOST: AtomicI32 = AtomicI32::new(0);
/// The reader has left.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// True once the reader has left: whoever only prints need not go on.
pub fn is_closed() -> bool {
    CLOSED.load(Relaxed)
}

/// Prints to standard output.
pub fn out(text: Arguments<'_>) {
    note(stdout().lock().write_fmt(text));
}

/// Prints to standard error. If that fails, there is nowhere else to say it.
pub fn err(text: Arguments<'_>) {
    let _ = stderr().lock().write_fmt(text);
}

/// To be called at the end of a command: is all on its way that was printed?
///
/// # Errors
/// Why not, unless the reader has left.
pub fn finish() -> io::Result<()> {
    note(stdout().lock().flush());
    match LOST.load(Relaxed) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn note(done: io::Result<()>) {
    let Err(error) = done else { return };
    if error.kind() == io::ErrorKind::BrokenPipe {
        CLOSED.store(true, Relaxed);
    } else {
        let _ = LOST.compare_exchange(0, error.raw_os_error().unwrap_or(libc::EIO), Relaxed, Relaxed);
    }
}

/// Prints to standard output, without a line's end.
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => { $crate::output::out(::core::format_args!($($text)*)) };
}

/// Prints a line to standard output.
#[macro_export]
macro_rules! outln {
    () => { $crate::output::out(::core::format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::out(::core::format_args!("{}\n", ::core::format_args!($($text)*)))
    };
}

/// Prints to standard error, without a line's end.
#[macro_export]
macro_rules! err {
    ($($text:tt)*) => { $crate::output::err(::core::format_args!($($text)*)) };
}

/// Prints a line to standard error.
#[macro_export]
macro_rules! errln {
    () => { $crate::output::err(::core::format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::err(::core::format_args!("{}\n", ::core::format_args!($($text)*)))
    };
}

//! What a case gets: its directory, its files, and the pen that writes its trace.

use crate::call::{self, Kind, SENTINEL};
use crate::trace;
use std::ffi::{CStr, CString, c_int};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Length of the content every file made by [`Context::file`] starts with: `A` bytes.
pub const INITIAL_LENGTH: usize = 8192;

/// What the shim thinks of the case's file when the case begins.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Variant {
    /// Managed, and an fsync made it tracked: writes are logged, fsyncs absorbed.
    Tracked,
    /// Managed, never synced: writes pass through.
    Untracked,
    /// A name that no policy covers.
    Bypass,
}

impl Variant {
    /// The word used on command lines and in traces.
    pub fn word(self) -> &'static str {
        match self {
            Variant::Tracked => "tracked",
            Variant::Untracked => "untracked",
            Variant::Bypass => "bypass",
        }
    }
}

/// One case at work. Trace lines go out at once (one `write` to descriptor 1), so a case that dies
/// shows how far it came, and forked children may trace too.
#[derive(Clone)]
pub struct Context {
    directory: PathBuf,
    case: String,
    variant: Variant,
}

impl Context {
    /// A context for `case` in `directory`.
    pub fn new(directory: &Path, case: &str, variant: Variant) -> Context {
        Context { directory: directory.to_owned(), case: case.to_owned(), variant }
    }

    /// The directory all files are made in.
    pub fn directory(&self) -> CString {
        c_path(&self.directory)
    }

    /// The prefix of every file name of this case and variant.
    pub fn prefix(&self) -> String {
        format!("{}.{}.", self.case.replace('/', "."), self.variant.word())
    }

    /// The variant at work.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The file name for `tag`: managed, except in the bypass variant.
    pub fn name(&self, tag: &str) -> String {
        let suffix = if self.variant == Variant::Bypass { "-plain" } else { "-wal" };
        format!("{}{tag}{suffix}", self.prefix())
    }

    /// The path for `tag`.
    pub fn path(&self, tag: &str) -> CString {
        c_path(&self.directory.join(self.name(tag)))
    }

    /// The same as text, for a program's arguments.
    pub fn path_text(&self, tag: &str) -> String {
        self.path(tag).into_string().expect("work directories are named in UTF-8")
    }

    /// The path of a file that no policy manages.
    pub fn plain_path(&self, tag: &str) -> CString {
        c_path(&self.directory.join(format!("{}{tag}.plain", self.prefix())))
    }

    /// Makes the file `tag` (8 KiB of `A`), in the state the variant asks for, opened `O_RDWR`.
    pub fn file(&self, tag: &str) -> c_int {
        self.file_with(tag, 0)
    }

    /// As [`Context::file`], with more open flags for the descriptor that is returned.
    pub fn file_with(&self, tag: &str, flags: c_int) -> c_int {
        let path = self.path(tag);
        let maker = open_quietly(&path, libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC);
        assert!(maker >= 0, "cannot create {path:?}: {}", trace::errno_name(call::errno()));
        let content = vec![b'A'; INITIAL_LENGTH];
        // SAFETY: the buffer outlives both calls.
        unsafe {
            assert_eq!(libc::write(maker, content.as_ptr().cast(), content.len()), INITIAL_LENGTH as isize);
            if self.variant != Variant::Untracked {
                // The first fsync is real and makes the file tracked; the second pair is logged.
                assert_eq!(libc::fsync(maker), 0);
                assert_eq!(libc::pwrite(maker, content.as_ptr().cast(), 4096, 0), 4096);
                assert_eq!(libc::fsync(maker), 0);
            }
        }
        if flags == 0 {
            // SAFETY: the descriptor is ours.
            unsafe { libc::lseek(maker, 0, libc::SEEK_SET) };
            return maker;
        }
        // The maker stays open: closing it would let the shim forget what it knows.
        let fd = open_quietly(&path, libc::O_RDWR | flags);
        assert!(fd >= 0, "cannot open {path:?} again: {}", trace::errno_name(call::errno()));
        fd
    }

    /// Records the result of a call and returns it.
    pub fn outcome(&self, name: &str, result: i64, errno: c_int, kind: Kind) -> i64 {
        let text = match (kind, result) {
            (Kind::ErrorNumber, 0) => "0".to_owned(),
            (Kind::ErrorNumber, error) => trace::errno_name(error as c_int),
            (_, -1) => format!("-1 {}", trace::errno_name(errno)),
            (Kind::Address, 0) => format!("null {}", trace::errno_name(errno)),
            (Kind::Number, number) => number.to_string(),
            (Kind::Descriptor, _) => "fd".to_owned(),
            (Kind::Address, _) => "address".to_owned(),
        };
        let failed = result == -1 || matches!((kind, result), (Kind::Address, 0));
        let touched = if !failed && errno != SENTINEL {
            format!(" (errno left at {})", trace::errno_name(errno))
        } else {
            String::new()
        };
        self.note(format_args!("{name} = {text}{touched}"));
        result
    }

    /// Writes one line of trace.
    pub fn note(&self, line: impl Display) {
        let text = format!("  {line}\n");
        // SAFETY: the text outlives the call. A failure means the runner is gone: nothing to do.
        unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
    }

    /// Records size, mode, links and content of the file open at `fd`, and its offset.
    pub fn show(&self, fd: c_int) {
        // SAFETY: a zeroed stat is a valid out parameter.
        let (stat, offset) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            if libc::fstat(fd, &mut stat) != 0 {
                return self.note(format_args!("show: {}", trace::errno_name(call::errno())));
            }
            (stat, libc::lseek(fd, 0, libc::SEEK_CUR))
        };
        self.note(format_args!(
            "file: size {} mode {:o} links {} offset {offset}: {}",
            stat.st_size,
            stat.st_mode,
            stat.st_nlink,
            trace::summary(&contents(fd)),
        ));
    }
}

/// Everything in the file at `fd`, by pread: the offset does not move.
pub fn contents(fd: c_int) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        // SAFETY: the buffer is as long as said.
        let read =
            unsafe { libc::pread(fd, buffer.as_mut_ptr().cast(), buffer.len(), all.len() as libc::off_t) };
        match usize::try_from(read) {
            Ok(0) | Err(_) => return all,
            Ok(length) => all.extend_from_slice(&buffer[..length]),
        }
    }
}

/// `open` without a trace line.
pub fn open_quietly(path: &CStr, flags: c_int) -> c_int {
    // SAFETY: the path is NUL-terminated.
    unsafe { libc::open(path.as_ptr(), flags, 0o644) }
}

/// A path as C wants it.
pub fn c_path(path: &Path) -> CString {
    c_string(path.as_os_str().as_bytes())
}

/// Text as C wants it.
pub fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).expect("no NUL in names and paths")
}

//! Locks on an image, as QEMU takes them (`block/file-posix.c`): byte 100 + p is locked by whoever uses the image in the way p, byte
//! 200 + p by whoever does not want others to. So QEMU and its tools refuse an image that is served, and it is not served while
//! they have it.

use std::fs::File;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_RDLCK, F_UNLCK, F_WRLCK, SEEK_SET, c_short, flock};

/// Ways to use an image.
const READS: i64 = 0;
const WRITES: i64 = 1;
const RESIZES: i64 = 3;
const ALL: [i64; 5] = [READS, WRITES, 2, RESIZES, 4];

const USED: i64 = 100;
const NOT_SHARED: i64 = 200;

/// Takes them; they last as long as this open file. False: somebody uses the image in a way that does not go with ours, or does not
/// want us to.
///
/// # Errors
/// The file system has no such locks.
pub fn take(file: &File, is_read_only: bool) -> Result<bool, Errno> {
    let used: &[i64] = if is_read_only { &[READS] } else { &[READS, WRITES] };
    let not_shared: &[i64] = &[WRITES, RESIZES];
    used.iter().try_for_each(|way| set(file, USED + way))?;
    not_shared.iter().try_for_each(|way| set(file, NOT_SHARED + way))?;
    let is_free = used.iter().map(|way| NOT_SHARED + way).chain(not_shared.iter().map(|way| USED + way));
    let is_free = is_free.map(|at| is_only_ours(file, at)).collect::<Result<Vec<_>, _>>()?;
    let is_free = is_free.into_iter().all(|is_free| is_free);
    if !is_free {
        release(file)?;
    }
    Ok(is_free)
}

fn release(file: &File) -> Result<(), Errno> {
    let all = ALL.iter().flat_map(|way| [USED + way, NOT_SHARED + way]);
    all.into_iter().try_for_each(|at| fcntl(file, FcntlArg::F_OFD_SETLK(&lock(F_UNLCK, at))).map(drop))
}

fn set(file: &File, at: i64) -> Result<(), Errno> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock(F_RDLCK, at))).map(drop)
}

fn is_only_ours(file: &File, at: i64) -> Result<bool, Errno> {
    let mut asked = lock(F_WRLCK, at);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
    Ok(asked.l_type == F_UNLCK as c_short)
}

fn lock(kind: i32, at: i64) -> flock {
    flock { l_type: kind as c_short, l_whence: SEEK_SET as c_short, l_start: at, l_len: 1, l_pid: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_written_by_one_and_read_by_those_who_allow_no_writer() {
        let image = tempfile::NamedTempFile::new().expect("an image");
        let open = || File::options().read(true).write(true).open(image.path()).expect("opened");
        let (first, second, third) = (open(), open(), open());
        assert_eq!(take(&first, false), Ok(true));
        assert_eq!(take(&second, false), Ok(false));
        assert_eq!(take(&second, true), Ok(false), "a reader does not want a writer");
        drop(first);
        assert_eq!(take(&second, true), Ok(true));
        assert_eq!(take(&third, true), Ok(true));
        assert_eq!(take(&open(), false), Ok(false));
    }
}

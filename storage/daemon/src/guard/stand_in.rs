//! A guard that stands in for a file `X` the bare database reads first, and refuses when it is not its own.
//!
//! ```text
//!             text in X.seawall.tmp, fsync,
//!             rename to X.seawall                exchange, fsync directory
//!   DOWN ───────────────────────────▶ PREPARED ───────────────────────────▶ UP
//!   X = true file                     X = true file                         X = text, marked
//!    ▲                                X.seawall = text                      X.seawall = true file
//!    └───────── remove both ─────────────┘                                   │
//!    └───────────────────────── rename X.seawall over X ─────────────────────┘
//! ```
//!
//! The step to UP is one rename that exchanges the two, whatever has the name X at that moment: a database may
//! replace the file while it runs. Where it has none (a new database) the text takes the free name, and what
//! the database then makes goes to `X.seawall`. While the guard is UP the preload, which knows a text by its
//! mark ([`MARK`]), leads the database to `X.seawall`, so that one is the newest; nor does it act on either name while the guard
//! moves ([`Among`]). A hand that does not see the guard may take the text away; [`raise`] may be called again at any time.
//!
//! What the database says, by preset: [`super`].

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, RenameFlags, XattrFlags, fsetxattr, lgetxattr, lremovexattr, lsetxattr, renameat_with,
};
use seawall_core::stand_in::{self, MARK};
use seawall_wire::shm::Preset;

use crate::place::beside;

use super::among::Among;
use super::fault::{GuardError, directory_of, fault, refuse_other, remove, sync_directory};
use super::innodb;
use super::text::Claim;

/// PostgreSQL's version, which it reads first of all. Only older versions of Seawall stood a text in for it.
pub(crate) const PG_VERSION: &str = "PG_VERSION";
/// Tries to meet a database that makes and removes its file at the same time.
const RACES: u32 = 1000;
const TOO_FAST: &str = "the file beside it appears and disappears too fast";

struct Names<'a> {
    /// The file the guard stands in for.
    file: &'a Path,
    /// Where the true file is meanwhile.
    aside: PathBuf,
    temporary: PathBuf,
}

fn names(file: &Path) -> Names<'_> {
    Names { aside: beside(file, ".seawall"), temporary: beside(file, ".seawall.tmp"), file }
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Text,
    TrueFile,
}

impl Names<'_> {
    fn directory(&self) -> &Path {
        directory_of(self.file)
    }

    fn at(path: &Path) -> Found {
        match path.symlink_metadata() {
            Err(_) => Found::Nothing,
            // Whatever was written into it since.
            Ok(_) if is_up(path) || Claim::read(path).is_some() => Found::Text,
            Ok(_) => Found::TrueFile,
        }
    }
}

/// The pool that `file` is guarded for, if it is.
pub fn claimed(file: &Path) -> Option<Claim> {
    Claim::read(file)
}

/// Raises the guard of `file`.
///
/// # Errors
/// [`GuardError`].
pub fn raise(preset: Preset, file: &Path, claim: &Claim, among: Among<'_>) -> Result<(), GuardError> {
    let n = names(file);
    if let Some(found) = Claim::read(file) {
        refuse_other(n.file, &found, Some(claim))?;
        if !is_up(file) {
            // It was copied, or restored, without its mark.
            let mark = || lsetxattr(file, MARK, &[], XattrFlags::empty());
            among.alone(file).and_then(|_alone| mark().map_err(|e| fault("mark", file)(e.into())))?;
            File::open(file).and_then(|text| text.sync_all()).map_err(fault("sync", file))?;
        }
        return check_true_file(preset, &n);
    }
    settle_written_over(preset, &n, among)?;
    let is_there = || file.exists() || Names::at(&n.aside) == Found::TrueFile;
    if !stand_in::may_be_absent(preset) && !is_there() {
        return Err(fault("guard", file)(ErrorKind::NotFound.into()));
    }
    put_up(preset, &n, claim, among)?;
    sync_directory(n.directory())
}

/// Raises it again, which stood aside while its database ran: that may just be replacing the file.
///
/// # Errors
/// [`GuardError`].
pub fn come_back(preset: Preset, file: &Path, claim: &Claim, among: Among<'_>) -> Result<(), GuardError> {
    let n = names(file);
    if Claim::read(file).is_some() || !stand_in::may_be_removed(preset) {
        return raise(preset, file, claim, among);
    }
    put_up(preset, &n, claim, among)?;
    sync_directory(n.directory())
}

/// Lowers it: the newest true file gets its name back.
///
/// # Errors
/// [`GuardError`].
pub fn lower(preset: Preset, file: &Path, claim: Option<&Claim>, among: Among<'_>) -> Result<(), GuardError> {
    let n = names(file);
    settle_written_over(preset, &n, among)?;
    let _alone = among.alone(file)?;
    for _ in 0..RACES {
        if lower_once(preset, &n, claim)? {
            return remove(&n.temporary);
        }
    }
    Err(fault("restore", file)(io::Error::other(TOO_FAST)))
}

/// False: its database has changed what is there meanwhile.
fn lower_once(preset: Preset, n: &Names<'_>, claim: Option<&Claim>) -> Result<bool, GuardError> {
    match (Names::at(n.file), Names::at(&n.aside)) {
        (Found::Text, aside) => {
            let found = Claim::read(n.file);
            found.map_or(Ok(()), |found| refuse_other(n.file, &found, claim))?;
            check_true_file(preset, n)?;
            match aside {
                Found::TrueFile => return restore(n),
                Found::Text => return remove_text(n).map(|()| false),
                // What is made meanwhile is made there.
                Found::Nothing if !rename_to_free(n.file, &n.aside)? => return Ok(false),
                Found::Nothing => remove_text(n)?,
            }
        }
        // Somebody removed the text: what it stood for is still there.
        (Found::Nothing, Found::TrueFile) => return restore(n),
        (_, Found::Nothing) => {}
        // A leftover: what has the name replaced the text.
        (_, Found::TrueFile) => remove(&n.aside)?,
        // It was never put up.
        (_, Found::Text) => remove_text(n)?,
    }
    Ok(true)
}

/// A disk's guard is where programs write into what they find: it is still the same file then, and no text any more. What replaced it
/// by a rename, or was made anew, is the newest; this is not, and which one is wanted only people know.
fn settle_written_over(preset: Preset, n: &Names<'_>, among: Among<'_>) -> Result<(), GuardError> {
    if preset != Preset::Disk || !is_up(n.file) || Claim::read(n.file).is_some() {
        return Ok(());
    }
    if Names::at(&n.aside) == Found::TrueFile {
        return Err(GuardError::WrittenOver { at: n.file.to_owned() });
    }
    let _alone = among.alone(n.file)?;
    lremovexattr(n.file, MARK).map_err(|e| fault("remove the mark from", n.file)(e.into()))
}

/// True unless something took the text's place. Asks for the mark only: cheap enough for every look around.
pub fn is_up(file: &Path) -> bool {
    lgetxattr(file, MARK, &mut [0_u8; 0][..]).is_ok()
}

/// Every file below `dir` whose guard is up, or half-way.
pub fn find(preset: Preset, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(preset, dir, &mut found);
    found.sort();
    found.dedup();
    found
}

fn walk(preset: Preset, dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !stand_in::is_one_database(preset) {
                walk(preset, &path, found);
            }
        } else if let Some(file) = guarded_by(preset, &path) {
            found.push(file);
        }
    }
}

/// The file that `path` is a guard of, or a part of a guard.
fn guarded_by(preset: Preset, path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let ends = [&b".seawall.tmp"[..], b".seawall", b""];
    let (end, name) = ends.iter().find_map(|end| Some((*end, bytes.strip_suffix(*end)?)))?;
    let ours = stand_in::has(preset, name) && (!end.is_empty() || Claim::read(path).is_some());
    ours.then(|| PathBuf::from(std::os::unix::ffi::OsStrExt::from_bytes(name) as &std::ffi::OsStr))
}

fn check_true_file(preset: Preset, n: &Names<'_>) -> Result<(), GuardError> {
    let is_version = n.file.file_name().is_some_and(|name| name == PG_VERSION);
    if Names::at(&n.aside) == Found::TrueFile || stand_in::may_be_removed(preset) && !is_version {
        return Ok(());
    }
    let remedy = match is_version {
        true => "put PostgreSQL's major version, for example 15, into that file",
        false => "put it back, or restore the database from a backup",
    };
    Err(GuardError::Broken { missing: n.aside.clone(), remedy })
}

/// Removes the text from the true file's place, and nothing that its program puts there meanwhile.
fn remove_text(n: &Names<'_>) -> Result<(), GuardError> {
    match fs::rename(&n.aside, &n.temporary) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        done => done.map_err(fault("rename", &n.aside))?,
    }
    let is_text = Names::at(&n.temporary) == Found::Text;
    // What has the name by now was made since.
    if is_text || !rename_to_free(&n.temporary, n.file)? { remove(&n.temporary) } else { Ok(()) }
}

/// False if it is gone.
fn restore(n: &Names<'_>) -> Result<bool, GuardError> {
    match fs::rename(&n.aside, n.file) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true).map_err(fault("restore", n.file)),
    }
}

/// Writes the text, and gives it the guarded name.
fn put_up(preset: Preset, n: &Names<'_>, claim: &Claim, among: Among<'_>) -> Result<(), GuardError> {
    for _ in 0..RACES {
        write_text(preset, n, claim)?;
        let _alone = among.alone(n.file)?;
        if put_up_text(n)? {
            return Ok(());
        }
    }
    Err(fault("replace", n.file)(io::Error::other(TOO_FAST)))
}

/// The same of a text in the temporary file. False: its database has replaced it on its way.
fn put_up_text(n: &Names<'_>) -> Result<bool, GuardError> {
    let mut text = &n.temporary;
    for _ in 0..RACES {
        let found = Names::at(n.file);
        if found == Found::TrueFile && text == &n.temporary {
            // Where the exchange leaves the true file.
            match rename_to_free(text, &n.aside)? {
                true => text = &n.aside,
                // What has the name replaced a text, by a hand that did not see it: this is older.
                false => remove(&n.aside)?,
            }
            continue;
        }
        let done = match found {
            // It was ours, until somebody wrote into it.
            Found::Text => fs::rename(text, n.file),
            Found::TrueFile => exchange(text, n.file),
            Found::Nothing => {
                renameat_with(CWD, text, CWD, n.file, RenameFlags::NOREPLACE).map_err(Into::into)
            }
        };
        match done {
            Ok(()) => return Ok(is_up(n.file)),
            Err(e) if e.kind() == ErrorKind::NotFound && Names::at(text) != Found::Text => return Ok(false),
            Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            Err(e) => return Err(fault("rename", text)(e)),
        }
    }
    Err(fault("rename", text)(io::Error::other(TOO_FAST)))
}

fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(Into::into)
}

/// False if the name is not free.
fn rename_to_free(from: &Path, to: &Path) -> Result<bool, GuardError> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        done => done.map(|()| true).map_err(fault("rename", from)),
    }
}

/// The text in a file of the true one's owner and mode (else its directory's), marked, on disk.
fn write_text(preset: Preset, n: &Names<'_>, claim: &Claim) -> Result<(), GuardError> {
    let like = [n.file, &n.aside, n.directory()].into_iter().find_map(|path| fs::metadata(path).ok());
    let like = like.ok_or(ErrorKind::NotFound.into()).map_err(fault("read the owner of", n.directory()))?;
    remove(&n.temporary)?;
    let failed = |doing| fault(doing, &n.temporary);
    let mut file = File::create_new(&n.temporary).map_err(failed("create"))?;
    file.write_all(&text(preset, n, claim)).map_err(failed("write"))?;
    let is_its_group = own(&file, &like).map_err(failed("set the owner of"))?;
    let mode = like.mode() & if is_its_group { 0o666 } else { 0o606 };
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(failed("set the mode of"))?;
    fsetxattr(&file, MARK, &[], XattrFlags::empty()).map_err(|e| failed("mark")(e.into()))?;
    file.sync_all().map_err(failed("sync"))
}

/// Gives a file the owner and the group of another one. False: not the group, which only root or a member of it can give,
/// and which a directory often has from whoever made it.
fn own(file: &File, like: &fs::Metadata) -> io::Result<bool> {
    let made = file.metadata()?;
    if made.uid() != like.uid() {
        fchown(file, Some(like.uid()), None)?;
    }
    if made.gid() == like.gid() {
        return Ok(true);
    }
    match fchown(file, None, Some(like.gid())) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(false),
        done => done.map(|()| true),
    }
}

/// What the bare database reads.
fn text(preset: Preset, n: &Names<'_>, claim: &Claim) -> Vec<u8> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (file, aside) = (name(n.file), name(&n.aside));
    let text = claim.text(&match preset {
        Preset::Any => "Files of this directory are in Seawall's log.".into(),
        Preset::Disk => format!("The disk {file} is kept in {aside}."),
        _ => format!("The {file} of this {} database is kept in {aside}.", preset.name()),
    });
    if preset == Preset::Mariadb { innodb::as_redo_log(&text) } else { text.into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raise(preset: Preset, file: &Path, claim: &Claim) -> Result<(), GuardError> {
        super::raise(preset, file, claim, Among::Nobody)
    }

    fn come_back(preset: Preset, file: &Path, claim: &Claim) -> Result<(), GuardError> {
        super::come_back(preset, file, claim, Among::Nobody)
    }

    fn lower(preset: Preset, file: &Path, claim: Option<&Claim>) -> Result<(), GuardError> {
        super::lower(preset, file, claim, Among::Nobody)
    }

    const PRESET: Preset = Preset::Lmdb;
    /// A preset whose databases may be without the file.
    const LOOSE: Preset = Preset::Redis;

    fn claim(uuid: u128) -> Claim {
        Claim { uuid, pool: format!("/pool{uuid}").into() }
    }

    /// A directory with one file to guard.
    fn fresh() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let file = dir.path().join("data.mdb");
        fs::write(&file, "15\n").expect("written");
        (dir, file)
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("read")
    }

    fn listing(dir: &Path) -> Vec<String> {
        let mut all: Vec<_> = fs::read_dir(dir)
            .expect("a directory")
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    }

    /// Its name, and what makes it.
    type State = (&'static str, fn(&Names<'_>));

    fn prepare(n: &Names<'_>) {
        write_text(PRESET, n, &claim(1)).expect("written");
        fs::rename(&n.temporary, &n.aside).expect("renamed");
    }

    /// Brings a directory into each state that a crash can leave.
    fn crash_states() -> Vec<State> {
        vec![
            ("down", |_| {}),
            ("half a temporary", |n| fs::write(&n.temporary, "0-SEA").expect("written")),
            ("a whole temporary", |n| write_text(PRESET, n, &claim(1)).expect("written")),
            ("prepared", prepare),
            ("up", |n| {
                prepare(n);
                renameat_with(CWD, &n.aside, CWD, n.file, RenameFlags::EXCHANGE).expect("exchanged");
            }),
            ("up, its text removed", |n| {
                fs::rename(n.file, &n.aside).expect("renamed");
                fs::write(&n.temporary, "0-SEA").expect("written");
            }),
            ("a leftover", |n| fs::write(&n.aside, "14\n").expect("written")),
        ]
    }

    // Holds: P5
    #[test]
    fn every_crash_state_can_be_raised_and_lowered() {
        for (name, make) in crash_states() {
            let (_dir, file) = fresh();
            let n = names(&file);
            make(&n);
            raise(PRESET, &file, &claim(1)).expect(name);
            assert_eq!(claimed(&file), Some(claim(1)), "{name}");
            assert_eq!(read(&n.aside), "15\n", "{name}");
            assert_eq!(find(PRESET, n.directory()), std::slice::from_ref(&file), "{name}");
            let (dir, file) = fresh();
            make(&names(&file));
            lower(PRESET, &file, Some(&claim(1))).expect(name);
            assert_eq!(read(&file), "15\n", "{name}");
            assert_eq!(listing(dir.path()), ["data.mdb"], "{name}");
            assert!(find(PRESET, dir.path()).is_empty(), "{name}");
        }
    }

    // Holds: R6
    #[test]
    fn another_pools_guard_stays() {
        let (_dir, file) = fresh();
        raise(PRESET, &file, &claim(1)).expect("raised");
        assert!(matches!(raise(PRESET, &file, &claim(2)), Err(GuardError::OtherPool { .. })));
        assert!(matches!(lower(PRESET, &file, Some(&claim(2))), Err(GuardError::OtherPool { .. })));
        lower(PRESET, &file, None).expect("abandoned on purpose");
        assert_eq!(claimed(&file), None);
    }

    #[test]
    fn a_guard_keeps_the_mode_and_says_when_its_true_file_is_gone() {
        let (_dir, file) = fresh();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        raise(PRESET, &file, &claim(1)).expect("raised");
        assert_eq!(fs::metadata(&file).expect("stat").mode() & 0o7777, 0o640);
        assert!(is_up(&file));
        fs::remove_file(names(&file).aside).expect("removed");
        let error = lower(PRESET, &file, Some(&claim(1))).expect_err("broken").to_string();
        assert!(error.contains("put it back"), "{error}");
        assert!(claimed(&file).is_some(), "the guard stays up");
    }

    #[test]
    fn a_database_that_has_no_such_file_yet_is_guarded_and_keeps_what_it_makes() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let file = dir.path().join("a.manifest");
        raise(PRESET, &file, &claim(1)).expect_err("not every database may be without");
        raise(LOOSE, &file, &claim(1)).expect("raised");
        lower(LOOSE, &file, Some(&claim(1))).expect("lowered");
        assert!(listing(dir.path()).is_empty(), "nothing was made, nothing is left");
        raise(LOOSE, &file, &claim(1)).expect("raised");
        fs::write(names(&file).aside, "made under the guard").expect("written");
        raise(LOOSE, &file, &claim(1)).expect("raised again");
        lower(LOOSE, &file, Some(&claim(1))).expect("lowered");
        assert_eq!(read(&file), "made under the guard");
    }

    #[test]
    fn a_text_that_lost_its_mark_gets_it_back() {
        let (_dir, file) = fresh();
        raise(PRESET, &file, &claim(1)).expect("raised");
        rustix::fs::lremovexattr(&file, MARK).expect("a copy without attributes");
        assert!(!is_up(&file) && claimed(&file) == Some(claim(1)), "its text is what counts");
        raise(PRESET, &file, &claim(1)).expect("raised again");
        assert!(is_up(&file));
        lower(PRESET, &file, Some(&claim(1))).expect("lowered");
        assert_eq!(read(&file), "15\n");
    }

    // Holds: P5
    #[test]
    fn what_is_written_into_a_text_is_not_taken_for_the_true_file() {
        let (dir, file) = fresh();
        raise(PRESET, &file, &claim(1)).expect("raised");
        fs::write(&file, "").expect("truncated");
        raise(PRESET, &file, &claim(1)).expect("raised again");
        assert_eq!((claimed(&file), read(&names(&file).aside).as_str()), (Some(claim(1)), "15\n"));
        fs::write(&file, "something else").expect("written over");
        lower(PRESET, &file, Some(&claim(1))).expect("lowered");
        assert_eq!((read(&file).as_str(), listing(dir.path()).len()), ("15\n", 1));
    }

    /// Its database is about to make it anew.
    #[test]
    fn a_guard_comes_back_where_the_file_is_gone_for_a_moment() {
        let loose = Preset::Rocksdb;
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let file = dir.path().join("CURRENT");
        raise(loose, &file, &claim(1)).expect_err("no database");
        come_back(loose, &file, &claim(1)).expect("raised");
        lower(loose, &file, Some(&claim(1))).expect("lowered");
        assert!(listing(dir.path()).is_empty());
    }

    /// A machine that was started from it has written its partition table.
    // Holds: admin/VIRTUAL_DISK#what-keeps-others-from-a-stale-image
    #[test]
    fn a_disk_is_not_taken_for_what_was_written_over_its_guard() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let disk = dir.path().join("vm.img");
        let written_over = || {
            fs::write(&disk, "the disk").expect("written");
            raise(Preset::Disk, &disk, &claim(1)).expect("raised");
            fs::write(&disk, "a partition table").expect("written over");
            for done in [raise(Preset::Disk, &disk, &claim(1)), lower(Preset::Disk, &disk, Some(&claim(1)))] {
                let error = done.expect_err("which one?").to_string();
                assert!(error.contains("vm.img.seawall") && error.contains("Remove"), "{error}");
            }
        };
        written_over();
        fs::remove_file(&disk).expect("removed");
        lower(Preset::Disk, &disk, Some(&claim(1))).expect("lowered");
        assert_eq!(read(&disk), "the disk");
        written_over();
        fs::remove_file(names(&disk).aside).expect("removed");
        lower(Preset::Disk, &disk, Some(&claim(1))).expect("lowered");
        assert_eq!(read(&disk), "a partition table");
        raise(Preset::Disk, &disk, &claim(1)).expect("a disk like any other");
        assert_eq!(read(&names(&disk).aside), "a partition table");
    }

    #[test]
    fn a_version_that_an_older_seawall_kept_aside_is_missed() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let file = dir.path().join(PG_VERSION);
        fs::write(&file, claim(1).text("kept aside")).expect("written");
        let error = lower(Preset::Postgres, &file, Some(&claim(1))).expect_err("broken").to_string();
        assert!(error.contains("for example 15"), "{error}");
    }

    // Holds: P5
    #[test]
    fn what_replaced_the_text_is_the_newest() {
        let (dir, file) = fresh();
        let file = &file;
        let replace = || {
            raise(PRESET, file, &claim(1)).expect("raised");
            let new = dir.path().join("new");
            fs::write(&new, "newest").expect("written");
            fs::rename(new, file).expect("renamed over the text");
        };
        replace();
        lower(PRESET, file, Some(&claim(1))).expect("lowered");
        assert_eq!(read(file), "newest");
        replace();
        raise(PRESET, file, &claim(1)).expect("raised again");
        assert_eq!((claimed(file), read(&names(file).aside).as_str()), (Some(claim(1)), "newest"));
    }
}

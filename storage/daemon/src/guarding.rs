//! Guards, looked after: they follow their files, go with those that nobody uses, and step aside for strangers.
//!
//! | what happened | what is done |
//! |---|---|
//! | a file has another path | its guard goes up there, before the old one goes ([`follow_all`]) |
//! | it lies below its directory no more | it leaves the log for good: recovery would look for it in vain |
//! | it has a second name | it leaves the log for good: no guard is there |
//! | every file of a guard is closed and still | their entries are given up, and so the guard goes ([`let_go`]) |
//! | a program without Seawall reads the directory or opens a file | the guard's files leave the log, the guard goes down, and only then that call returns ([`make_way`], root's daemon only) |
//! | that program is gone | the guard goes up, then the files may be in the log again (`warden`) |
//! | a client removes the directory, or renames another one over it | what protects nothing any more goes at once ([`lower_left`]) |

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use nix::libc::{F_RDLCK, F_UNLCK};
use seawall_core::file::{Flag, KeptOut, Slot};
use seawall_core::table::RootEntry;
use seawall_core::{Engine, FileRef};

use crate::guard::GuardError;
use crate::parts::files::{Managed, path_of};
use crate::state::Daemon;
use crate::{absent, directories, evict, forget, outside, sys};

/// One look at them all, some times a second.
pub(crate) fn review(daemon: &Daemon) {
    let still = still(daemon);
    // While registrations go on.
    still.iter().flatten().for_each(|file| daemon.without_log(file, || ()));
    let alone = daemon.registering.turn();
    follow_all(daemon);
    let_go(daemon, &still);
    let mut errors = daemon.guards.keep_up(&daemon.hand(), || daemon.has_its_log());
    errors.extend(daemon.guards.lower_quiet(&daemon.hand(), || daemon.has_its_log()));
    daemon.guards.watch(&daemon.watch, &daemon.log);
    drop(alone);
    errors.extend(daemon.guards.sync_lowered());
    for error in errors {
        daemon.log.say_once(&error.to_string(), error.to_string());
    }
}

/// Every guard goes where its files are. The caller has the turn of `registering`.
pub(crate) fn follow_all(daemon: &Daemon) {
    follow_these(daemon, daemon.guards.beside());
}

fn follow_these(daemon: &Daemon, slots: Vec<u32>) {
    let roots = daemon.roots.all();
    for slot in slots {
        let Some(file) = daemon.files.get(slot) else { continue };
        let Some(root) = roots.get(&file.root) else { continue };
        let Ok(links) = rustix::fs::fstat(&file.file).map(|stat| stat.st_nlink) else { continue };
        let Ok(now) = path_of(&file.file) else { continue };
        if links == 0 {
            continue;
        }
        // A directory has one for each directory in it.
        let has_another = links > 1 && !file.is_directory;
        if !now.starts_with(&root.path) || has_another || is_gone(&now) {
            // By its other name it would be opened past the guard.
            leave_for_good(daemon, &file, &now);
        } else if let Err(e) = follow(daemon, &file, root) {
            // Its records need a guard where it is now, and cannot have one.
            leave_for_good(daemon, &file, &now);
            daemon.log.say_once(&e.to_string(), format!("{} leaves the log: {e}", now.display()));
        }
    }
}

/// Its guard goes where it is now.
fn follow(daemon: &Daemon, file: &Managed, root: &RootEntry) -> Result<(), GuardError> {
    let (slot, guarded) = (file.reference.slot, daemon.guarded_path(file));
    let is_from_above = file.is_directory && !daemon.guards.stands_in(slot, (file.dev, file.ino));
    let is_unborn = || daemon.engine.state(file.reference).has(Flag::UNBORN);
    if is_from_above && !is_unborn() && !daemon.engine.is_dirty(file.reference) && evict::evict(daemon, slot)
    {
        // It was guarded with the one above. Most new directories are put in place, and no name in them changes again: a guard
        // of its own would cost more than all the rest.
        return Ok(());
    }
    let follow = || daemon.guards.follow(slot, root, &guarded, &daemon.hand());
    match guarded.parent().filter(|_| file.is_directory && !daemon.guards.is_at(slot, &guarded)) {
        // The directory in which it goes up may be in the log.
        Some(above) => directories::changing(daemon, above, follow),
        None => follow(),
    }
}

/// True for the name of a file that was removed there, and has another one that the kernel does not tell.
fn is_gone(now: &Path) -> bool {
    now.as_os_str().as_bytes().ends_with(b" (deleted)") && now.symlink_metadata().is_err()
}

fn leave_for_good(daemon: &Daemon, file: &Managed, now: &Path) {
    let reference = file.reference;
    let mark = || daemon.engine.keep_out(reference, KeptOut::Unguarded);
    daemon.without_log(file, mark);
    if !daemon.engine.is_dirty(reference) {
        daemon.guards.forget(reference.slot);
    }
    let text = format!(
        "{} has left the log for good: it was moved out of its directory, or has a second name, where no \
         guard can protect it",
        now.display()
    );
    daemon.log.say_once(&text, &text);
}

/// The files of each guard that nobody has open for writing, once they have been still for a moment.
fn still(daemon: &Daemon) -> Vec<Vec<Arc<Managed>>> {
    let still = daemon.stillness.still(daemon.guards.groups(), &daemon.files, &daemon.engine);
    let files = still.into_iter().map(|group| {
        let mut files: Vec<_> = group.iter().filter_map(|slot| daemon.files.get(*slot)).collect();
        // What was written last is the likeliest to be open, and one is enough.
        files.sort_by_key(|file| Reverse(last_lsn(&daemon.engine, file)));
        files
    });
    files.filter(|files| files.iter().all(|file| is_closed(file))).collect()
}

fn last_lsn(engine: &Engine, file: &Managed) -> u64 {
    engine.file(file.reference).map_or(0, Slot::last_lsn)
}

/// Gives up their entries, and so the guards go. The caller has the turn of `registering`.
fn let_go(daemon: &Daemon, still: &[Vec<Arc<Managed>>]) {
    for files in still {
        // Another one may have come to the same guard.
        let slots = files.iter().map(|file| file.reference.slot).collect::<BTreeSet<u32>>();
        let is_same =
            files.first().is_some_and(|file| daemon.guards.companions(file.reference.slot) == slots);
        if is_same && files.iter().all(|file| is_closed(file)) {
            let _ = files.iter().all(|file| evict::evict(daemon, file.reference.slot));
        }
    }
}

/// True if nobody has it open for writing.
fn is_closed(file: &Managed) -> bool {
    let granted = sys::lease(file.file.as_fd(), F_RDLCK);
    if granted {
        sys::lease(file.file.as_fd(), F_UNLCK);
    }
    granted
}

/// A stranger, `pid`, is about to meet the guard of these files: they leave the log, all that have the same guard, and it
/// steps aside. The caller has the turn of `registering`.
pub(crate) fn make_way(daemon: &Daemon, slots: &BTreeSet<u32>, pid: u32) {
    let all: BTreeSet<u32> = slots.iter().flat_map(|slot| daemon.guards.companions(*slot)).collect();
    for slot in &all {
        if let Some(file) = daemon.files.get(*slot) {
            absent::remove(daemon, &file);
            outside::keep_out(daemon, &file, pid);
        }
    }
    let out = |slot: &u32| !daemon.engine.slot(*slot).is_some_and(Slot::is_dirty);
    let (out, dirty): (BTreeSet<u32>, BTreeSet<u32>) = all.into_iter().partition(out);
    // What the disk did not take keeps its guard, and its companions theirs: it is the same.
    let stays: BTreeSet<u32> = dirty.iter().flat_map(|slot| daemon.guards.companions(*slot)).collect();
    for error in daemon.guards.step_aside(&out.difference(&stays).copied().collect(), &daemon.hand()) {
        daemon.log.say_once(&error.to_string(), error.to_string());
    }
}

/// The guard of a file that is held out of the log comes back, so that the file may, too.
pub(crate) fn come_back(daemon: &Daemon, file: &Managed) -> Result<(), GuardError> {
    let Some(root) = daemon.roots.get(file.root) else { return Ok(()) };
    daemon.guards.come_back(file.reference.slot, &root, &daemon.guarded_path(file), &daemon.hand())
}

/// Files that an earlier daemon managed: their guards are known again. What cannot be guarded is kept out of the log.
pub(crate) fn adopt(daemon: &Daemon) {
    let _alone = daemon.registering.turn();
    for file in daemon.files.all().iter().filter(|file| !file.is_unlinked()) {
        if let Err(e) = come_back(daemon, file) {
            daemon.without_log(file, || daemon.engine.keep_out(file.reference, KeptOut::Frozen));
            daemon.log.say(format!("{} stays out of the log: {e}", file.current_path().display()));
        }
    }
    for root in daemon.roots.all().values() {
        adopt_those_of(daemon, root);
    }
}

/// Those that protect no file that was found: they stay if there are records of files that were not.
fn adopt_those_of(daemon: &Daemon, root: &RootEntry) {
    let is_of = |i: u32| daemon.roots.get(i).is_some_and(|other| other.data == root.data);
    let is_lost = |slot: u32| daemon.files.get(slot).is_none();
    let mut dirty = daemon.engine.slots().filter(|slot| slot.is_dirty());
    let kept = dirty.any(|slot| is_lost(slot.number()) && is_of(slot.root()));
    for at in crate::guard::find(root.preset, &root.data) {
        if let Err(e) = daemon.guards.adopt(root.preset, &at, &daemon.hand(), kept) {
            daemon.log.say(e.to_string());
        }
    }
}

/// A client removes this directory, or replaces it: what protects nothing any more is lowered before it tries. False: something
/// still stands there.
///
/// # Errors
/// The first that cannot be lowered.
pub(crate) fn lower_left(daemon: &Daemon, directory: &OwnedFd) -> Result<bool, GuardError> {
    let Ok(stat) = rustix::fs::fstat(directory) else { return Ok(true) };
    forget::forget_unlinked(daemon);
    let _alone = daemon.registering.turn();
    // Nothing but guards is in it: its own names need none any more.
    if let Some(managed) = daemon.managed(stat.st_dev, stat.st_ino) {
        directories::give_up(daemon, &managed);
    }
    let inode = (stat.st_dev, stat.st_ino);
    // A file that was in it may have moved since the last look around.
    follow_these(daemon, daemon.guards.guarded_in(inode));
    let errors = daemon.guards.lower_quiet_in(inode, &daemon.hand(), || daemon.has_its_log());
    errors.into_iter().next().map_or_else(|| Ok(!daemon.guards.has_any_in(inode)), Err)
}

/// A client is about to rename the managed file `file` to `name` in `directory`: its guard goes up there first.
///
/// # Errors
/// It cannot be raised there: then the file has left the log.
pub(crate) fn renaming(
    daemon: &Daemon,
    file: FileRef,
    directory: &OwnedFd,
    name: &Path,
) -> Result<(), GuardError> {
    let _alone = daemon.registering.turn();
    let managed = daemon.files.get(file.slot).filter(|managed| managed.reference == file);
    let (Some(managed), Ok(directory)) = (managed, path_of(directory)) else { return Ok(()) };
    let Some(root) = daemon.roots.get(managed.root) else { return Ok(()) };
    let to = directory.join(name);
    if !to.starts_with(&root.path) {
        leave_for_good(daemon, &managed, &to);
        return Ok(());
    }
    match daemon.guards.raise_ahead(file.slot, &root, &to, &daemon.hand()) {
        // Its own stands aside too, or it will be found where it is then.
        Err(GuardError::Aside { .. }) => Ok(()),
        Err(e) => {
            leave_for_good(daemon, &managed, &to);
            Err(e)
        }
        Ok(()) => Ok(()),
    }
}

/// Takes the mark off a file that was kept out because of a stranger.
pub(crate) fn let_back(daemon: &Daemon, file: FileRef) {
    daemon.engine.let_back(file, KeptOut::Foreign);
    daemon.engine.release(daemon.me(), file);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::{self, AddRoot};
    use crate::{closing, register, start};
    use seawall_core::file::Flag;
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    /// A daemon without threads, and a directory whose SQLite databases it manages.
    struct Scene {
        daemon: Daemon,
        data: tempfile::TempDir,
        _ram: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let ram = tempfile::tempdir_in("/dev/shm").expect("a directory");
            let data = tempfile::tempdir_in("/var/tmp").expect("a directory");
            let mut daemon = start::without_threads(&ram);
            // Nobody would answer.
            daemon.watch = crate::parts::watch::Watch::Blind;
            let path = data.path().to_owned();
            let wanted = AddRoot {
                preset: "sqlite".into(),
                policy: "tail".into(),
                path: path.clone(),
                data: path,
                recovery: None,
            };
            roots::add(&daemon, &wanted, None).expect("added");
            Self { daemon, data, _ram: ram }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.data.path().join(name)
        }

        fn is_guarded(&self, database: &str) -> bool {
            self.path(&format!("{database}-journal/.seawall")).exists()
        }

        /// Makes `DATABASE-wal` and registers it.
        fn open(&self, database: &str) -> (File, FileRef) {
            let file = File::create(self.path(&format!("{database}-wal"))).expect("created");
            let registered = self.register(&file).expect("managed");
            (file, registered)
        }

        fn register(&self, file: &File) -> Option<FileRef> {
            register::register(&self.daemon, &file.try_clone().expect("a copy").into()).ok()
        }

        fn is_out(&self, file: FileRef) -> bool {
            self.daemon.engine.state(file).has(Flag::FOREIGN)
        }

        fn slots(&self, files: &[FileRef]) -> BTreeSet<u32> {
            files.iter().map(|file| file.slot).collect()
        }

        fn aside(&self, slots: &BTreeSet<u32>) {
            let _alone = self.daemon.registering.turn();
            make_way(&self.daemon, slots, std::process::id());
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            closing::forget_boot(&self.daemon);
            start::release(&self.daemon);
        }
    }

    #[test]
    fn a_file_is_known_only_behind_its_guard() {
        let scene = Scene::new();
        let (_file, _) = scene.open("a");
        assert!(scene.is_guarded("a"));
        fs::create_dir(scene.path("b-journal")).expect("in the way of a guard");
        let unguarded = File::create(scene.path("b-wal")).expect("created");
        assert_eq!(scene.register(&unguarded), None, "what cannot be guarded is not managed");
    }

    #[test]
    fn a_guard_that_protects_something_stays_and_another_goes() {
        let scene = Scene::new();
        let (_file, _) = scene.open("a");
        let (gone, reference) = scene.open("b");
        {
            let _alone = scene.daemon.registering.turn();
            forget::forget(&scene.daemon, reference.slot);
        }
        drop(gone);
        review(&scene.daemon);
        assert!(scene.is_guarded("a") && !scene.path("b-journal").exists());
        assert_eq!(scene.daemon.guards.count(), 1);
    }

    #[test]
    fn a_guard_goes_where_its_file_goes() {
        let scene = Scene::new();
        let (_file, _) = scene.open("a");
        fs::rename(scene.path("a-wal"), scene.path("b-wal")).expect("renamed");
        review(&scene.daemon);
        assert!(scene.is_guarded("b") && !scene.path("a-journal").exists());
    }

    #[test]
    fn the_guard_of_a_rename_that_is_announced_is_up_before_it_and_goes_if_it_does_not_come() {
        let scene = Scene::new();
        let (_file, reference) = scene.open("a");
        let dir: OwnedFd = File::open(scene.data.path()).expect("opened").into();
        renaming(&scene.daemon, reference, &dir, Path::new("b-wal")).expect("raised");
        review(&scene.daemon);
        assert!(scene.is_guarded("a") && scene.is_guarded("b"));
        fs::rename(scene.path("a-wal"), scene.path("b-wal")).expect("renamed");
        review(&scene.daemon);
        assert!(!scene.path("a-journal").exists() && scene.is_guarded("b"));
    }

    #[test]
    fn a_file_with_another_name_or_out_of_its_directory_leaves_the_log() {
        let scene = Scene::new();
        let other = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let (_linked, first) = scene.open("a");
        let (_moved, second) = scene.open("b");
        let (_renamed, third) = scene.open("d");
        fs::hard_link(scene.path("a-wal"), scene.path("c-wal")).expect("linked");
        fs::hard_link(scene.path("d-wal"), scene.path("e-wal")).expect("linked");
        fs::remove_file(scene.path("d-wal")).expect("removed");
        fs::rename(scene.path("b-wal"), other.path().join("b-wal")).expect("renamed");
        review(&scene.daemon);
        for file in [first, second, third] {
            assert!(scene.daemon.engine.state(file).has(Flag::UNGUARDED));
        }
        for database in ["a", "b", "d"] {
            assert!(!scene.path(&format!("{database}-journal")).exists());
        }
        assert_eq!(fs::read_dir(other.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn the_files_of_a_guard_are_given_up_when_all_are_closed_and_still() {
        let scene = Scene::new();
        fs::write(scene.path("a"), seawall_core::policy::SQLITE_MAGIC).expect("written");
        let beside = File::options().read(true).write(true).open(scene.path("a")).expect("opened");
        // First in the list, so that it would be given up before the open one is seen to be.
        let beside_slot = scene.register(&beside).expect("managed").slot;
        let (open, registered) = scene.open("a");
        assert!(beside_slot < registered.slot);
        let (closed, _) = scene.open("b");
        drop((beside, closed));
        let begin = Instant::now();
        while scene.path("b-journal").exists() {
            assert!(scene.is_guarded("a"), "one that is open for writing");
            assert!(begin.elapsed() < Duration::from_secs(20));
            review(&scene.daemon);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(begin.elapsed() >= crate::parts::stillness::STILL, "it may be opened again at once");
        review(&scene.daemon);
        assert!(scene.is_guarded("a"));
        assert!(scene.daemon.files.get(beside_slot).is_some(), "closed, but its guard stays");
        drop(open);
    }

    #[test]
    fn a_guard_steps_aside_when_its_files_are_out_and_is_back_before_they_are() {
        let scene = Scene::new();
        let (_file, first) = scene.open("a");
        let database = scene.path("a");
        fs::write(&database, seawall_core::policy::SQLITE_MAGIC).expect("written");
        let database = File::options().read(true).write(true).open(database).expect("opened");
        let second = scene.register(&database).expect("managed");
        scene.aside(&scene.slots(&[first]));
        assert!(!scene.path("a-journal").exists());
        assert!(scene.is_out(first) && scene.is_out(second), "all that have this guard");
        let new = File::create(scene.path("a-journal")).expect("SQLite's own");
        assert_eq!(scene.register(&new), None, "not while its guard stands aside");
        review(&scene.daemon);
        assert!(!scene.is_guarded("a"), "it does not come back by itself");
        let managed = scene.daemon.files.get(first.slot).expect("known");
        come_back(&scene.daemon, &managed).expect("raised");
        assert!(scene.is_guarded("a") && scene.is_out(first));
        assert_eq!(fs::metadata(scene.path("a-journal.seawall")).expect("SQLite's own").len(), 0);
    }

    #[test]
    fn what_is_no_database_is_not_managed_and_has_no_guard() {
        let scene = Scene::new();
        fs::write(scene.path("text"), "SQLite format 4, or none at all").expect("written");
        let text = File::options().read(true).write(true).open(scene.path("text")).expect("opened");
        assert_eq!(scene.register(&text), None);
        assert!(!scene.path("text-journal").exists());
    }
}

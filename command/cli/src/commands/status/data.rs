//! The data: its directories and files, and what of them the log does not protect.

use seawall_daemon::status::{FileStatus, LeftOut, RootStatus, Status};

use crate::show::{self, Fact};
use crate::size;

/// What there is to say of it.
pub fn facts(s: &Status) -> Vec<Fact> {
    let mut facts: Vec<Fact> = s.roots.iter().map(directory).collect();
    facts.extend(s.not_covered.iter().map(|path| {
        let why = "pages of this tablespace can tear; the daemon's log says why";
        ("NOT COVERED", format!("{}: {why}", path.display()))
    }));
    let left_out = |it: &LeftOut| ("not managed", format!("{}: {}", it.path.display(), it.why));
    facts.extend(s.left_out.iter().map(left_out));
    if s.torn {
        let why =
            "a data file was written outside the log; the database's stderr and the daemon's log say why";
        facts.push(("PAGES CAN TEAR", why.into()));
    }
    facts.push(("file table", file_table(s)));
    facts.extend(outside(s));
    facts
}

/// The table of files.
pub fn tell_files(files: &[FileStatus]) {
    outln!("\nfiles");
    show::table(
        &["path", "state", "fsyncs absorbed", "real", "writes logged", "bytes", "around the log"],
        &files.iter().map(file).collect::<Vec<_>>(),
    );
}

fn directory(root: &RootStatus) -> Fact {
    ("directory", format!("{} ({}, {})", root.path.display(), root.preset, root.policy))
}

/// Says whether every write of the files that need it went through the log.
fn outside(s: &Status) -> Option<Fact> {
    let atomic: Vec<_> = s.files.iter().filter(|f| f.atomic).collect();
    let out = atomic.iter().filter(|f| !f.tracked).count();
    let (left, around) = atomic.iter().fold((0, 0), |(l, w), f| (l + f.left, w + f.untracked_writes));
    (!atomic.is_empty()).then(|| {
        let text = format!(
            "{} files, {out} of them outside the log now; they left it {left} times, {around} writes went around it",
            atomic.len()
        );
        ("atomic", text)
    })
}

fn file_table(s: &Status) -> String {
    let mut text = format!("{} of {} entries in use", s.files.len(), s.files_max);
    if s.evicted > 0 {
        text += &format!(", {} given to other files", s.evicted);
    }
    if s.turned_away > 0 {
        text += &format!("; FULL {} times: those files were left to the kernel", s.turned_away);
    }
    text
}

fn file(f: &FileStatus) -> Vec<String> {
    let mut state = String::from(if f.tracked { "tracked" } else { "untracked" });
    if !f.flags.is_empty() {
        state = format!("{state} ({})", f.flags.join(", "));
    }
    vec![
        f.path.display().to_string(),
        state,
        f.absorbed.to_string(),
        f.real_syncs.to_string(),
        f.writes.to_string(),
        size::human(f.bytes),
        f.untracked_writes.to_string(),
    ]
}

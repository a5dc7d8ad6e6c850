//! Runs cases, each in a process group of its own, under a timeout, and prints their traces.
//!
//! Output, per case and variant: a line `case NAME VARIANT`, the trace lines (indented), the state of
//! every file the case left behind, and how its process ended.

use crate::cases::{self, Case};
use crate::context::{Context, Variant, c_path, contents, open_quietly};
use crate::trace;
use clap::ValueEnum as _;
use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long one case may take before it is killed.
const CASE_TIMEOUT: Duration = Duration::from_secs(30);

/// What `contract run` was asked to do.
#[derive(clap::Args)]
pub struct Options {
    /// Where the files go
    #[arg(value_parser = canonical)]
    directory: PathBuf,
    /// Only this case, or this family
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Only this variant
    #[arg(long = "variant", value_enum)]
    variants: Vec<Variant>,
    /// Leave the files
    #[arg(long)]
    keep: bool,
    /// When all cases have run, sync everything that is left; then move each file, and make another one beside it
    #[arg(long)]
    settle: bool,
    /// Stay when all cases have run
    #[arg(long)]
    linger: bool,
}

fn canonical(directory: &str) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(directory)
}

impl Options {
    fn variants(&self) -> &[Variant] {
        if self.variants.is_empty() { Variant::value_variants() } else { &self.variants }
    }

    /// A case is wanted by its own name or by its family's. Families that need a directory of
    /// their own (a small file system) run only when they are named.
    fn wants(&self, case: &Case) -> bool {
        if self.cases.is_empty() {
            return !case.on_request;
        }
        self.cases.iter().any(|wanted| wanted == case.name || wanted == case.family)
    }
}

/// Runs every wanted case in every wanted variant.
pub fn run(options: &Options) -> Result<(), String> {
    let wanted: Vec<Case> = cases::all().into_iter().filter(|case| options.wants(case)).collect();
    if wanted.is_empty() {
        return Err("no case of that name: see `contract list`".to_owned());
    }
    for case in wanted {
        for variant in options.variants() {
            let cx = Context::new(&options.directory, case.name, *variant);
            println!("case {} {}", case.name, variant.word());
            let (lines, end) = run_apart(&options.directory, case.name, *variant)?;
            print!("{lines}");
            for line in files_left(&options.directory, &cx.prefix())? {
                println!("  left {line}");
            }
            println!("  {end}");
            if !options.keep {
                sweep(&options.directory, &cx.prefix())?;
            }
        }
    }
    if options.settle {
        settle(&options.directory)?;
        move_all(&options.directory).map_err(|error| format!("moving what is left: {error}"))?;
    }
    println!("all cases ran");
    if options.linger {
        // A client that stays: nothing is drained until somebody kills us.
        std::thread::sleep(Duration::from_secs(600));
    }
    Ok(())
}

/// Runs one case in this process: the body of `contract case`.
pub fn one_case(name: &str, variant: Variant, directory: &Path) -> Result<(), String> {
    let case =
        cases::all().into_iter().find(|case| case.name == name).ok_or_else(|| format!("no case `{name}`"))?;
    case.body.run(&Context::new(directory, name, variant));
    Ok(())
}

fn run_apart(directory: &Path, name: &str, variant: Variant) -> Result<(String, String), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["case", name, variant.word()])
        .arg(directory)
        .env("RUST_BACKTRACE", "0")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start case {name}: {error}"))?;
    let mut output = child.stdout.take().ok_or("no pipe from the case")?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let status = wait(&mut child);
    kill_group(&child);
    let _ = child.wait();
    let lines = reader.join().map_err(|_| "the trace reader panicked".to_owned())?;
    Ok((lines, status.map_or_else(|| format!("timed out after {CASE_TIMEOUT:?}"), describe)))
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + CASE_TIMEOUT;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Kills whatever the case left running. Its group is its own, so nobody else can be in it.
fn kill_group(child: &Child) {
    let group = libc::pid_t::try_from(child.id()).expect("a process id is a pid_t");
    // SAFETY: a signal to a group that only our descendants can belong to.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, signal) => format!("died of signal {}", signal.unwrap_or(0)),
    }
}

/// Names of what the case made, sorted, without directories (guards stand beside managed files).
fn names_with(directory: &Path, prefix: &str) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix) && !name.ends_with("-journal"))
        .collect();
    names.sort();
    Ok(names)
}

/// Size, mode, links and content of every file the case left, as another process sees them.
fn files_left(directory: &Path, prefix: &str) -> Result<Vec<String>, String> {
    use std::os::unix::fs::MetadataExt as _;
    let mut lines = Vec::new();
    for name in names_with(directory, prefix)? {
        let path = directory.join(&name);
        let meta = std::fs::symlink_metadata(&path).map_err(|error| error.to_string())?;
        if !meta.is_file() {
            // A directory's size and links may count a guard that stands in it.
            lines.push(format!("{name}: mode {:o}, not a regular file", meta.mode()));
            continue;
        }
        let fd = open_quietly(&c_path(&path), libc::O_RDONLY);
        let content = trace::summary(&contents(fd));
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
        lines.push(format!(
            "{name}: size {} mode {:o} links {}: {content}",
            meta.size(),
            meta.mode(),
            meta.nlink()
        ));
    }
    Ok(lines)
}

/// From now on everything that is left is durable: names, files, and the directories that the names are in.
fn settle(directory: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            settle(&entry.path())?;
        } else if kind.is_file() {
            std::fs::File::open(entry.path()).and_then(|file| file.sync_all()).map_err(failed)?;
        }
    }
    std::fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// Changes that are durable by syncs of small new files and of the directory alone: none of them needs a disk.
fn move_all(directory: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;
    for entry in std::fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()? {
        let meta = entry.metadata()?;
        // A file with names that the log has not heard of is left alone.
        if !meta.is_file() || meta.nlink() > 1 {
            continue;
        }
        let with = |end: &str| {
            let mut name = entry.file_name();
            name.push(end);
            directory.join(name)
        };
        std::fs::rename(entry.path(), with(".moved"))?;
        let mut new = std::fs::File::create(with(".new"))?;
        new.write_all(with("").as_os_str().as_encoded_bytes())?;
        new.sync_all()?;
    }
    std::fs::File::open(directory)?.sync_all()
}

fn sweep(directory: &Path, prefix: &str) -> Result<(), String> {
    for name in names_with(directory, prefix)? {
        let path = directory.join(name);
        if path.is_dir() && !path.is_symlink() {
            // A guard may stand in it, which Seawall hides from us and keeps.
            let _ = std::fs::remove_dir_all(&path);
        } else {
            std::fs::remove_file(&path)
                .map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
        }
    }
    Ok(())
}

//! A new database for each transaction: what the first write of a database costs, with all that is made for it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::options::Options;
use super::schema;
use crate::latency::Recorder;

/// Others' locks are waited for so long: there are none.
const LIMIT: Duration = Duration::from_secs(10);

/// Makes databases until time or count is over, and looks at each of them afterwards. Returns how long the making took.
pub fn run(options: &Options, recorder: &mut Recorder) -> Result<Duration> {
    let started = Instant::now();
    let end = started + Duration::from_secs_f64(options.seconds);
    let mut made = 0;
    while Instant::now() < end && made < options.ops.unwrap_or(u64::MAX) {
        make(options, made, recorder).with_context(|| format!("cannot make database {made}"))?;
        made += 1;
    }
    let took = started.elapsed();
    (0..made).try_for_each(|number| check(options, number))?;
    Ok(took)
}

/// Timed from before the file is there until its first commit has returned; not the closing.
fn make(options: &Options, number: u64, recorder: &mut Recorder) -> Result<()> {
    let path = path(&options.db, number);
    ensure!(!path.exists(), "{} already exists", path.display());
    let begin = Instant::now();
    let db = schema::connect(&path, options.journal, options.synchronous, LIMIT)?;
    db.execute_batch(&format!(
        "BEGIN; CREATE TABLE first (number INTEGER); INSERT INTO first VALUES ({number}); COMMIT;"
    ))?;
    recorder.record(begin.elapsed());
    Ok(())
}

fn check(options: &Options, number: u64) -> Result<()> {
    let path = path(&options.db, number);
    let db = schema::connect(&path, options.journal, options.synchronous, LIMIT)?;
    let found: i64 = db.query_row("SELECT number FROM first", [], |row| row.get(0))?;
    ensure!(u64::try_from(found) == Ok(number), "{} holds the number {found}, not {number}", path.display());
    Ok(())
}

/// `DIR/NAME.db` → `DIR/NAME-7.db`.
fn path(db: &Path, number: u64) -> PathBuf {
    let stem = db.file_stem().unwrap_or_default().to_string_lossy();
    db.with_file_name(format!("{stem}-{number}.db"))
}

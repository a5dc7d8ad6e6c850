//! An embedded store under full load, noting its commits in a ledger.

use std::path::Path;

use anyhow::Result;
use seawall_load::ledger::Verdict;
use seawall_load::store::Store;

use super::program::ProgramLoad;
use super::waiting::LIMIT;
use crate::lab::Lab;
use crate::process::run;
use crate::side::Side;
use crate::store::Program;

impl ProgramLoad {
    /// Starts a store's load on `data`, which is empty, as `side` does.
    pub fn store(lab: &Lab, program: &Program, side: Side, data: &Path, ledger: &Path) -> Result<Self> {
        let (seconds, ledger_path) = (LIMIT.as_secs().to_string(), ledger.to_string_lossy());
        let args = ["run", "sync", &seconds, &ledger_path];
        Self::start(program.command(lab, side, data, &args)?, &program.path, ledger)
    }
}

/// Compares ledger and store, opening it as `side` does, and runs the store's own checker.
pub fn check_store(lab: &Lab, program: &Program, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
    let said = run(program.command(lab, side, data, &["check"])?, "the store's check")?;
    let mut verdict = Store::verdict(&String::from_utf8(said)?, ledger)?;
    if let Err(error) = own_checker(lab, program.store, data) {
        verdict.integrity_errors.push(format!("{error:#}"));
    }
    Ok(verdict)
}

/// On the files themselves: nobody has the store open, so no guard is up.
fn own_checker(lab: &Lab, store: Store, data: &Path) -> Result<()> {
    let mut checker;
    match store {
        Store::Rocksdb => {
            checker = lab.command("ldb");
            checker.arg(format!("--db={}", data.display())).arg("checkconsistency");
        }
        Store::Lmdb => {
            // Reads and writes every page that is in use.
            let copy = data.with_extension("copy");
            lab.fresh_dir(&copy)?;
            checker = lab.command("mdb_copy");
            checker.arg("-c").arg(data).arg(copy);
        }
    }
    run(checker, "the store's own checker").map(drop)
}

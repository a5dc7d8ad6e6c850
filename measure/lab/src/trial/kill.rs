//! A server that is killed under load, and what its data is like after the restart: for the TPROC-C-like mix, whose
//! consistency conditions judge the data as a whole.
//!
//! Nothing is timed here ([`super::crash`] does that), and a power cut is not shown: the page cache outlives processes.

use anyhow::{Result, ensure};
use seawall_load::tprocc::CheckReport;

use super::load;
use super::prepare::Prepared;
use super::record::Killed;
use super::server::Server;
use super::stage::Stage;
use crate::crash::Generator;

/// Acknowledged orders and payments before the kill.
const SOME: usize = 300;

/// Loads, kills every process, starts again, checks; the server is stopped afterwards.
pub fn kill_and_check(stage: &Stage<'_>, prepared: &Prepared, server: Server<'_>) -> Result<Killed> {
    let ledger = load::ledger(stage.lab, Some(&prepared.configuration.name));
    let load = Generator::Tprocc.start(stage.lab, server.postgres()?, &ledger)?;
    load.wait_for_lines(SOME)?;
    server.kill(&[])?;
    load.end()?;
    let server = Server::start(stage.lab, stage.bin, stage.case, prepared)?;
    let report: CheckReport = Generator::Tprocc.check(stage.lab, server.postgres()?, &ledger)?;
    server.stop()?;
    // What was acknowledged and not yet written dies with the server's own memory: that is what this setting says.
    let may_miss = prepared.setting(stage.case, "synchronous_commit").as_deref() == Some("off");
    let missing_is_right = may_miss || report.missing == 0;
    let conditions_hold = CheckReport { missing: 0, ..report.clone() }.is_clean();
    ensure!(missing_is_right && conditions_hold, "the check after the kill found damage: {report}");
    Ok(Killed { acknowledged: report.acknowledged, missing: report.missing })
}

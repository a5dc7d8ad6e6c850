//! From the kill to the first answer: an ordinary server that is started again at once, and a twin, in turn.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use seawall_load::redis::Connection;

use super::super::runs::{Runs, told};
use super::super::{Fields, Scope, SectionResult};
use super::pair::Pair;
use crate::lab::Lab;
use crate::launch;
use crate::process;
use crate::redis::{SETTINGS, Server, place, program};
use crate::side::{Preset, Side};
use crate::table;

/// Megabytes of memory that the server's data takes, about.
const SIZES_MB: [u64; 3] = [200, 1000, 5000];
/// What DEBUG POPULATE takes for a key with its value.
const KEY_BYTES: u64 = 512;
const VALUE_BYTES: u64 = 400;
const LIMIT: Duration = Duration::from_secs(600);

fn sizes(scope: Scope) -> &'static [u64] {
    if scope.quick { &SIZES_MB[..1] } else { &SIZES_MB }
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    sizes(scope).len() * scope.rounds * 2
}

/// The data, a twin's, and what a rewrite of each makes beside it.
pub fn space(scope: Scope) -> u64 {
    sizes(scope).iter().max().unwrap_or(&0) * 4_000_000
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for mb in sizes(scope) {
        let full = lab.work.data("redis-full");
        populate(lab, &full, *mb)?;
        let title =
            |with_twin: bool| format!("{mb} MB, killed, {}", if with_twin { "a twin" } else { "alone" });
        let told_ms = |ms: &f64| format!("{ms:.0} ms");
        let runs = Runs::measure(lab, &[false, true], scope.rounds, title, told_ms, |with_twin, _| {
            if with_twin { taken_over(lab, &full) } else { restarted(lab, &full) }
        })?;
        rows.push(row(*mb, &runs));
        let [restart, twin] = [false, true].map(|with_twin| runs.told(with_twin, |ms| *ms));
        lines.push(vec![format!("{mb} MB"), restart, twin, told(runs.ratio(false, true, |ms| *ms))]);
    }
    let header = ["Redis, killed: first answer, ms", "restarted", "twin", "times sooner"];
    Ok((rows, table::format(&header, &lines)))
}

fn row(mb: u64, runs: &Runs<bool, f64>) -> Fields {
    Fields::default()
        .with("data_mb", mb)
        .with_spread("restart_ms", runs.spread(false, |ms| *ms))
        .with_spread("twin_ms", runs.spread(true, |ms| *ms))
        .with_spread("speedup", runs.ratio(false, true, |ms| *ms))
}

/// An append-only file whose base has so much.
fn populate(lab: &Lab, data: &Path, mb: u64) -> Result<()> {
    lab.fresh_dir(data)?;
    let mut command = launch::command(lab, Side::Fs, Preset::Redis, data, &program()?, SETTINGS)?;
    command.args(["--enable-debug-command", "yes", "--rdbcompression", "no"]);
    place(&mut command, lab, "full", data);
    let server = Server::launch(lab, "full", command)?;
    let mut redis = Connection::open(server.socket())?;
    let keys = (mb * 1_000_000 / KEY_BYTES).to_string();
    redis.call(&["DEBUG", "POPULATE", &keys, "key", &VALUE_BYTES.to_string()])?;
    redis.call(&["BGREWRITEAOF"])?;
    let is_written = || {
        let base =
            fs::read_dir(data.join("appendonlydir"))?.flatten().filter_map(|entry| entry.metadata().ok());
        Ok::<_, anyhow::Error>(base.map(|meta| meta.len()).max().unwrap_or(0) > mb * 500_000)
    };
    process::wait_until("the data is written", LIMIT, || Ok(is_written()? && is_settled(data)))?;
    server.stop()
}

/// No rewrite is under way.
fn is_settled(data: &Path) -> bool {
    let entries = || fs::read_dir(data.join("appendonlydir")).into_iter().flatten().flatten();
    let in_home = fs::read_dir(data).into_iter().flatten().flatten();
    !in_home.chain(entries()).any(|entry| entry.file_name().to_string_lossy().starts_with("temp-"))
        && entries().count() == 3
}

/// A directory of a run's own. The base is never written to, so it need not be copied.
fn copy(lab: &Lab, full: &Path) -> Result<PathBuf> {
    const COPY: &str = "mkdir \"$1\" && for f in \"$0\"/*; do \
         case \"$f\" in *.rdb) ln \"$f\" \"$1\";; *) cp \"$f\" \"$1\";; esac || exit 1; done";
    let data = lab.work.data("redis-killed");
    lab.fresh_dir(&data)?;
    let mut shell = lab.command("/bin/sh");
    shell.args(["-c", COPY]).args([full.join("appendonlydir"), data.join("appendonlydir")]);
    process::run(shell, "copying the data")?;
    Ok(data)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The port's server is killed, and what then has to happen is begun; from there to the first write that is answered, in ms.
fn first_answer(pid: u32, port: u16, then: impl FnOnce() -> Result<()>) -> Result<f64> {
    write_answered(port).context("the server did not answer before the kill")?;
    process::signal(pid, libc::SIGKILL);
    let killed = Instant::now();
    then()?;
    while killed.elapsed() < LIMIT {
        if write_answered(port).is_some() {
            return Ok(killed.elapsed().as_secs_f64() * 1000.0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    anyhow::bail!("the server did not answer within {} s", LIMIT.as_secs())
}

fn write_answered(port: u16) -> Option<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    // The dying server may still take the connection, and never answer.
    stream.set_read_timeout(Some(Duration::from_millis(20))).ok()?;
    (&stream).write_all(b"INCR first\r\n").ok()?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).ok()?;
    line.starts_with(':').then_some(())
}

fn taken_over(lab: &Lab, full: &Path) -> Result<f64> {
    let (data, port) = (copy(lab, full)?, free_port()?);
    let pair = Pair::start(lab, Side::Fs, &data, &["--port".into(), port.to_string()])?;
    let took = first_answer(pair.process("primary")?, port, || Ok(()))?;
    pair.await_ready()?;
    pair.stop()?;
    Ok(took)
}

fn restarted(lab: &Lab, full: &Path) -> Result<f64> {
    let (data, port) = (copy(lab, full)?, free_port()?);
    let start = || {
        let mut command = launch::command(lab, Side::Fs, Preset::Redis, &data, &program()?, SETTINGS)?;
        command.arg("--port").arg(port.to_string());
        place(&mut command, lab, "killed", &data);
        Ok::<_, anyhow::Error>(command)
    };
    let (former, _) = Server::launch(lab, "killed", start()?)?.into_parts();
    let pid = former.pid();
    let mut again = None;
    let took = first_answer(pid, port, || {
        // A port belongs to the dead server until it is gone.
        former.wait()?;
        again = Some(process::start_captured(start()?, "Redis", libc::SIGTERM)?);
        Ok(())
    })?;
    again.context("the server was not started again")?;
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        row(200, &Runs::default()).assert_keys("twin_restart");
    }
}

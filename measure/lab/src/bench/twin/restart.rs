//! From the kill to the first answer: an ordinary server that is started again at once, and a twin, in turn.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seawall_load::redis::Connection;

use super::super::{Fields, Scope, SectionResult};
use super::pair::Pair;
use crate::lab::Lab;
use crate::launch;
use crate::process;
use crate::redis::{SETTINGS, Server, place, program};
use crate::side::{Preset, Side};
use crate::spread::Spread;
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
        let (mut twin, mut restart, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..scope.rounds {
            let (mut with, mut without) = (0.0, 0.0);
            for turn in 0..2 {
                let what = format!("round {}: twin, {mb} MB, killed", round + 1);
                lab.progress.doing(&what);
                match (turn + round) % 2 {
                    0 => without = restarted(lab, &full)?,
                    _ => with = taken_over(lab, &full)?,
                }
                lab.progress.done(&what);
            }
            twin.push(with);
            restart.push(without);
            ratio.push(without / with);
        }
        let of = |values: &[f64]| Spread::of(values).context("never measured");
        let (twin, restart, ratio) = (of(&twin)?, of(&restart)?, of(&ratio)?);
        rows.push(row(*mb, twin, restart, ratio));
        let ms = |ms| format!("{ms:.0}");
        lines.push(vec![format!("{mb} MB"), restart.told(ms), twin.told(ms), ratio.told(ms)]);
    }
    let header = ["Redis, killed: first answer, ms", "restarted", "twin", "times sooner"];
    Ok((rows, table::format(&header, &lines)))
}

fn row(mb: u64, twin: Spread, restart: Spread, ratio: Spread) -> Fields {
    Fields::default()
        .with("data_mb", mb)
        .with_spread("restart_ms", restart)
        .with_spread("twin_ms", twin)
        .with_spread("speedup", ratio)
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
    let end = Instant::now() + LIMIT;
    while !is_written()? || !is_settled(data) {
        ensure!(Instant::now() < end, "the data was not written");
        process::pause(Duration::from_millis(50))?;
    }
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
    write_answered(port).context("no answer before the kill")?;
    process::signal(pid, libc::SIGKILL);
    let killed = Instant::now();
    then()?;
    while killed.elapsed() < LIMIT {
        if write_answered(port).is_some() {
            return Ok(killed.elapsed().as_secs_f64() * 1000.0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    anyhow::bail!("no answer within {} s", LIMIT.as_secs())
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
    again.context("it was started")?;
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let spread = Spread { median: 1.0, min: 1.0, max: 1.0 };
        row(200, spread, spread, spread).assert_keys(keys::TWIN_RESTART);
    }
}

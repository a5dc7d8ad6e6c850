//! The processes of a run: forked before any thread exists, released together, merged by pipes.
//!
//! Each child says `R` (ready) on its pipe, waits for the parent to close the common go pipe, and
//! finally sends its [`Outcome`] as JSON and ends. A child that dies leaves an incomplete message,
//! which is an error, never a smaller result.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};

use anyhow::{Context, Result, bail, ensure};

use super::plan::Plan;
use super::worker::{self, Outcome};
use crate::sys::{self, Forked};

struct Child {
    pid: i32,
    results: PipeReader,
}

/// Runs all processes of the plan and waits for them.
pub fn run_processes(plan: &Plan) -> Result<Vec<Outcome>> {
    let (go_reader, go_writer) = pipe().context("cannot make a pipe")?;
    let mut children = Vec::new();
    for process in 0..plan.options.processes {
        let (results, sender) = pipe().context("cannot make a pipe")?;
        match sys::fork().context("cannot start a load process")? {
            Forked::Parent(pid) => children.push(Child { pid, results }),
            Forked::Child => {
                drop(go_writer); // or the go signal (end of file) would never come
                drop(children);
                sys::exit_child(child(plan, process, go_reader, sender));
            }
        }
    }
    drop(go_reader);
    let mut ready = Ok(());
    for child in &mut children {
        ready = ready.and(wait_ready(child));
    }
    drop(go_writer);
    let outcomes: Vec<Result<Outcome>> = children.into_iter().map(finish).collect();
    ready?;
    outcomes.into_iter().collect()
}

fn wait_ready(child: &mut Child) -> Result<()> {
    let mut byte = [0];
    child
        .results
        .read_exact(&mut byte)
        .with_context(|| format!("process {} ended before it started", child.pid))?;
    ensure!(byte == *b"R", "process {} could not start", child.pid);
    Ok(())
}

fn finish(mut child: Child) -> Result<Outcome> {
    let mut message = Vec::new();
    let read = child.results.read_to_end(&mut message);
    let status = sys::wait_child(child.pid).context("cannot wait for a load process")?;
    read.context("cannot read a load process's result")?;
    match serde_json::from_slice(&message).context("a load process's result is incomplete")? {
        Message::Done(outcome) if status == 0 => Ok(outcome),
        Message::Done(_) => bail!("load process {} ended with status {status}", child.pid),
        Message::Failed(why) => bail!("load process {}: {why}", child.pid),
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
enum Message {
    Done(Outcome),
    Failed(String),
}

/// The child's whole life; returns its exit code.
fn child(plan: &Plan, process: usize, mut go: PipeReader, mut sender: PipeWriter) -> i32 {
    let mut signal = sender.try_clone();
    let outcome = worker::run_process(plan, process, || {
        signal.as_mut().map_err(|e| io::Error::from(e.kind()))?.write_all(b"R")?;
        go.read_to_end(&mut Vec::new())?;
        Ok(())
    });
    let (message, code) = match outcome {
        Ok(outcome) => (Message::Done(outcome), 0),
        Err(error) => (Message::Failed(format!("{error:#}")), 1),
    };
    let sent =
        serde_json::to_vec(&message).map_err(io::Error::from).and_then(|bytes| sender.write_all(&bytes));
    if sent.is_err() { 1 } else { code }
}

//! Redis: `INFO everything` and `CONFIG GET *`, over its own protocol.
//!
//! Redis executes one command at a time, so a question to it never finds another command under way. The state
//! of its main thread shows from outside what it is doing, where it runs on this machine. A main thread
//! that runs executes a command; one that waits for a disk writes or syncs the append-only file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::database::connection::Database;
use crate::machine::{self, process};
use crate::model::{Reading, Sample, Snapshot, Target};

const PATIENCE: Duration = Duration::from_secs(5);
/// Longer answers are nobody's INFO.
const LONGEST: usize = 1 << 24;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection.
pub struct Redis {
    stream: BufReader<Box<dyn Stream>>,
    place: String,
    /// The server's process, if it runs on this machine.
    pid: Option<u32>,
}

impl Redis {
    /// Connects, with the password of `REDISCLI_AUTH` if there is one, as redis-cli does.
    pub fn connect(place: &str) -> Result<Self> {
        let stream: Box<dyn Stream> = if place.starts_with('/') {
            let stream =
                UnixStream::connect(place).with_context(|| format!("cannot connect to Redis at {place}"))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Box::new(stream)
        } else {
            let stream =
                TcpStream::connect(place).with_context(|| format!("cannot connect to Redis at {place}"))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Box::new(stream)
        };
        let mut this = Self { stream: BufReader::new(stream), place: place.into(), pid: None };
        if let Ok(word) = std::env::var("REDISCLI_AUTH") {
            this.ask(&["AUTH", &word])?;
        }
        let info = this.info()?;
        let pid = pairs(&info).find(|(name, _)| *name == "process_id").and_then(|(_, id)| id.parse().ok());
        this.pid = pid.and_then(|pid| process::of_name(pid, &["redis-server", "valkey-server"]));
        Ok(this)
    }

    /// A command's answer: its strings, one after another.
    fn ask(&mut self, words: &[&str]) -> Result<Vec<String>> {
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
        self.stream.get_mut().write_all(request.as_bytes()).context("Redis is gone")?;
        let mut answer = Vec::new();
        self.read(&mut answer)
            .with_context(|| format!("cannot read the answer of Redis at {} to {}", self.place, words[0]))?;
        Ok(answer)
    }

    fn read(&mut self, into: &mut Vec<String>) -> Result<()> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let Some((kind, rest)) = line.trim_end().split_at_checked(1) else {
            bail!("it closed the connection")
        };
        match kind {
            "+" | ":" => into.push(rest.into()),
            "-" => bail!("{rest}"),
            "$" => {
                let length: i64 = rest.parse().context("the answer has no length")?;
                if length >= 0 {
                    into.push(self.bulk(length as usize)?);
                }
            }
            "*" => {
                for _ in 0..rest.parse::<usize>().context("the answer has no length")? {
                    self.read(into)?;
                }
            }
            _ => bail!("this is not Redis"),
        }
        Ok(())
    }

    fn bulk(&mut self, length: usize) -> Result<String> {
        if length > LONGEST {
            bail!("the answer is too long: {length} bytes");
        }
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    fn info(&mut self) -> Result<String> {
        Ok(self.ask(&["INFO", "everything"])?.pop().unwrap_or_default())
    }
}

impl Database for Redis {
    fn target(&mut self) -> Result<Target> {
        let info = self.info()?;
        let word =
            |name: &str| pairs(&info).find(|(n, _)| *n == name).map_or("", |(_, value)| value).to_owned();
        let version = word("redis_version");
        let name = self.place.clone();
        Ok(Target {
            product: "Redis".into(),
            version,
            id: format!("redis {name}"),
            name,
            host: machine::host_name(),
        })
    }

    fn capture(&mut self, snapshot: &mut Snapshot) -> Result<()> {
        let info = self.info()?;
        snapshot.add("redis info", true, vec![reading(&info)]);
        let commands = commands(&info);
        snapshot.add("redis command", true, commands);
        if self.pid.is_none() {
            snapshot.notes.push(
                "Redis runs elsewhere, or in a container: the work of its main thread cannot be sampled, and \
                 DB time is that of its commands alone, without writing and syncing the append-only file"
                    .into(),
            );
        }
        match self.ask(&["CONFIG", "GET", "*"]) {
            Ok(words) => {
                let mut settings = Reading::new("settings", "", "");
                let pairs = words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                settings
                    .facts
                    .extend(pairs.filter(|(name, _)| !name.contains("pass") && !name.contains("auth")));
                snapshot.add("settings", true, vec![settings]);
            }
            Err(e) => snapshot.notes.push(format!("settings: {e:#}")),
        }
        Ok(())
    }

    fn sample(&mut self) -> Result<Vec<Sample>> {
        // A connection that is gone is noticed by asking.
        self.ask(&["PING"])?;
        let Some(threads) = self.pid.and_then(process::threads) else { return Ok(Vec::new()) };
        let at_ms = crate::clock::wall_ms();
        Ok(threads
            .iter()
            .enumerate()
            .filter_map(|(i, (name, state))| sample(at_ms, i == 0, name, *state))
            .collect())
    }

    fn can_sample(&self) -> bool {
        self.pid.is_some()
    }
}

/// What a thread does, if it does not sleep.
fn sample(at_ms: i64, is_main: bool, name: &str, state: char) -> Option<Sample> {
    let doing = match state {
        'R' => "",
        'D' => "disk",
        _ => return None,
    };
    let thread = if is_main { "main" } else { name };
    let wait_event = if doing.is_empty() { String::new() } else { format!("{thread} {doing}") };
    Some(Sample {
        at_ms,
        foreground: is_main,
        wait_type: "redis".into(),
        wait_event,
        query_id: 0,
        sessions: 1,
    })
}

/// The values that only grow. All others are gauges.
const COUNTERS: [&str; 14] = [
    "total_",
    "keyspace_",
    "expired_",
    "evicted_",
    "rejected_",
    "used_cpu_",
    "aof_delayed_fsync",
    "aof_rewrites",
    "rdb_saves",
    "io_threaded_",
    "cmdstat_calls",
    "cmdstat_usec",
    "sync_",
    "unexpected_error_replies",
];

fn reading(info: &str) -> Reading {
    let word = |name: &str| pairs(info).find(|(n, _)| *n == name).map_or("", |(_, value)| value);
    let mut reading = Reading::new("redis info", "", word("run_id"));
    let mut commands = (0.0, 0.0);
    for (name, value) in pairs(info) {
        if name.starts_with("cmdstat_") {
            let field = |name: &str| value.split(',').find_map(|f| f.strip_prefix(name)?.parse::<f64>().ok());
            commands.0 += field("calls=").unwrap_or(0.0);
            commands.1 += field("usec=").unwrap_or(0.0);
        } else if let Ok(value) = value.parse::<f64>() {
            let counter = COUNTERS.iter().any(|prefix| name.starts_with(prefix)) && !name.contains("_per");
            let into = if counter { &mut reading.counters } else { &mut reading.gauges };
            into.insert(name.into(), value);
        }
    }
    reading.counter("command calls", commands.0).counter("command time us", commands.1)
}

/// Each command's calls and time.
fn commands(info: &str) -> Vec<Reading> {
    let run = pairs(info).find(|(name, _)| *name == "run_id").map_or("", |(_, value)| value);
    let one = |(name, value): (&str, &str)| {
        let command = name.strip_prefix("cmdstat_")?;
        let field = |name: &str| value.split(',').find_map(|f| f.strip_prefix(name)?.parse::<f64>().ok());
        let reading = Reading::new("redis command", command, run).counter("calls", field("calls=")?);
        Some(reading.counter("time_ms", field("usec=")? / 1e3).fact("query", command.replace('|', " ")))
    };
    pairs(info).filter_map(one).collect()
}

fn pairs(info: &str) -> impl Iterator<Item = (&str, &str)> {
    info.lines().filter_map(|line| line.trim_end().split_once(':'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn info_is_counters_and_gauges() {
        let info = "# Server\r\nrun_id:abc\r\nconnected_clients:3\r\ntotal_commands_processed:70\r\n\
                    cmdstat_set:calls=60,usec=120,usec_per_call=2.00\r\ncmdstat_get:calls=10,usec=5\r\n";
        let reading = super::reading(info);
        assert_eq!((reading.epoch.as_str(), reading.gauges["connected_clients"]), ("abc", 3.0));
        assert_eq!(reading.counters["total_commands_processed"], 70.0);
        assert_eq!((reading.counters["command calls"], reading.counters["command time us"]), (70.0, 125.0));
    }

    #[test]
    fn each_command_is_counted() {
        let info = "run_id:abc\r\ncmdstat_set:calls=60,usec=120,usec_per_call=2.00\r\ncmdstat_config|get:calls=1,usec=5\r\n";
        let found = super::commands(info);
        assert_eq!((found[0].counters["calls"], found[0].counters["time_ms"]), (60.0, 0.12));
        assert_eq!(found[1].facts["query"], "config get");
    }

    #[test]
    fn a_thread_that_sleeps_is_no_sample() {
        let seen =
            |main, state| super::sample(7, main, "bio_aof", state).map(|s| (s.foreground, s.wait_event));
        assert_eq!(seen(true, 'S'), None);
        assert_eq!(seen(true, 'R'), Some((true, String::new())));
        assert_eq!(seen(true, 'D'), Some((true, "main disk".into())));
        assert_eq!(seen(false, 'D'), Some((false, "bio_aof disk".into())));
    }
}

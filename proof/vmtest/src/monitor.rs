//! QEMU's monitor (QMP), over its standard input and output: a disk is plugged into a running machine.
//!
//! In: the process. Out: commands carried out, one at a time. Events are passed over.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The monitor of a running QEMU.
pub struct Monitor {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Monitor {
    /// Takes the ends of a QEMU that was started with `-qmp stdio`.
    ///
    /// # Errors
    /// If it has none, or does not greet.
    pub fn open(qemu: &mut Child) -> Result<Self> {
        let to = qemu.stdin.take().context("QEMU has no monitor")?;
        let from = BufReader::new(qemu.stdout.take().context("QEMU has no monitor")?);
        let mut monitor = Self { to, from };
        monitor.hear().context("QEMU's monitor did not greet")?;
        monitor.ask("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Has a command carried out.
    ///
    /// # Errors
    /// What QEMU said.
    pub fn ask(&mut self, command: &str, arguments: &Value) -> Result<()> {
        let asked = json!({ "execute": command, "arguments": arguments });
        writeln!(self.to, "{asked}").with_context(|| format!("cannot ask QEMU for {command}"))?;
        loop {
            let said = self.hear()?;
            if said.get("return").is_some() {
                return Ok(());
            }
            if let Some(error) = said.get("error") {
                bail!("QEMU refuses {asked}: {error}");
            }
        }
    }

    fn hear(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("QEMU's monitor says {line:?}"))
    }
}

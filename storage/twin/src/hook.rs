//! A command of the operator's that runs after a takeover: for a proxy, a virtual address, or a message.

use std::process::Command;

use crate::address::Address;

/// Runs it. What it does is its own affair; a failure is printed.
pub fn run(command: &str, process: i32, address: &Address) {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).env("SEAWALL_TWIN_PID", process.to_string());
    shell.env("SEAWALL_TWIN_PORT", address.port.to_string());
    shell.env("SEAWALL_TWIN_SOCKET", address.socket.clone().unwrap_or_default());
    std::thread::spawn(move || match shell.status() {
        Ok(status) if status.success() => {}
        Ok(status) => errln!("seawall: the command after a takeover ended with {status}"),
        Err(e) => errln!("seawall: cannot run the command after a takeover: {e}"),
    });
}

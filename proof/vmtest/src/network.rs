//! The network between the machines: Ethernet in this process, so that it needs no privileges and nobody else is
//! on it.
//!
//! In: frames from each machine's QEMU, as its `stream` network sends them (a length, then the frame). Out: each
//! frame to the machine it is for, or to all others. A machine that is off, or on its way, holds nobody else up; one
//! that is unplugged hears and tells nothing.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;

use crate::socket;

/// Machines on it.
pub const PORTS: usize = 3;
/// The first bytes of our addresses; the last one is the port's number, from 1.
const OURS: [u8; 5] = [0x52, 0x54, 0x00, 0x5e, 0xa0];
/// The longest frame QEMU sends.
const LONGEST: usize = 68 << 10;

/// A network.
#[derive(Default)]
pub struct Network {
    ports: Arc<[Port; PORTS]>,
}

/// Where frames for one machine go. For one that was switched off they go nowhere.
#[derive(Default)]
struct Port {
    cable: Mutex<Option<UnixStream>>,
    is_unplugged: AtomicBool,
}

impl Port {
    fn cable(&self) -> MutexGuard<'_, Option<UnixStream>> {
        self.cable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_unplugged(&self) -> bool {
        self.is_unplugged.load(Relaxed)
    }
}

impl Network {
    /// A machine is about to be switched on: the socket that its QEMU shall connect to. It takes the place of the
    /// one that was in this port before.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn plug(&self, port: usize) -> Result<String> {
        let (listener, name) = socket::listen("network")?;
        let ports = Arc::clone(&self.ports);
        ports[port].is_unplugged.store(false, Relaxed);
        thread::spawn(move || {
            // It ends with the machine, which is no error.
            let _ = listener.accept().and_then(|(cable, _)| carry(cable, port, &ports));
        });
        Ok(name)
    }

    /// From now on this machine hears nobody, and nobody hears it.
    pub fn unplug(&self, port: usize) {
        self.ports[port].is_unplugged.store(true, Relaxed);
    }
}

/// The address of the machine in this port.
pub fn address(port: usize) -> String {
    let bytes = OURS.iter().copied().chain([port as u8 + 1]);
    bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Carries one machine's frames to the others, until it is switched off.
fn carry(cable: UnixStream, from: usize, ports: &[Port; PORTS]) -> io::Result<()> {
    *ports[from].cable() = Some(cable.try_clone()?);
    let mut cable = BufReader::new(cable);
    loop {
        let packet = take(&mut cable)?;
        if ports[from].is_unplugged() {
            continue;
        }
        let others = ports.iter().enumerate().filter(|(to, port)| *to != from && !port.is_unplugged());
        for (_, port) in others.filter(|(to, _)| is_for(&packet[4..], *to)) {
            // A machine that is off hears nothing.
            let _ = port.cable().as_mut().map(|cable| cable.write_all(&packet));
        }
    }
}

/// A frame with its length before it.
fn take(cable: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    cable.read_exact(&mut length)?;
    let bytes = u32::from_be_bytes(length) as usize;
    if bytes > LONGEST {
        return Err(io::Error::other("a frame is too long"));
    }
    let mut packet = length.to_vec();
    packet.resize(4 + bytes, 0);
    cable.read_exact(&mut packet[4..])?;
    Ok(packet)
}

/// A machine that boots reads nothing for seconds. What is for another one does not wait in its cable.
fn is_for(frame: &[u8], port: usize) -> bool {
    match frame.strip_prefix(&OURS) {
        Some([number, ..]) => usize::from(*number) == port + 1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    use std::time::{Duration, Instant};

    use super::*;

    fn machine(network: &Network, port: usize) -> UnixStream {
        let name = network.plug(port).expect("a socket");
        let cable = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).expect("a name"));
        let end = Instant::now() + Duration::from_secs(10);
        while network.ports[port].cable().is_none() && Instant::now() < end {
            thread::yield_now();
        }
        cable.expect("connected")
    }

    fn packet(to: [u8; 6], text: &[u8]) -> Vec<u8> {
        let frame = [&to[..], text].concat();
        [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
    }

    #[test]
    fn a_frame_reaches_the_machine_it_is_for_and_one_for_all_the_others() {
        let network = Network::default();
        let mut machines = [0, 1, 2].map(|port| machine(&network, port));
        let (third, all) = ([0x52, 0x54, 0, 0x5e, 0xa0, 3], [0xff; 6]);
        machines[0].write_all(&packet(third, b"for the third")).expect("sent");
        machines[0].write_all(&packet(all, b"for all")).expect("sent");
        assert_eq!(take(&mut machines[1]).expect("a frame"), packet(all, b"for all"));
        assert_eq!(take(&mut machines[2]).expect("a frame"), packet(third, b"for the third"));
        assert_eq!(take(&mut machines[2]).expect("a frame"), packet(all, b"for all"));
    }

    #[test]
    fn a_machine_that_is_off_holds_nobody_up() {
        let network = Network::default();
        let [mut first, second, mut third] = [0, 1, 2].map(|port| machine(&network, port));
        drop(second);
        for number in 0..100 {
            first.write_all(&packet([0xff; 6], &[number])).expect("sent");
            assert_eq!(take(&mut third).expect("a frame"), packet([0xff; 6], &[number]));
        }
    }

    #[test]
    fn one_that_is_unplugged_hears_and_tells_nothing() {
        let network = Network::default();
        let mut machines = [0, 1, 2].map(|port| machine(&network, port));
        network.unplug(1);
        machines[1].write_all(&packet([0xff; 6], b"from the second")).expect("sent");
        machines[0].write_all(&packet([0xff; 6], b"from the first")).expect("sent");
        assert_eq!(take(&mut machines[2]).expect("a frame"), packet([0xff; 6], b"from the first"));
        machines[1].set_nonblocking(true).expect("set");
        assert!(take(&mut machines[1]).is_err(), "it heard something");
    }

    #[test]
    fn addresses_tell_ports_apart() {
        assert_eq!(address(0), "52:54:00:5e:a0:01");
        assert!(
            is_for(&[0x52, 0x54, 0, 0x5e, 0xa0, 1, 9], 0) && !is_for(&[0x52, 0x54, 0, 0x5e, 0xa0, 1, 9], 1)
        );
    }
}

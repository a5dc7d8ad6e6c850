//! A log that keepers keep is made.

use std::path::Path;

use seawall_core::pool::{PoolError, replicated};
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::meta::{Member, Mode, Roster};
use seawall_keeper::peer::Peer;
use seawall_keeper::transport::Transport;
use seawall_keeper::turn::{self, PATIENCE};
use seawall_keeper::uuid::uuid_text;
use seawall_media::random_uuid;
use seawall_wire::keeper::{Epoch, Position, State};

use super::error::KeptError;

/// Makes a log of an image of so many bytes at these keepers, `HOST:PORT`, and the pool's file at `path`, which remembers
/// how they are reached.
///
/// # Errors
/// [`KeptError`]. What was made at some keepers is left there, and is nobody's.
pub fn create(
    path: &Path,
    image: u64,
    addresses: &[String],
    acks: usize,
    transport: Transport,
    mode: Mode,
) -> Result<(), KeptError> {
    let keepers = addresses.len();
    if !(1..=keepers).contains(&acks) {
        return Err(KeptError::Acks { acks, keepers });
    }
    if path.exists() {
        return Err(PoolError::Exists(path.into()).into());
    }
    let failed = |error| KeptError::File { path: path.into(), error };
    let uuid = random_uuid().map_err(failed)?;
    let reach = |address: &String| {
        let mut peer = Peer::connect(address, &transport, PATIENCE)?;
        let (state, _) = peer.greet(uuid, Some(image), None)?;
        Ok((peer, state))
    };
    let mut peers = addresses.iter().map(reach).collect::<Result<Vec<_>, _>>().map_err(KeptError::Making)?;
    let roster = Roster { acks, members: members(&peers)?, mode };
    let epoch = Epoch { counter: 1, writer: turn::draw_writer().map_err(failed)? };
    for (peer, state) in &mut peers {
        peer.promise(epoch, Some(&roster)).map_err(KeptError::Making)?;
        if state.is_witness() {
            peer.adopt(Position::default(), 1)?;
            continue;
        }
        peer.begin()?;
        replicated::format::<KeptError>(path, uuid, image, |at, bytes| Ok(peer.piece(at, bytes)?))?;
        peer.complete(1)?;
    }
    let made = Descriptor::new(uuid_text(uuid), image, roster, transport);
    made.create(path).map_err(failed)
}

/// The members of a roster: each keeper once, and at least one of them with data.
fn members(peers: &[(Peer, State)]) -> Result<Vec<Member>, KeptError> {
    let member = |(peer, state): &(Peer, State)| Member {
        id: uuid_text(state.keeper),
        address: peer.address().to_owned(),
        witness: state.is_witness(),
    };
    let members: Vec<Member> = peers.iter().map(member).collect();
    for (i, member) in members.iter().enumerate() {
        if members[..i].iter().any(|other| other.id == member.id) {
            return Err(KeptError::Twice(member.address.clone()));
        }
    }
    if members.iter().all(|member| member.witness) {
        return Err(KeptError::NoData);
    }
    Ok(members)
}

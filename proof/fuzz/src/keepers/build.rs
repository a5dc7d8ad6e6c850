//! Frames and what is behind them, from a recipe: right enough to get behind the checksums, and wrong in one place.

use seawall_keeper::holder::Holder;
use seawall_keeper::meta::{Member, Mode, Roster, Terms};
use seawall_keeper::uuid::low_half;
use seawall_media::{LINE, Striped, crc32c};
use seawall_wire::keeper::{Epoch, Frame, Greeting, KEEPER_VERSION, Kind, Position, Refusal, State};
use zerocopy::{FromZeros as _, IntoBytes as _};

use crate::input::Input;

/// Logs that recipes speak of.
pub const LOGS: [[u8; 16]; 3] = [[1; 16], [2; 16], [3; 16]];
/// Bytes of an image of them.
pub const IMAGE: u64 = 64 << 10;
/// The longest body.
const BODY: u64 = 4096;

const KINDS: [Kind; 16] = [
    Kind::Hello,
    Kind::Promise,
    Kind::Adopt,
    Kind::Batch,
    Kind::Begin,
    Kind::Piece,
    Kind::Complete,
    Kind::Ask,
    Kind::Fetch,
    Kind::Forget,
    Kind::Report,
    Kind::Welcome,
    Kind::Promised,
    Kind::Ack,
    Kind::Refused,
    Kind::Reported,
];

/// One of the logs.
pub fn log(input: &mut Input<'_>) -> [u8; 16] {
    LOGS[usize::from(input.u8()) % LOGS.len()]
}

/// What follows `near`, as a rule.
fn number(input: &mut Input<'_>, near: u64) -> u64 {
    match input.u8() % 4 {
        0 => input.number(),
        more => near.saturating_add(u64::from(more) - 1),
    }
}

/// A turn: mostly one of three.
pub fn epoch(input: &mut Input<'_>) -> Epoch {
    match input.u8() {
        248..=255 => Epoch { counter: input.number(), writer: input.number() },
        240..=247 => Epoch { counter: u64::MAX - u64::from(input.u8() % 2), writer: u64::MAX },
        few => Epoch { counter: u64::from(few % 3) + 1, writer: 5 },
    }
}

fn position(input: &mut Input<'_>, near: u64) -> Position {
    Position { epoch: epoch(input), number: number(input, near) }
}

/// A frame with a body, as bytes. `near`: about which number it is.
pub fn message(input: &mut Input<'_>, near: u64) -> Vec<u8> {
    let kind = KINDS[usize::from(input.u8()) % KINDS.len()];
    message_of(input, kind, near)
}

/// The same of this kind.
pub fn message_of(input: &mut Input<'_>, kind: Kind, near: u64) -> Vec<u8> {
    let uuid = log(input);
    let (this, that) = (number(input, near), number(input, near.saturating_sub(1)));
    let frame = Frame::new(kind, low_half(uuid), epoch(input)).numbered(this, that);
    let frame = frame.with_code(if input.u8() < 32 { u32::from(input.u16()) } else { 0 });
    let mut body = match input.u8() {
        254 => Vec::new(),
        255 => input.bytes(64).to_vec(),
        _ => body(input, kind, &frame, uuid),
    };
    body.truncate(BODY as usize);
    let said = match input.u8() {
        254 => usize::from(input.u16()),
        255 => input.number() as usize,
        _ => body.len(),
    };
    let mut line = frame.followed_by(said).seal();
    if input.u8() == 255 {
        let at = usize::from(input.u8()) % LINE;
        line[at] ^= input.u8();
    }
    [&line[..], &body].concat()
}

fn body(input: &mut Input<'_>, kind: Kind, frame: &Frame, uuid: [u8; 16]) -> Vec<u8> {
    match kind {
        Kind::Hello => greeting(input, uuid).as_bytes().to_vec(),
        Kind::Promise => match input.u8() % 4 {
            0 => Vec::new(),
            _ => terms(input),
        },
        Kind::Adopt => position(input, frame.number).as_bytes().to_vec(),
        Kind::Batch => batch(input, frame),
        Kind::Piece => vec![input.u8(); usize::from(input.u16()) % BODY as usize],
        Kind::Welcome | Kind::Promised => {
            let mut bytes = state(input, frame.number).as_bytes().to_vec();
            bytes.extend(terms(input));
            bytes
        }
        Kind::Refused => input.bytes(40).to_vec(),
        Kind::Reported => format!(r#"{{"id":"{}","logs":[{{}}]}}"#, input.u8()).into_bytes(),
        _ => Vec::new(),
    }
}

fn greeting(input: &mut Input<'_>, log: [u8; 16]) -> Greeting {
    let image = match input.u8() {
        254 => input.number(),
        255 => u64::MAX - 4095,
        few => IMAGE << (few % 3),
    };
    let version = if input.u8() == 255 { u32::from(input.u16()) } else { KEEPER_VERSION };
    let keeper = if input.u8() == 255 { [9; 16] } else { [0; 16] };
    Greeting { version, make: u32::from(!input.u8().is_multiple_of(4)), log, image, keeper }
}

/// What a writer says with the promise that it asks for, as JSON.
fn terms(input: &mut Input<'_>) -> Vec<u8> {
    let roster = roster(input);
    let flags = input.u8();
    let host = if flags & 1 == 0 { "db1" } else { "d\n" };
    let holder = Holder { machine: "m".into(), host: host.into(), since: 0 };
    let found = (flags & 4 != 0).then(|| epoch(input)).map(|epoch| (epoch.counter, epoch.writer));
    let terms = Terms { roster, holder: (flags & 2 != 0).then_some(holder), found };
    serde_json::to_vec(&terms).unwrap_or_default()
}

fn roster(input: &mut Input<'_>) -> Roster {
    let count = input.u8();
    let long = if count == 255 { 2000 } else { 4 };
    let member = |i: u8| Member { id: "a".repeat(long), address: format!("k{i}:1"), witness: i == 2 };
    let members = (0..count % 12).map(member).collect();
    Roster { acks: usize::from(input.u8() % 4), members, mode: Mode::default() }
}

/// A keeper's state.
pub fn state(input: &mut Input<'_>, near: u64) -> State {
    let mut state = State::new_zeroed();
    (state.promised, state.position) = (epoch(input), position(input, near));
    (state.hardened, state.image) = (number(input, near), IMAGE);
    (state.flags, state.version) = (u32::from(input.u8()) % 8, KEEPER_VERSION);
    state
}

/// A refusal, or what is none.
pub fn refusal(input: &mut Input<'_>) -> u32 {
    match input.u8() % 12 {
        0 => u32::from(input.u16()),
        11 => Refusal::Fenced as u32,
        word => u32::from(word),
    }
}

/// A batch whose checksums are right, whatever its table says.
fn batch(input: &mut Input<'_>, frame: &Frame) -> Vec<u8> {
    let extents = usize::from(input.u8() % 5);
    let mut table = Vec::new();
    let mut data = Vec::new();
    for _ in 0..extents {
        let (at, lines) = (input.number(), usize::from(input.u8() % 4));
        data.extend(vec![input.u8(); lines * LINE]);
        let len = if input.u8() == 255 { input.number() as u32 } else { (lines * LINE) as u32 };
        // Whole lines, as a rule.
        let at = if input.u8() == 255 { at } else { at / LINE as u64 * LINE as u64 };
        table.extend([&at.to_le_bytes()[..], &len.to_le_bytes(), &[0; 4]].concat());
    }
    table.resize(table.len().next_multiple_of(LINE), 0);
    let data_said = if input.u8() == 255 { input.number() as u32 } else { data.len() as u32 };
    let extents_said = if input.u8() == 255 { input.number() as u32 } else { extents as u32 };
    let body = [data, table].concat();
    let mut sum = Striped::new();
    sum.update(&body);
    let mut header = Vec::new();
    header.extend(b"SWbt");
    header.extend(extents_said.to_le_bytes());
    for word in [frame.number, frame.previous, 0, frame.log] {
        header.extend(word.to_le_bytes());
    }
    header.extend(data_said.to_le_bytes());
    header.extend([0; 12]);
    header.extend(sum.finish().to_le_bytes());
    header.extend(crc32c(&header).to_le_bytes());
    [header, body].concat()
}

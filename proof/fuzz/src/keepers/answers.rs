//! A writer that is answered anything: what asks a keeper one thing after the other, and what has several of them write.
//!
//! What must hold: all of it ends, in an error or not; pieces of an image come in order and lie apart; a batch counts only
//! if as many keepers as must have said so, in words that mean it. In: answers, cut into pieces anywhere.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use seawall_keeper::meta::{Member, Mode, Roster};
use seawall_keeper::peer::Peer;
use seawall_keeper::quorum::Quorum;
use seawall_keeper::transport::Transport;
use seawall_keeper::turn;
use seawall_keeper::uuid::low_half;
use seawall_keeper::wire::Wire;
use seawall_keeper::writer::{Source, Writer};
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Kind, Position, State, ack};

use super::build::{IMAGE, LOGS, message, message_of, refusal, state};
use crate::input::Input;

const PATIENCE: Duration = Duration::from_secs(20);
const KEEPERS: usize = 3;
const ACKS: usize = 2;
const STEPS: usize = 60;
/// The writer's turn.
const TURN: Epoch = Epoch { counter: 3, writer: 5 };

static LISTENER: LazyLock<TcpListener> = LazyLock::new(|| TcpListener::bind("127.0.0.1:0").expect("a port"));

/// The target.
pub fn target(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    if input.u8().is_multiple_of(2) { peer(&mut input) } else { writer(&mut input) }
}

/// One that asks, and hears what was prepared.
fn peer(input: &mut Input<'_>) {
    let listener = &*LISTENER;
    let address = listener.local_addr().expect("bound").to_string();
    let mut peer = Peer::connect(&address, &Transport::Near, PATIENCE).expect("connected");
    let (mut keeper, _) = listener.accept().expect("it is there");
    let asks: Vec<u8> = (0..usize::from(input.u8() % 8)).map(|_| input.u8() % 9).collect();
    let mut answers = Vec::new();
    for ask in &asks {
        let kinds = match ask {
            0 => vec![Kind::Welcome],
            1 => vec![Kind::Promised],
            2 => (0..input.u8() % 6).map(|_| Kind::Piece).chain([Kind::Complete]).collect(),
            3 => vec![Kind::Reported],
            _ => vec![Kind::Ack],
        };
        for kind in kinds {
            match input.u8() {
                255 => answers.extend(message(input, 3)),
                _ => answers.extend(message_of(input, kind, 3)),
            }
        }
    }
    keeper.write_all(&answers).expect("it fits into the socket's memory");
    keeper.shutdown(Shutdown::Write).expect("ended");
    for ask in asks {
        // An error is as good as any answer.
        let _ = match ask {
            0 => peer.greet(LOGS[0], Some(IMAGE), None).map(|(state, _)| sane(&state)),
            1 => peer.promise(TURN, None).map(|(state, _)| sane(&state)),
            2 => fetch(&mut peer),
            3 => peer.report().map(drop),
            4 => peer.adopt(Position::default(), 1),
            5 => peer.begin(),
            6 => peer.complete(1),
            7 => peer.batch(2, 1, &[0; LINE]).map(drop),
            _ => peer.forget(),
        };
    }
    drop(peer);
    drain(keeper);
}

fn drain(mut keeper: TcpStream) {
    keeper.set_read_timeout(Some(PATIENCE)).expect("set");
    let _ = keeper.read_to_end(&mut Vec::new());
}

/// Numbers with which a new turn can be reckoned.
fn sane(state: &State) {
    let epoch = turn::next_epoch([*state].into_iter(), 1);
    assert!(epoch > state.promised);
    let answers = [Some(*state)];
    if let Ok((head, _)) = turn::choose(Quorum { keepers: 1, acks: 1 }, epoch, &answers) {
        assert!(head.begun > state.position.number);
    }
}

fn fetch(peer: &mut Peer) -> Result<(), seawall_keeper::peer::PeerError> {
    let mut next = 0;
    peer.fetch(|at, bytes| {
        assert!(at >= next && !bytes.is_empty(), "a piece at {at} after {next}");
        next = at.saturating_add(bytes.len() as u64);
    })
}

/// A keeper's connection. What it heard that confirms a batch is counted apart from the writer's own count.
#[derive(Clone, Default)]
struct Line(Rc<Ends>);

#[derive(Default)]
struct Ends {
    coming: RefCell<VecDeque<u8>>,
    heard: RefCell<Vec<u8>>,
    /// The writer has nothing to do with what comes after that.
    is_over: Cell<bool>,
    /// How many bytes a read gives.
    piece: Cell<usize>,
}

impl Line {
    /// The newest batch that this keeper confirmed in a whole frame that says so.
    fn confirmed(&self) -> u64 {
        let heard = self.0.heard.borrow();
        let frames = heard.chunks_exact(LINE).map_while(|line| Frame::parse(line.try_into().ok()?));
        let acks = frames.take_while(|frame| frame.kind() == Some(Kind::Ack));
        let mine = acks.filter(|frame| frame.epoch == TURN && frame.code & ack::JOINING == 0);
        mine.map(|frame| frame.number).max().unwrap_or(0)
    }
}

impl Wire for Line {
    fn send_all(&self, _: &[u8]) -> io::Result<()> {
        if self.0.is_over.get() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut coming = self.0.coming.borrow_mut();
        let len = bytes.len().min(coming.len()).min(self.0.piece.get().max(1));
        if len == 0 {
            let over = self.0.is_over.get();
            return if over { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        bytes.iter_mut().zip(coming.drain(..len)).for_each(|(to, from)| *to = from);
        self.0.heard.borrow_mut().extend(&bytes[..len]);
        Ok(len)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// An image of one stretch.
struct Stretch;

impl Source for Stretch {
    fn stretch(&self, from: u64, bytes: &mut Vec<u8>) -> Option<u64> {
        bytes.clear();
        bytes.extend([5; 4096]);
        (from < IMAGE).then_some(from)
    }
}

/// One that has several keepers write.
fn writer(input: &mut Input<'_>) {
    let member = |i: usize| Member { id: format!("{i}"), address: format!("k{i}:1"), witness: i == 2 };
    let roster = Roster { acks: ACKS, members: (0..KEEPERS).map(member).collect(), mode: Mode::default() };
    let base = Position { epoch: Epoch { counter: 1, writer: 5 }, number: 6 };
    let answers = [Some(begun(base)), Some(begun(base)), None];
    let (head, _) = turn::choose(roster.quorum(), TURN, &answers).expect("two of three");
    let mut writer: Writer<Line> = Writer::new(low_half(LOGS[0]), head, roster);
    let mut lines: [Option<(Line, State)>; KEEPERS] = Default::default();
    let (mut sent, mut is_under_way) = (head.last, true);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let (what, which) = (input.u8(), usize::from(input.u8()) % KEEPERS);
        match what % 6 {
            0 => {
                let (line, state) = (Line::default(), state(input, sent));
                line.0.piece.set(usize::from(input.u8() % 80));
                writer.meets(which, line.clone(), state);
                lines[which] = Some((line, state));
            }
            1 if !is_under_way => {
                sent += 1;
                is_under_way = true;
                writer.send(sent, writer.head().last, vec![0; LINE]);
            }
            2 => writer.bring(&Stretch, usize::from(input.u16())),
            3 => {
                if let Some((line, _)) = &lines[which] {
                    line.0.is_over.set(true);
                }
            }
            _ => {
                let answer = answer(input, sent);
                if let Some((line, _)) = &lines[which] {
                    line.0.coming.borrow_mut().extend(answer);
                }
            }
        }
        if is_under_way && writer.hear(Duration::ZERO) {
            is_under_way = false;
            let said = |(line, state): &&(Line, State)| {
                let had = state.is_kept() && state.position.epoch == TURN && state.position.number >= sent;
                had || line.confirmed() >= sent
            };
            let confirmed = lines.iter().flatten().filter(said).count();
            assert!(confirmed >= ACKS, "batch {sent} counts, and {confirmed} keepers confirmed it");
        }
        writer.give_up_silent(std::time::Instant::now());
        let _ = (writer.fenced(), writer.may_become_enough(), writer.too_few(), writer.report());
    }
}

/// A keeper's state that may vote, with a copy that is there.
fn begun(position: Position) -> State {
    let mut state: State = zerocopy::FromZeros::new_zeroed();
    (state.promised, state.position, state.flags) = (TURN, position, seawall_wire::keeper::state::KEPT);
    state
}

/// An answer as keepers give it to a batch, or something else.
fn answer(input: &mut Input<'_>, sent: u64) -> Vec<u8> {
    match input.u8() {
        255 => message(input, sent),
        254 => input.bytes(100).to_vec(),
        240..=253 => Frame::new(Kind::Refused, 0, TURN).with_code(refusal(input)).seal().to_vec(),
        _ => {
            let epoch = if input.u8() < 16 { super::build::epoch(input) } else { TURN };
            let number = if input.u8() < 16 { input.number() } else { sent - u64::from(input.u8() % 2) };
            let code = if input.u8() < 32 { u32::from(input.u8()) } else { 0 };
            let frame = Frame::new(Kind::Ack, low_half(LOGS[0]), epoch).numbered(number, 0);
            frame.with_code(code).seal().to_vec()
        }
    }
}

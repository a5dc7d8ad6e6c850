//! A log that keepers keep is opened.
//!
//! | image of this boot | what is done |
//! |---|---|
//! | found | the turn goes on: keepers that have promised it are asked again; one that promised a newer one ends it |
//! | found, and this host went on without its keepers | so it does, until enough are reached |
//! | none | a new turn: whoever wrote before is fenced, and the newest copy is fetched |

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use seawall_core::journal::{Copies, set_alone};
use seawall_core::pool::replicated::InMemory;
use seawall_core::pool::{self, MEMORY, Pool, PoolError};
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::meta::Mode;
use seawall_keeper::peer::PeerError;
use seawall_keeper::plan::Head;
use seawall_keeper::turn::{self, Claim, Promised};
use seawall_keeper::uuid::low_half;
use seawall_keeper::writer::{WriteError, Writer};
use seawall_media::Region;
use seawall_wire::desk::alone;

use super::error::KeptError;
use super::looking::put;
use super::mark::Mark;
use crate::parts::kept::{Course, Image, Kept};
use crate::parts::survives;

/// A pool, and its keepers, if it has any.
pub(crate) type Opened = (Pool, Option<Arc<Kept>>);

/// How long keepers may take to get an image at a start.
const BROUGHT: Duration = Duration::from_secs(60);

/// Opens a pool, whatever it lies on.
///
/// # Errors
/// [`KeptError`].
pub(crate) fn open(path: &Path) -> Result<Opened, KeptError> {
    if !Descriptor::is_at(path) {
        return Ok((pool::open(path)?, None));
    }
    let (file, said) = locked(path)?;
    if Mark::of(said.uuid()).is_set() {
        return Err(KeptError::CutShort);
    }
    match InMemory::existing(Path::new(MEMORY), said.uuid(), said.image)? {
        Some(image) if image.is_alone() => go_on_alone(path, file, &said, image),
        Some(image) => go_on(path, file, &said, image),
        None => begin(path, file, &said, Claim::Start),
    }
}

/// Opens a log that keepers keep, whoever has it. True if it was this host's already, and its image of this boot is there.
///
/// # Errors
/// [`KeptError`]. Once a former writer may be fenced, an error leaves that as it is.
pub(crate) fn take_over(path: &Path) -> Result<(Opened, bool), KeptError> {
    let (mut file, said) = locked(path)?;
    let mark = Mark::of(said.uuid());
    // What a takeover that was cut short left is no image of this boot, whatever it says of itself.
    if !mark.is_set()
        && let Some(image) = InMemory::existing(Path::new(MEMORY), said.uuid(), said.image)?
    {
        if image.is_alone() {
            return Ok((go_on_alone(path, file, &said, image)?, true));
        }
        match go_on(path, file, &said, image) {
            Err(KeptError::TakenOver(_)) => (file, _) = locked(path)?,
            opened => return Ok((opened?, true)),
        }
    }
    mark.set().map_err(|error| KeptError::File { path: mark.path().into(), error })?;
    Ok((begin(path, file, &said, Claim::TakeOver)?, false))
}

/// The pool's file, locked, and what it says.
fn locked(path: &Path) -> Result<(File, Descriptor), KeptError> {
    let failed = |error| KeptError::File { path: path.into(), error };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| PoolError::InUse(path.into()))?;
    let said = Descriptor::read(&file).map_err(failed)?;
    Ok((file, said))
}

/// The image is of this boot, and nobody was asked for its word since this host went on alone.
fn go_on_alone(path: &Path, file: File, said: &Descriptor, image: InMemory) -> Result<Opened, KeptError> {
    let writer = Writer::new(low_half(said.uuid()), head_of(&image), said.roster.clone());
    opened((path, file), said, image, (writer, Course::alone()), Claim::Start)
}

/// Where the log of an image of this boot is.
fn head_of(image: &InMemory) -> Head {
    let (epoch, base, begun) = image.desk().turn();
    Head { epoch, base, begun, last: image.desk().newest().0.number() }
}

/// The image is of this boot: its turn goes on. Without enough keepers too, where that was chosen: whoever needs one of its
/// batches waits, or has this host go on alone.
fn go_on(path: &Path, file: File, said: &Descriptor, image: InMemory) -> Result<Opened, KeptError> {
    let head = head_of(&image);
    let epoch = head.epoch;
    let reached = turn::reach(said.uuid(), &said.roster, &said.transport).into_iter();
    let promised =
        reached.map(|reached| reached.and_then(|(peer, _)| turn::promise(peer, epoch, &said.roster)));
    let is_enough =
        if said.roster.mode == Mode::Availability { Enough::MayBeMissed } else { Enough::IsNeeded };
    let opened = finish((path, file), said, image, (head, promised.collect()), (Claim::Start, is_enough));
    opened.map_err(|error| match error {
        KeptError::Write(why @ WriteError::Fenced(_)) => KeptError::TakenOver(why),
        error => error,
    })
}

/// A new turn, with the newest copy.
fn begin(path: &Path, file: File, said: &Descriptor, claim: Claim) -> Result<Opened, KeptError> {
    let mut begun = turn::begin(said.uuid(), &said.roster, &said.transport, claim)?;
    let head = begun.head;
    let image = InMemory::make(Path::new(MEMORY), said.uuid(), said.image, |region| {
        fetch(region, said.image, &mut begun.keepers, &begun.newest)?;
        Ok::<_, KeptError>((head.epoch, head.base, head.begun))
    })?;
    finish((path, file), said, image, (head, begun.keepers), (claim, Enough::IsNeeded))
}

/// Brings the newest copy, from the first keeper that can give it.
fn fetch(
    region: &Region,
    image: u64,
    keepers: &mut [Result<Promised, PeerError>],
    newest: &[usize],
) -> Result<(), KeptError> {
    let mut last = None;
    for keeper in newest {
        let Ok(promised) = &mut keepers[*keeper] else { continue };
        region.zero(0, image as usize);
        let fetched = promised.peer.fetch(|at, bytes| put(region, image, at, bytes));
        match fetched {
            Ok(()) => return Ok(()),
            Err(error) => {
                // What it still sends of its copy would be taken for answers.
                let (address, why) =
                    (promised.peer.address().to_owned(), io::Error::other("it did not send its copy"));
                keepers[*keeper] = Err(PeerError::Lost { address, error: why });
                last = Some(error);
            }
        }
    }
    Err(last.map_or(KeptError::NoData, KeptError::Keeper))
}

/// Whether a log is opened that too few keepers have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enough {
    IsNeeded,
    MayBeMissed,
}

/// Enough keepers have what the image has, before anything else happens.
fn finish(
    (path, file): (&Path, File),
    said: &Descriptor,
    image: InMemory,
    (head, reached): (Head, Vec<Result<Promised, PeerError>>),
    (claim, enough): (Claim, Enough),
) -> Result<Opened, KeptError> {
    let mut writer = Writer::new(low_half(said.uuid()), head, said.roster.clone());
    for (keeper, reached) in reached.into_iter().enumerate() {
        writer.arrives(keeper, reached);
    }
    let failed = |error| KeptError::File { path: path.into(), error };
    let (begin, standing) = (Instant::now(), image.standing().map_err(|e| failed(e.into()))?);
    while !writer.hear(Duration::from_millis(20)) {
        writer.bring(&Image(&standing), usize::MAX);
        writer.give_up_silent(Instant::now());
        let late = || (begin.elapsed() > BROUGHT || !writer.may_become_enough()).then(|| writer.too_few());
        match writer.fenced().or_else(late) {
            Some(WriteError::TooFew { .. }) if enough == Enough::MayBeMissed => {
                // It decides whether it goes on alone as soon as it knows its files.
                set_alone(image.desk(), alone::GOES);
                return opened((path, file), said, image, (writer, Course::alone()), claim);
            }
            Some(error) => return Err(error.into()),
            None => {}
        }
    }
    opened((path, file), said, image, (writer, Course::Together), claim)
}

/// The pool, with its keepers.
fn opened(
    (path, file): (&Path, File),
    said: &Descriptor,
    image: InMemory,
    (writer, course): (Writer, Course),
    claim: Claim,
) -> Result<Opened, KeptError> {
    let failed = |error| KeptError::File { path: path.into(), error };
    let because = survives::with_all(writer.roster(), &writer.report());
    let kept = Kept::start(said, writer, course, image.desk()).map_err(failed)?;
    let pool =
        image.open((path, file), Arc::clone(&kept) as Arc<dyn Copies>, because, claim == Claim::TakeOver)?;
    Ok((pool, Some(kept)))
}

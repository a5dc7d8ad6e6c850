//! The steps of a [`Course`]: a host goes on alone, begins a new turn, and comes back to its keepers.

use std::time::Duration;

use seawall_core::journal::{Standing, set_alone};
use seawall_keeper::meta::Mode;
use seawall_keeper::plan::Head;
use seawall_keeper::turn::{self, Begun, TurnError};
use seawall_keeper::uuid::low_half;
use seawall_keeper::writer::{WriteError, Writer};
use seawall_media::locks::lock;
use seawall_wire::desk::{Desk, alone};

use super::Kept;
use super::course::{Course, Due};
use super::state::State;

/// How long too few are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Kept {
    /// True while only the disk counts.
    pub fn is_alone(&self) -> bool {
        lock(&self.state).course.is_alone()
    }

    /// What is to be done.
    pub fn due(&self) -> Due {
        let mut state = lock(&self.state);
        let (is_short, is_over) = (state.is_short(), state.over.is_some());
        match &state.course {
            _ if is_over => Due::Nothing,
            Course::Together
                if state.writer.roster().mode == Mode::Availability && is_short && state.is_waited_for =>
            {
                if state.short.now() > Some(PATIENCE) {
                    Due::GoAlone
                } else {
                    Due::Nothing
                }
            }
            Course::Together => Due::Nothing,
            Course::Alone { begun: None } => Due::Begin,
            Course::Alone { .. } | Course::Returning => Due::Wait,
        }
    }

    /// True if enough count again.
    pub fn is_enough(&self) -> bool {
        !lock(&self.state).is_short()
    }

    /// Everything that was acknowledged is on the disk, and marked: from now on only that counts.
    pub fn goes_alone(&self, desk: Desk<'_>) {
        let mut state = lock(&self.state);
        state.goes(Course::alone());
        state.writer.stops();
        state.arrivals.clear();
        state.publish(desk);
        set_alone(desk, alone::IS);
        drop(state);
        self.arrived.notify_all();
    }

    /// It does not, or not yet: what enough keepers have counts.
    pub fn goes_on_together(&self) {
        lock(&self.state).goes(Course::Together);
    }

    /// Reaches enough keepers for a new turn, and begins it. No file is in the log. True if it did, which the log learns of
    /// when it stands next.
    pub fn begin(&self) -> bool {
        let roster = lock(&self.state).writer.roster().clone();
        let found = turn::begin_anew(self.log, &roster, &self.transport);
        let mut state = lock(&self.state);
        match found {
            Ok(found) => {
                if let Course::Alone { begun } = &mut state.course {
                    *begun = Some(Box::new(found));
                }
                true
            }
            Err(TurnError::Elsewhere { holder, turn }) => {
                state.end(&WriteError::Fenced(format!("{holder} has it")));
                state.taken_by = Some((Some(holder), turn));
                false
            }
            Err(error @ TurnError::Fenced(_)) => {
                state.end(&WriteError::Fenced(error.to_string()));
                false
            }
            Err(TurnError::Unknown { .. } | TurnError::Random(_)) => false,
        }
    }
}

impl State {
    /// From now on it is there.
    pub(super) fn goes(&mut self, course: Course) {
        self.alone.note(course.is_alone());
        self.course = course;
    }

    /// The log stands: a turn that was begun is its own, or enough have copies of it and count again.
    pub(super) fn comes_back(&mut self, log: [u8; 16], standing: &Standing<'_>) {
        let desk = standing.desk();
        match &mut self.course {
            Course::Alone { begun } => {
                let Some(begun) = begun.take() else { return };
                self.goes(Course::Returning);
                self.begins(low_half(log), *begun, standing.last, desk);
            }
            Course::Returning if self.writer.counting() >= self.writer.quorum().acks => {
                let acknowledged = self.writer.hear(Duration::ZERO);
                if acknowledged {
                    self.goes(Course::Together);
                    set_alone(desk, alone::NO);
                }
            }
            _ => {}
        }
    }

    /// The log's turn is this one. Nobody has a copy of it yet, whatever else it has.
    fn begins(&mut self, log: u64, begun: Begun, last: u64, desk: Desk<'_>) {
        let head = Head::anew(begun.head.epoch, last);
        desk.set_turn(head.epoch, head.base, head.begun);
        self.writer = Writer::new(log, head, self.writer.roster().clone());
        self.arrivals = begun.keepers.into_iter().enumerate().collect();
        self.settle(desk);
    }
}

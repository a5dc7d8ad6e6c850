//! Logical threads: each has its own stack and runs until it yields, all on one thread of the system.
//!
//! So a schedule is a sequence of numbers from a seed, and every interleaving can be repeated. Made of
//! makecontext(3) and swapcontext(3); the only `unsafe` of the simulator.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const STACK: usize = 1 << 20;
const GUARD: usize = 4096;

/// Unwound out of a logical thread: its process was killed here.
pub struct Killed;

/// How a logical thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It yielded.
    Ready,
    /// Its body returned.
    Ended,
    /// [`Killed`] went through it.
    Killed,
    /// Any other panic went through it: a bug in what it ran.
    Panicked,
}

type Body = Box<dyn FnOnce()>;

/// A logical thread.
pub struct Fiber {
    shared: Box<Shared>,
    stack: Stack,
}

struct Shared {
    own: RefCell<Context>,
    body: RefCell<Option<Body>>,
    state: Cell<State>,
    text: RefCell<String>,
}

struct Context(Box<libc::ucontext_t>);

struct Stack(*mut libc::c_void);

thread_local! {
    static SCHEDULER: RefCell<Option<Context>> = const { RefCell::new(None) };
    static CURRENT: Cell<*const Shared> = const { Cell::new(std::ptr::null()) };
}

impl Context {
    fn new() -> Self {
        // SAFETY: a `ucontext_t` is plain data; it is filled by getcontext or swapcontext before it is used.
        Self(Box::new(unsafe { std::mem::zeroed() }))
    }
}

impl Stack {
    fn new() -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping aliases nothing; its lowest page then becomes the guard.
        let at = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(std::ptr::null_mut(), STACK, prot, flags, -1, 0);
            assert!(at != libc::MAP_FAILED, "no memory for a stack");
            libc::mprotect(at, GUARD, libc::PROT_NONE);
            at
        };
        Self(at)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: mapped by `new` with this length; the fiber on it has ended (`Fiber::drop`).
            unsafe { libc::munmap(self.0, STACK) };
        }
    }
}

extern "C" fn enter() {
    let shared = CURRENT.get();
    // SAFETY: `resume` set it to the fiber being entered, which it borrows for as long as the fiber runs.
    let shared = unsafe { &*shared };
    let body = shared.body.borrow_mut().take();
    let done = catch_unwind(AssertUnwindSafe(|| {
        if let Some(body) = body {
            body();
        }
    }));
    shared.state.set(match done {
        Ok(()) => State::Ended,
        Err(cause) if cause.is::<Killed>() => State::Killed,
        Err(cause) => {
            let text = cause.downcast_ref::<String>().cloned();
            let text = text.or_else(|| cause.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            *shared.text.borrow_mut() = text.unwrap_or_default();
            State::Panicked
        }
    });
    leave(shared);
    unreachable!("an ended fiber was resumed");
}

/// Back to the scheduler.
fn leave(shared: &Shared) {
    let own = shared.own.as_ptr();
    let scheduler = SCHEDULER.with(|s| s.borrow().as_ref().map(|c| &raw const *c.0));
    let Some(scheduler) = scheduler else { return };
    // SAFETY: the scheduler's context was saved by the swap that entered this fiber, on a stack that is
    // alive because that call has not returned; `own` lives in the fiber's box.
    unsafe { libc::swapcontext(&raw mut *(*own).0, scheduler) };
}

impl Fiber {
    /// A logical thread that has not begun.
    pub fn new(body: impl FnOnce() + 'static) -> Self {
        let stack = Stack::new();
        let shared = Box::new(Shared {
            own: RefCell::new(Context::new()),
            body: RefCell::new(Some(Box::new(body))),
            state: Cell::new(State::Ready),
            text: RefCell::default(),
        });
        {
            let mut own = shared.own.borrow_mut();
            // SAFETY: getcontext fills the context; the stack outlives it (both are the fiber's); `enter`
            // has the type makecontext calls with no arguments, and never returns.
            unsafe {
                libc::getcontext(&raw mut *own.0);
                own.0.uc_stack.ss_sp = stack.0.cast::<u8>().add(GUARD).cast();
                own.0.uc_stack.ss_size = STACK - GUARD;
                own.0.uc_link = std::ptr::null_mut();
                libc::makecontext(&raw mut *own.0, enter, 0);
            }
        }
        Self { shared, stack }
    }

    /// Runs it until it yields or ends.
    pub fn resume(&self) -> State {
        assert!(CURRENT.get().is_null(), "fibers do not nest");
        if self.state() != State::Ready {
            return self.state();
        }
        SCHEDULER.with(|s| {
            s.borrow_mut().get_or_insert_with(Context::new);
        });
        let scheduler = SCHEDULER.with(|s| s.borrow_mut().as_mut().map(|c| &raw mut *c.0));
        CURRENT.set(&raw const *self.shared);
        if let Some(scheduler) = scheduler {
            // SAFETY: both contexts live in boxes that stay where they are; the fiber's was made or saved.
            unsafe { libc::swapcontext(scheduler, &raw const *(*self.shared.own.as_ptr()).0) };
        }
        CURRENT.set(std::ptr::null());
        self.state()
    }

    /// How it stands.
    pub fn state(&self) -> State {
        self.shared.state.get()
    }

    /// What it panicked with.
    pub fn panic_text(&self) -> String {
        self.shared.text.borrow().clone()
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        // What is alive on an unfinished stack is leaked, never unwound behind its back.
        if self.state() == State::Ready && self.shared.body.borrow().is_none() {
            std::mem::forget(std::mem::replace(&mut self.stack, Stack(std::ptr::null_mut())));
        }
    }
}

/// True inside a logical thread.
pub fn inside() -> bool {
    !CURRENT.get().is_null()
}

/// Lets the scheduler choose who runs next. Outside a logical thread: nothing.
pub fn yield_now() {
    let current = CURRENT.get();
    if !current.is_null() {
        // SAFETY: as in `enter`.
        leave(unsafe { &*current });
    }
}

/// Tears the current logical thread out of whatever it does.
pub fn kill() -> ! {
    resume_unwind(Box::new(Killed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn fibers_take_turns_end_and_are_killed() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let make = |name: &'static str, die: bool| {
            let log = Rc::clone(&log);
            Fiber::new(move || {
                for i in 0..3 {
                    log.borrow_mut().push(format!("{name}{i}"));
                    yield_now();
                    if die && i == 1 {
                        kill();
                    }
                }
            })
        };
        let (a, b) = (make("a", false), make("b", true));
        while a.resume() == State::Ready || b.resume() == State::Ready {
            b.resume();
        }
        assert_eq!((a.state(), b.state()), (State::Ended, State::Killed));
        assert_eq!(log.borrow().join(" "), "a0 b0 a1 b1 a2");
    }
}

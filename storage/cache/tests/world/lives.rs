//! The lives of a zone: processes use it until they end, are killed, or the power is cut; then it is opened again.

use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::shared::{Cache, CachedFile, Lookup, Offered, OperationOwner};
use seawall_sim::fiber::{Fiber, State};

use super::process::{Process, fill_half};
use super::{BLOCK, BLOCKS, FILES, LATE, NOT_ENTERED, PROCESSES, World, identity, store};

/// Some processes and a reaper, until all have ended or were killed; then what the dead left must be gone. Or until
/// the power is cut.
pub fn live(world: &Rc<World>, is_cut: bool) {
    let cache = world.cache();
    // The daemon's thread lives on: what becomes of those that nobody watches a test of its own says.
    cache.watcher().store(1, SeqCst);
    let entered = (0..LATE).map(|file| cache.enter(&identity(file)).expect("room for a file").file);
    *world.files.borrow_mut() = entered.chain([NOT_ENTERED]).collect();
    for (file, of) in world.files.borrow().iter().enumerate().take(LATE) {
        cache.note(*of, &identity(file), i64::MAX);
    }
    audit(world, &cache);
    world.dead.borrow_mut().fill(false);
    let mut threads: Vec<(usize, Fiber)> =
        (1..=PROCESSES).map(|number| (number, process(world, number))).collect();
    let mut left = if is_cut { world.rng.below(6000) / world.switch } else { u64::MAX };
    while !threads.is_empty() && left > 0 && world.broken.borrow().is_none() {
        left -= 1;
        let i = world.rng.below(threads.len() as u64) as usize;
        let number = threads[i].0;
        world.running.set(number);
        world.living.set(threads.len());
        match threads[i].1.resume() {
            State::Ready => {}
            State::Ended => _ = threads.swap_remove(i),
            State::Killed => {
                threads.swap_remove(i);
                world.dead.borrow_mut()[number] = true;
                world.disks.borrow_mut().iter_mut().for_each(|disk| disk.died(number));
                world.count(|seen| seen.kills += 1);
            }
            State::Panicked => world.violate(format!("a panic: {}", threads.swap_remove(i).1.panic_text())),
        }
    }
    if is_cut {
        for (number, thread) in threads {
            world.running.set(number);
            world.fuses.borrow_mut()[number] = Some(0);
            thread.resume();
        }
        return world.running.set(0);
    }
    world.running.set(0);
    if world.broken.borrow().is_none() {
        tidy(world, &cache);
    }
}

/// All that was kept is what the disk holds.
fn audit(world: &Rc<World>, cache: &Rc<Cache>) {
    let before = world.seen.get().hits;
    let reader = Process::new(Rc::clone(world), Rc::clone(cache), 0);
    for (file, block) in (0..FILES).flat_map(|file| (0..BLOCKS).map(move |block| (file, block))) {
        reader.look(file, block);
    }
    world.count(|seen| seen.audited += seen.hits - before);
}

fn process(world: &Rc<World>, number: usize) -> Fiber {
    let is_mortal = number > 1 && !world.rng.one_in(4);
    world.fuses.borrow_mut()[number] = is_mortal.then(|| world.rng.below(3000));
    let (world, cache) = (Rc::clone(world), world.cache());
    if number == 1 {
        return Fiber::new(move || {
            while world.living.get() > 1 {
                let reaped = cache.reap(|owner| world.is_dead(owner));
                world.count(|seen| seen.reaped += u64::from(reaped.operations));
                if world.files.borrow()[LATE] == NOT_ENTERED && world.rng.one_in(4) {
                    world.enter_late(&cache);
                }
                if world.rng.one_in(8) {
                    world.choose_policy(&cache);
                }
                if world.rng.one_in(16) {
                    world.resize(&cache);
                }
                if world.rng.one_in(2) {
                    let brought = store::bring_all(&cache, OperationOwner::new(1, 1));
                    world.count(|seen| seen.admitted += brought);
                }
                (0..world.rng.below(30)).for_each(|_| world.wait());
            }
        });
    }
    Fiber::new(move || Process::new(world, cache, number).run())
}

/// Nobody is left: after one more look by the reaper every block can be filled again and is then there.
fn tidy(world: &Rc<World>, cache: &Cache) {
    world.dead.borrow_mut().fill(true);
    cache.reap(|owner| world.is_dead(owner));
    store::bring_all(cache, OperationOwner::new(1, 1));
    if cache.failures() != 0 {
        return world.violate(format!("{} checksums failed, and nothing was damaged", cache.failures()));
    }
    if cache.under_way() != 0 {
        return world.violate(format!("{} operations are left", cache.under_way()));
    }
    for (file, of) in world.files.borrow().iter().enumerate().filter(|(_, of)| cache.is_served(**of)) {
        for block in 0..2 {
            let is_there = (0..200).any(|_| filled(world, cache, file, *of, block));
            if !is_there {
                return world.violate(format!("file {file}, block {block} cannot be filled any more"));
            }
        }
    }
}

fn filled(world: &World, cache: &Cache, file: usize, of: CachedFile, block: usize) -> bool {
    let mut buffer = vec![0; BLOCK];
    let Lookup::Miss(token) = cache.look_up(of, block as u32, &mut buffer) else { return true };
    for half in 0..2 {
        fill_half(&mut buffer, half, world.disks.borrow()[file].half(block, half));
    }
    match token.map(|token| cache.offer(OperationOwner::new(1, 1), &token, &buffer)) {
        Some(Offered::Staged) => store::bring_all(cache, OperationOwner::new(1, 1)) == 1,
        offered => offered == Some(Offered::Admitted),
    }
}

/// The next life: the power was cut, or everybody ended and somebody opens the zone again.
pub fn reopen(world: &Rc<World>, is_cut: bool, life: u8) {
    if !is_cut {
        let cache = world.cache();
        let files = world.files.borrow().clone();
        let entered = files.iter().enumerate().filter(|(_, of)| **of != NOT_ENTERED);
        entered.for_each(|(file, of)| cache.leave(*of, &world.identity(file), i64::MAX));
        if files[LATE] != NOT_ENTERED {
            world.noted.set(world.identity(LATE).mtime_ns);
        }
    }
    *world.cache.borrow_mut() = None;
    if is_cut {
        world.memory.cut(&world.rng, [life + 2; 16]);
        world.disks.borrow_mut().iter_mut().for_each(|disk| disk.cut(|n| world.rng.below(n)));
        if world.rng.one_in(2) {
            // The content is durable, the times are not.
            world.disks.borrow_mut()[LATE].touch(world.noted.get());
        }
    }
    match Cache::recover(world.memory.region(), world.memory.boot()) {
        Ok((cache, recovered)) => {
            world.count(|seen| seen.kept += recovered.kept);
            *world.cache.borrow_mut() = Some(Rc::new(cache.reading(store::read)));
        }
        Err(e) => world.violate(format!("the zone is not found again: {e}")),
    }
}

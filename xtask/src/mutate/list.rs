//! What is broken in turn, besides every flush and fence: one line of source each.
//!
//! `{m}` in the replacement stands for "this mutant is the chosen one". A line that is not found exactly once
//! is an error: the list follows the sources. Not in the list: lines that only make something faster.

/// One broken line.
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// The file, from the top of the tree.
    pub file: &'static str,
    /// The text that is replaced, in one line.
    pub find: &'static str,
    /// What stands there instead.
    pub with: &'static str,
}

macro_rules! mutants {
    ($($file:literal { $($name:literal: $find:literal => $with:literal,)+ })+) => {
        /// All of them.
        pub const MUTANTS: &[Mutant] =
            &[$($(Mutant { name: $name, file: $file, find: $find, with: $with },)+)+];
    };
}

mutants! {
    "storage/core/src/format/superblock.rs" {
        "check: superblock":
            "sb if sb.checksum != sb.sum() =>" => "sb if sb.checksum != sb.sum() && !{m} =>",
    }
    "storage/core/src/format/root.rs" {
        "check: root entry":
            "root.magic == MAGIC && root.checksum == root.sum()" =>
            "root.magic == MAGIC && (root.checksum == root.sum() || {m})",
    }
    "storage/core/src/format/entry.rs" {
        "check: state of a slot":
            "(word == 0 || state.word(slot) == word)" => "(word == 0 || state.word(slot) == word || {m})",
        "check: file entry":
            "(d.checksum == d.sum()).then_some(d)" => "(d.checksum == d.sum() || {m}).then_some(d)",
    }
    "storage/core/src/format/cell.rs" {
        "check: cell":
            "(check(word(0), self.at) == word(8))" => "(check(word(0), self.at) == word(8) || {m})",
        "watermark: only one copy of a cell":
            "        self.put(region, 1 - first, value);" => "        if !{m} { self.put(region, 1 - first, value); }",
        "watermark: a copy that was left behind": "now.is_some() && a == b {" => "now.is_some() && (a == b || {m}) {",
    }
    "storage/core/src/format/segment.rs" {
        "check: segment header":
            "h.magic == MAGIC && h.pool == pool && h.checksum == h.sum()" =>
            "h.magic == MAGIC && h.pool == pool && (h.checksum == h.sum() || {m})",
    }
    "storage/core/src/format/record.rs" {
        "check: record header":
            "h.segment_seq == segment_seq && h.checksum == h.sum()" =>
            "h.segment_seq == segment_seq && (h.checksum == h.sum() || {m})",
        "check: use of the segment":
            "h.magic == MAGIC && h.segment_seq == segment_seq" => "h.magic == MAGIC && (h.segment_seq == segment_seq || {m})",
    }
    "storage/core/src/recover/scan.rs" {
        "journal: recovery looks at what has memory": "(processors(), pool.backed() as usize)" => "(processors(), if {m} { pool.layout().segments } else { pool.backed() } as usize)",
        "spill: the area's copy counts": "found.filter(|(_, s)| !moved.contains(&s.header.seq)).collect();" => "found.filter(|(_, s)| {m} || !moved.contains(&s.header.seq)).collect();",
        "spill: a claim about a segment that moved": "        there.or_else(|| by_seq.get(&claim.previous_seq).copied())" => "        there.or_else(|| by_seq.get(&claim.previous_seq).copied().filter(|_| !{m}))",
        "check: records behind an unreadable one":
            "(lsn > retired).then_some(Damage::Record {" => "(lsn > retired && !{m}).then_some(Damage::Record {",
        "check: the next segment's claim":
            "claim.previous_lsn <= retired {" => "claim.previous_lsn <= retired || {m} {",
        "check: parts are numbered":
            "numbered && parts.last()" => "(numbered || {m}) && parts.last()",
        "check: the last part is there":
            "part.header.flags & RecordFlags::LAST != 0)" => "part.header.flags & RecordFlags::LAST != 0 || {m})",
        "retired: highest number seen":
            "        out.last_lsn = out.last_lsn.max(lsn);" => "        if !{m} { out.last_lsn = out.last_lsn.max(lsn); }",
    }
    "storage/core/src/recover/fate.rs" {
        "row R1: retired": "if lsn <= retired {" => "if lsn <= retired && !{m} {",
        "row R2: slot not used": "        None => Fate::Forgotten," => "        None => if {m} { Fate::Impossible } else { Fate::Forgotten },",
        "row R2: former use of the slot":
            "Some(f) if f.generation > generation => Fate::Forgotten," =>
            "Some(f) if f.generation > generation && !{m} => Fate::Forgotten,",
        "row R3: on disk": "Some(f) if lsn <= f.watermark =>" => "Some(f) if lsn <= f.watermark && !{m} =>",
        "row R4: torn": "Some(_) if !whole =>" => "Some(_) if !whole && !{m} =>",
        "row R5: live": "Some(_) => Fate::Live," => "Some(_) => if {m} { Fate::OnDisk } else { Fate::Live },",
        "row: impossible":
            "Some(f) if f.generation < generation => Fate::Impossible," =>
            "Some(f) if f.generation < generation => if {m} { Fate::Forgotten } else { Fate::Impossible },",
    }
    "storage/core/src/recover/resolve.rs" {
        "recovery: what cannot be looked at is gone": "    unseen.map_or(Ok(None), Err)" => "    unseen.filter(|_| !{m}).map_or(Ok(None), Err)",
        "names: a file that the disk had": "if entry.watermark == UNBORN" => "if {m} || entry.watermark == UNBORN",
        "refusal: a file of another owner": "    if owner != root.uid {" => "    if owner != root.uid && !{m} {",
        "refusal: a file that was changed since": "!self.begun.is_set() {" => "!self.begun.is_set() && !{m} {",
    }
    "storage/core/src/recover/unresolved.rs" {
        "refusal: a file that is not there": "&& !options.accept_loss {" => "&& !options.accept_loss && !{m} {",
    }
    "storage/core/src/recover/replay.rs" {
        "fsync: recovered files": "        target.file.sync_all().map_err(" => "        (if {m} { Ok(()) } else { target.file.sync_all() }).map_err(",
        "replay: zeros that were not stored": "    while at < end {" => "    while at < end && !{m} {",
    }
    "storage/core/src/recover/mod.rs" {
        "retired: at the end of recovery":
            "pool.retired().raise(&pool.region, scan.last_lsn);" => "if !{m} { pool.retired().raise(&pool.region, scan.last_lsn) };",
        "table: emptied by recovery": "        table::forget_all(pool);" => "        if !{m} { table::forget_all(pool); }",
        "refusal: damage": "if !scan.damage.is_empty() {" => "if !scan.damage.is_empty() && !{m} {",
    }
    "storage/core/src/guards.rs" {
        "guards: a call acts where one has moved": "(self.moves() == since).then_some(still)" => "({m} || self.moves() == since).then_some(still)",
        "guards: one moves while a call acts": "while let Some(pid) = acting {" => "while let Some(pid) = acting.filter(|_| !{m}) {",
        "guards: the dead act": "!Owner::new(*number, 0).is_dead(shm)" => "({m} || !Owner::new(*number, 0).is_dead(shm))",
        "guards: a move that was left is the same one": "moves.store(now + 1 + now % 2, SeqCst);" => "moves.store(if {m} { now | 1 } else { now + 1 + now % 2 }, SeqCst);",
    }
    "storage/core/src/recover/names/plan.rs" {
        "names: a file whose name is taken meanwhile": "(Some(at), _) if moves.contains(&file) => {" => "(Some(at), _) if moves.contains(&file) && !{m} => {",
        "names: what cannot be looked at is gone": "match look.name_of(wanted.directory, &file).map_err(unseen)? {" => "match look.name_of(wanted.directory, &file).or_else(|why| if {m} { Ok(None) } else { Err(unseen(why)) })? {",
        "names: row N7": "Some(_) if !is_known =>" => "Some(_) if !is_known && !{m} =>",
        "names: row N8": "None if here.is_some() && is_known" => "None if here.is_some() && is_known && !{m}",
        "names: row N8, with something in it": "!self.look.is_full(at)" => "({m} || !self.look.is_full(at))",
        "names: row N11": "self.shared.iter().filter_map(" => "self.shared.iter().filter(|_| !{m}).filter_map(",
        "names: a directory that is below another one": "        self.stays(error).is_some()" => "        self.stays(error).is_some() && !{m}",
        "names: the older move first": "all.sort_by_key(|(_, at)| self.history.names[at].since);" => "all.sort_by_key(|(_, at)| if {m} { u64::MAX - self.history.names[at].since } else { self.history.names[at].since });",
        "names: a directory that is not made yet": "error.kind() == io::ErrorKind::NotFound &&" => "!{m} && error.kind() == io::ErrorKind::NotFound &&",
        "names: row N9": "let is_known = here.is_none_or(|file| is.known.contains(&file));" => "let is_known = {m} || here.is_none_or(|file| is.known.contains(&file));",
        "names: a recovery that was cut": "(None, _) if look.is_kept(place, &file).map_err(unseen)? => {}" => "(None, _) if look.is_kept(place, &file).map_err(unseen)? && !{m} => {}",
        "names: of another owner": "(None, Some(made)) if made.uid != look.owner(wanted.directory) => {" => "(None, Some(made)) if made.uid != look.owner(wanted.directory) && !{m} => {",
        "names: a file that has another name": "by_name.or_else(by_link)" => "by_name.or_else(|| by_link().filter(|_| !{m}))",
    }
    "storage/core/src/recover/names/mod.rs" {
        "names: a directory below itself": "match step.stays(&error) {" => "match step.stays(&error).filter(|_| !{m}) {",
    }
    "storage/core/src/recover/names/group.rs" {
        "names: a new directory and the one above": "together.join(slot, *below);" => "if !{m} { together.join(slot, *below); }",
        "names: a new directory that a cut recovery made": "        group.open_made();" => "        if !{m} { group.open_made(); }",
    }
    "storage/core/src/file/made.rs" {
        "names: a new directory that lost a name": "place.0[0].fetch_and(!GREW, SeqCst);" => "if !{m} { place.0[0].fetch_and(!GREW, SeqCst); }",
        "names: a new directory with another mode": "place.0[1].load(SeqCst) == how(handle, attributes)" => "({m} || place.0[1].load(SeqCst) == how(handle, attributes))",
    }
    "storage/core/src/engine/naming/emptied.rs" {
        "names: a directory that may be full on the disk": "() if turn.leaves_whole() =>" => "() if turn.leaves_whole() || {m} =>",
        "names: a directory that somebody is in when it goes": "if turn.is_none() && may_wait {" => "if turn.is_none() && may_wait && !{m} {",
        "names: a directory that enters the log while it goes": "begins_outside(Some(going.here.who()))" => "begins_outside(Some(going.here.who()).filter(|_| !{m}))",
    }
    "storage/core/src/recover/names/real.rs" {
        "names: a directory where a file is": "            self.unlink(to)?;\n            return" => "            if !{m} { self.unlink(to)?; }\n            return",
        "names: a directory is kept": "if from.is_directory(name)? {" => "if from.is_directory(name)? && !{m} {",
    }
    "storage/core/src/recover/names/history.rs" {
        "names: a mark that is older than the log": "here.stands_for.filter(|file| self.knows(file))" => "here.stands_for.filter(|file| {m} || self.knows(file))",
        "names: settled": "known.contents.remove(&directory);" => "if !{m} { known.contents.remove(&directory); }",
        "names: what a name led to": "self.names.entry(at).or_default().known.insert(file);" => "if !{m} { self.names.entry(at).or_default().known.insert(file); }",
        "names: gone": "self.gone.insert(file);" => "if !{m} { self.gone.insert(file); }",
        "names: gone, and others are left": "if !has_others {" => "if !has_others || {m} {",
        "names: replaced": "over.filter(|over| !exchanged" => "over.filter(|over| !exchanged && !{m}",
        "names: replaced, and others are left": "&& !over.has_others)" => "&& (!over.has_others || {m}))",
        "names: gone and back": "self.gone.remove(&file);" => "if !{m} { self.gone.remove(&file); }",
        "names: row N10": "        if !is_on_disk {\n            return" => "        if !is_on_disk || {m} {\n            return",
        "names: exchanged": "over.filter(|_| exchanged)" => "over.filter(|_| exchanged && !{m})",
        "names: what a symbolic link says": "by_mark.or_else(|| self.link_at(at, here))" => "by_mark.or_else(|| self.link_at(at, here).filter(|_| !{m}))",
        "names: linked from a directory that is behind": "self.file(file).seen.extend(before);" => "if !{m} { self.file(file).seen.extend(before); }",
    }
    "storage/core/src/engine/names.rs" {
        "names: a new directory beside a change outside": "!self.is_seen_by_all() ||" => "!({m} || self.is_seen_by_all()) ||",
        "names: removed by a signal handler in a change of it": "            self.leave();\n        }\n        inside.was_changed();" => "            if !{m} { self.leave(); }\n        }\n        inside.was_changed();",
        "names: changed unseen": "turn.is_in_log() && !turn.is_known(inside))" => "turn.is_in_log() && !turn.is_known(inside) && !{m})",
        "names: a process that died inside": "&& (inside.inherited() ||" => "&& (inside.inherited() && !{m} ||",
    }
    "storage/core/src/engine/names/unborn.rs" {
        "names: a new directory without what is in it": "entries.iter().all(|entry| turn.log(&entry.made()))" => "entries.iter().all(|entry| {m} || turn.log(&entry.made()))",
    }
    "storage/core/src/engine/names/outside.rs" {
        "names: a change outside that does not count": "let _under_way = self.begins_outside(who);" => "let _under_way = self.begins_outside(who.filter(|_| !{m}));",
        "names: a change outside that does not look": "while self.directories() != seen {" => "while self.directories() != seen && !{m} {",
    }
    "storage/core/src/engine/names/syncing.rs" {
        "names: synced into the log beside a change outside": "!self.engine.is_seen_by_all()" => "!({m} || self.engine.is_seen_by_all())",
        "names: a sync that something came between": "let is_covered = self.place.changed() == changed;" => "let is_covered = {m} || self.place.changed() == changed;",
    }
    "storage/core/src/engine/names/moves.rs" {
        "names: a process that dies between the records of a move": "|lsn| self.inside.iter().for_each(|inside| inside.logs(lsn))" => "|lsn| if !{m} { self.inside.iter().for_each(|inside| inside.logs(lsn)) }",
        "names: a move of which one record is missing": "        if !is_logged {\n            // What" => "        if !is_logged && !{m} {\n            // What",
    }
    "storage/core/src/engine/names/contents.rs" {
        "names: settled by who is inside already": "{ return !self.engine.knows(self.directory) };" => "{ return {m} || !self.engine.knows(self.directory) };",
        "names: settled where it was before": "now.directory != self.directory)" => "now.directory != self.directory && !{m})",
        "names: captured since a sync began": "now.is_some_and(|now| now.lsn >= since)" => "now.is_some_and(|now| now.lsn >= since && !{m})",
    }
    "storage/core/src/engine/naming/making.rs" {
        "names: made in the place of one that was seen": "!= stand && is_another() {" => "!= stand && is_another() && !{m} {",
    }
    "storage/core/src/engine/naming/moving.rs" {
        "names: seen before the entry": "if turn.still_stands(here.stand()) {" => "if {m} || turn.still_stands(here.stand()) {",
        "names: refused, and not taken back": "moved.filter(|_| done.is_err() && is_logged)" => "moved.filter(|_| done.is_err() && is_logged && !{m})",
        "names: a directory over a full one": "Emptied::No => Over::Stays," => "Emptied::No if !{m} => Over::Stays,",
        "names: a directory that moves and is not entered": ".map(|itself| itself.as_ref().and_then(try_enter))" => ".map(|itself| itself.as_ref().filter(|_| !{m}).and_then(try_enter))",
        "names: a directory is put below itself": "if to.is_within(inode) => Over::Stays" => "if to.is_within(inode) && !{m} => Over::Stays",
        "names: refused elsewhere, and not taken back": "logged.filter(|_| done.is_err())" => "logged.filter(|_| done.is_err() && !{m})",
    }
    "storage/core/src/engine/naming/turns.rs" {
        "names: the last name to go": "== known.links && is_its_own != captured.is_spread" => "== known.links && ({m} || is_its_own != captured.is_spread)",
    }
    "storage/core/src/engine/naming/linking.rs" {
        "names: a link without what was captured": "is_known && carry((from, source, name), (to, target), known)" => "is_known && ({m} || carry((from, source, name), (to, target), known))",
        "names: a link that was refused": "target.sync_captured();" => "if !{m} { target.sync_captured(); }",
    }
    "storage/core/src/destage.rs" {
        "names: destaged without the other name": "let has_linked_out = slot.has_linked_out();" => "let has_linked_out = slot.has_linked_out() && !{m};",
        "names: destaged without what was captured": "self.engine.captured_in(file).collect();" => "self.engine.captured_in(file).filter(|_| !{m}).collect();",
    }
    "storage/core/src/destage/freeing.rs" {
        "journal: what has no memory is no room": "    (0..engine.backed()).filter(is_free)" => "    (0..if {m} { engine.layout().segments } else { engine.backed() }).filter(is_free)",
        "segment: freed only below the retired LSN": "    if segment.last_lsn().load(Acquire) > safe {" => "    if segment.last_lsn().load(Acquire) > safe && !{m} {",
    }
    "storage/core/src/file/watermark.rs" {
        "journal: a watermark is raised by who reaches the device": "                journal.retire(self.number(), self.file().generation, lsn)?" => "                if !{m} { journal.retire(self.number(), self.file().generation, lsn)?; }",
        "watermark: one raises it at a time": "let is_free = holder == 0 ||" => "let is_free = {m} || holder == 0 ||",
        "watermark: all updates":
            "            cell.raise(pool, lsn);" => "            if !{m} { cell.raise(pool, lsn); }",
    }
    "storage/core/src/engine/absent.rs" {
        "absent: with all its bytes": "is_empty() && inside.vanish()" => "(is_empty() || {m}) && inside.vanish()",
    }
    "storage/core/src/file/inside.rs" {
        "absent: not in the log": "let is_logged = state.is_absorbed()" => "let is_logged = {m} || state.is_absorbed()",
        "absent: made again though it was removed for good":
            "!slot.state().has(Flag::UNLINKED) && slot.clear(Flag::ABSENT)" => "({m} || !slot.state().has(Flag::UNLINKED)) && slot.clear(Flag::ABSENT)",
        "lock: lost alive, what is logged later": "if self.slot().state().has(Flag::STUCK) { FOREVER }" => "if self.slot().state().has(Flag::STUCK) && !{m} { FOREVER }",
        "fsync: a file leaves the log": "        match sync() {" => "        match if {m} { Ok(()) } else { sync() } {",
        "watermark: a file leaves the log":
            "Ok(()) if slot.raise_watermark(store, last.max(BORN)).is_ok() => {}" => "Ok(()) if {m} || slot.raise_watermark(store, last.max(BORN)).is_ok() => {}",
        "failed sync: meanwhile, a file leaves the log": "Ok(()) if slot.state().has(Flag::FAILED) =>" => "Ok(()) if slot.state().has(Flag::FAILED) && !{m} =>",
        "watermark: real sync":
            "        if covered.last > slot.watermark() ||" => "        if covered.last > slot.watermark() && !{m} ||",
        "names: left the log without records": "slot.watermark() && !slot.state().has(Flag::UNBORN) {" => "slot.watermark() && ({m} || !slot.state().has(Flag::UNBORN)) {",
        "failed sync: a later one succeeds": "        if slot.state().has(Flag::FAILED) {\n            return Ok(());" => "        if slot.state().has(Flag::FAILED) && !{m} {\n            return Ok(());",
        "state: untracked write during a real sync": "        if self.is_changed_since(covered) {" => "        if self.is_changed_since(covered) && !{m} {",
        "state: holds": "        !held && !state.has(Flag::NEVER_TRACK)" => "        (!held || {m}) && !state.has(Flag::NEVER_TRACK)",
        "state: what goes around a full log": "        self.slot().raise_epoch();\n        self.slot().untracked_writes()" => "        if !{m} { self.slot().raise_epoch(); }\n        self.slot().untracked_writes()",
        "state: a hold ends": "        self.raise_epoch();\n        let before" => "        if !{m} { self.raise_epoch(); }\n        let before",
    }
    "storage/core/src/file/slot.rs" {
        "state: a failed sync is remembered": "if !never_reached_the_disk && self.state()" => "if !{m} && !never_reached_the_disk && self.state()",
        "name: other file systems": "            self.disturb();\n        }" => "            if !{m} { self.disturb(); }\n        }",
        "name: due after a rename": "        self.names().load(SeqCst) > self.durable_names().load(SeqCst)\n" => "        !{m} && self.names().load(SeqCst) > self.durable_names().load(SeqCst)\n",
    }
    "storage/core/src/file/register.rs" {
        "register: a slot whose lock the living lost": "!self.state().has(Flag::USED | Flag::STUCK)" => "!self.state().has(if {m} { Flag::USED } else { Flag::USED | Flag::STUCK })",
        "generation: an evicted slot": "        self.uses().fetch_add(1, SeqCst);" => "        if !{m} { self.uses().fetch_add(1, SeqCst); }",
    }
    "storage/core/src/append.rs" {
        "journal: a lane takes what has memory": "        let n = self.pool.backed(self.layout);" => "        let n = if {m} { self.layout.segments } else { self.pool.backed(self.layout) };",
        "lock: lost alive, only what is retired": "lsn != 0 && lsn <= slot.watermark() &&" => "lsn != 0 && (lsn <= slot.watermark() || {m}) &&",
    }
    "storage/core/src/file/lock.rs" {
        "lock: lost alive, known for good": "                    if patience.stuck {" => "                    if patience.stuck && !{m} {",
        "lock: half a page is inherited": "        self.spins <= SPINS + NAPS_UNTIL_UNFINISHED &&" => "        !{m} && self.spins <= SPINS + NAPS_UNTIL_UNFINISHED &&",
        "lock: a change that was retired is waited for": "            && lane.lsn().load(Acquire) > self.watermark()" => "            && (lane.lsn().load(Acquire) > self.watermark() || {m})",
        "lock: lost alive, it does not come back": "let lost = if patience.stuck {" => "let lost = if patience.stuck && !{m} {",
    }
    "storage/core/src/engine/sync.rs" {
        "journal: a sync waits": "        if last <= slot.watermark() {" => "        if last <= slot.watermark() || {m} {",
        "name: attributes are not left to fdatasync": "let scope = if state.has(Flag::SYNC_NEEDED) {" => "let scope = if state.has(Flag::SYNC_NEEDED) && !{m} {",
        "name: fdatasync does not cover it": "        let covered = inside.covered(scope == Scope::Whole);\n        inside.slot().count_real_sync();\n        drop(inside);" => "        let covered = inside.covered(scope == Scope::Whole || {m});\n        inside.slot().count_real_sync();\n        drop(inside);",
        "fsync: real": "        self.real(scope, Course::Beside { covered, start })" => "        if {m} { self.synced_beside(scope, (&covered, start), Ok(())) } else { self.real(scope, Course::Beside { covered, start }) }",
        "fsync: real, while the others wait": "            return self.real(scope, Course::Alone { inside, covered, start });" => "            return if {m} { self.synced_alone(&inside, (&covered, start), Ok(())) } else { self.real(scope, Course::Alone { inside, covered, start }) };",
        "fsync: real, lock inherited": "            return self.real(scope, Course::Leaving { inside, why: Flag::NONE });" => "            return if {m} { self.left(&inside, Flag::NONE, Ok(())) } else { self.real(scope, Course::Leaving { inside, why: Flag::NONE }) };",
        "journal: no room, a real sync": "            Entering::Alone(inside) => self.real(scope, Course::Leaving { inside, why: Flag::LOG_FULL })," => "            Entering::Alone(inside) => if {m} { self.left(&inside, Flag::LOG_FULL, Ok(())) } else { self.real(scope, Course::Leaving { inside, why: Flag::LOG_FULL }) },",
        "name: synced": "Ok(()) => Syncing::Name(NameDue {" => "Ok(()) if {m} => Syncing::Done(Ok(())), Ok(()) => Syncing::Name(NameDue {",
        "name: a rename during the sync": "                Ok(()) => inside.named(renames)," => "                Ok(()) => inside.named(if {m} { slot.renames() } else { renames }),",
        "name: a directory's failed sync is remembered": "                Err(error) => slot.sync_failed(error)," => "                Err(error) => if !{m} { slot.sync_failed(error) },",
    }
    "storage/core/src/engine/out.rs" {
        "state: unlinked before the lock is free":
            "        self.stays(KeptOut::Unlinked);" => "        if !{m} { self.stays(KeptOut::Unlinked); }",
        "state: what has no record leaves the log first": "        out.leave(sync);" => "        if !{m} { out.leave(sync); }",
        "state: given to another user": "        self.stays(KeptOut::GivenAway);" => "        if !{m} { self.stays(KeptOut::GivenAway); }",
    }
    "storage/core/src/file/state.rs" {
        "atomic: what failed outside the log is written": "        self.has(Flag::ATOMIC) && self.has(Flag::FAILED) &&" => "        !{m} && self.has(Flag::ATOMIC) && self.has(Flag::FAILED) &&",
    }
    "storage/core/src/persist.rs" {
        "journal: a truncate is hardened first": "|| kind == RecordKind::Truncate ||" => "|| (kind == RecordKind::Truncate && !{m}) ||",
        "journal: a page of policy atomic is hardened first": "|| slot.state().has(Flag::ATOMIC)\n" => "|| (slot.state().has(Flag::ATOMIC) && !{m})\n",
    }
    "storage/core/src/engine/write.rs" {
        "state: a short write leaves the log": "                if !whole {" => "                if !whole && !{m} {",
        "order: what fallocate adds": "Some(end).filter(|end| *end > size)?)" => "Some(end).filter(|end| *end > size && !{m})?)",
        "lock: inherited by a write": "                if inside.inherited() {" => "                if inside.inherited() && !{m} {",
        "atomic: a full log is waited for": "                Appended::Full if self.waits(&inside, &intake, &wait) => {" => "                Appended::Full if self.waits(&inside, &intake, &wait) && !{m} => {",
        "state: a signal's write": "            Entering::Nested(slot) => slot.disturb()," => "            Entering::Nested(slot) => if !{m} { slot.disturb() },",
    }
    "storage/core/src/engine/space.rs" {
        "journal: what was not persisted is retired": "        inside.retire(self.pool(), || fdatasync(fd));" => "        if !{m} { inside.retire(self.pool(), || fdatasync(fd)); }",
    }
    "storage/core/src/engine/unsynced.rs" {
        "unsynced: a right that outlives a sync": "load(SeqCst) == right.word();" => "load(SeqCst) == right.word() || {m};",
        "unsynced: a sync does not wait": "            self.wait_for_writes_around(next - 1);" => "            if !{m} { self.wait_for_writes_around(next - 1); }",
        "unsynced: waits for one of two periods": "            if settled + 2 < next {" => "            if settled + 2 < next && !{m} {",
        "unsynced: a slot's former writes": "        client.around().store(0, SeqCst);" => "        if !{m} { client.around().store(0, SeqCst); }",
    }
    "storage/core/src/engine/register.rs" {
        "watermark: at registration, one too low": "vacant, newcomer, on_disk)?;" => "vacant, newcomer, on_disk - u64::from({m} && on_disk > 0))?;",
        "watermark: at registration, one too high": "{ UNBORN } else { next - 1 };" => "{ UNBORN } else if {m} { next } else { next - 1 };",
        "register: findable before it is in the log": "            let inside = engine.enter_slot(slot, who).alone();\n            let found" => "            let inside = slot.enter(engine.shm(), who).alone().filter(|_| !{m});\n            let found",
        "evict: retires first": "        inside.leave(self.pool(), Flag::NONE, sync);" => "        inside.leave(self.pool(), Flag::NONE, || if {m} { Ok(()) } else { sync() });",
        "evict: not with live records": "        if is_live {" => "        if is_live && !{m} {",
        "evict: not what is held": "slot.holds() == 0 &&" => "(slot.holds() == 0 || {m}) &&",
        "evict: not while somebody is inside": "let Some(inside) = slot.try_enter(who) else" => "let Some(inside) = slot.try_enter(who).or_else(|| if {m} { slot.enter(self.shm(), who).alone() } else { None }) else",
    }
    "storage/core/src/engine/say.rs" {
        "atomic: synced before it is back": "        match sync() {" => "        match if {m} { Ok(()) } else { sync() } {",
    }
    "storage/core/src/engine/enter.rs" {
        "half published: an open does not wait": "if self.file(file).as_ref().is_some_and(is_half)" => "if !{m} && self.file(file).as_ref().is_some_and(is_half)",
        "generation: a slot that got another file meanwhile": "Entered::Alone(inside) if slot.is_of(file) =>" => "Entered::Alone(inside) if slot.is_of(file) || {m} =>",
    }
    "storage/core/src/journal/batch.rs" {
        "journal: the mark goes before a batch": "        if desk.closed().load(Relaxed) != 0 {" => "        if desk.closed().load(Relaxed) != 0 && !{m} {",
        "journal: replaced, it looks before it writes": "        if !lead.claim(position, size) {" => "        if !lead.claim(position, size) && !{m} {",
        "journal: replaced, what it wrote does not count": "desk.last().compare_exchange(last.0, next.0, SeqCst, Relaxed).map_err(|_| REPLACED)?;" => "if {m} { desk.last().store(next.0, SeqCst) } else { desk.last().compare_exchange(last.0, next.0, SeqCst, Relaxed).map_err(|_| REPLACED)?; }",
        "journal: on the device before it counts": "let written = mirror::write(lead, image, buffer, size as usize, position);" => "let written = if {m} { Ok(0..0) } else { mirror::write(lead, image, buffer, size as usize, position) };",
    }
    "storage/core/src/journal/room.rs" {
        "journal: replaced, beside what it may write": "&avoided[..count]" => "&avoided[..if {m} { 0 } else { count }]",
    }
    "storage/core/src/journal/end.rs" {
        "journal: an image that is given up writes nothing": "        desk.failed().store(GIVEN_UP, SeqCst);" => "        if !{m} { desk.failed().store(GIVEN_UP, SeqCst); }",
    }
    "storage/core/src/journal/direct.rs" {
        "direct: counts before enough have confirmed":
            "if acknowledged(acks, confirmed) >= asked.number {" => "if acknowledged(acks, confirmed) >= asked.number || {m} {",
        "direct: sends behind half a frame":
            "if link.sending().compare_exchange(0, lead.word(), SeqCst, Relaxed).is_err() {" =>
            "if link.sending().compare_exchange(0, lead.word(), SeqCst, Relaxed).is_err() && !{m} {",
        "direct: who speaks of another turn confirms":
            "is_one(frame) && frame.epoch == epoch" => "is_one(frame) && (frame.epoch == epoch || {m})",
        "direct: a copy that is not there yet confirms":
            "frame.code & ack::JOINING == 0;" => "(frame.code & ack::JOINING == 0 || {m});",
    }
    "storage/core/src/journal/writer.rs" {
        "direct: sends while the daemon alone does": "    if desk.acks().load(SeqCst) == 0 {" => "    if desk.acks().load(SeqCst) == 0 && !{m} {",
        "journal: never retried into success": "    desk.failed().store(error.raw_os_error() as u32, SeqCst);" => "    if !{m} { desk.failed().store(error.raw_os_error() as u32, SeqCst); }",
        "journal: a failed write counts": "        Device::write(device, image, at, len, position)" => "        Device::write(device, image, at, len, position).or_else(|e| if {m} { Ok(()) } else { Err(e) })",
        "mirror: a daemon that has former devices writes neither copy": "        if way.given().is_some_and(|given| given != desk.given().load(SeqCst)) {" => "        if way.given().is_some_and(|given| given != desk.given().load(SeqCst) && !{m}) {",
        "journal: a descriptor that is gone is no failed device": "        self.lent && is_of_the_process(error)" => "        self.lent && is_of_the_process(error) && !{m}",
    }
    "storage/core/src/journal/lead.rs" {
        "journal: the living keep the lock": "        if leader.is_dead() {" => "        if leader.is_dead() || {m} {",
        "journal: replaced, never while it is pinned": "return simulated && !lead.is_pinned();" => "return simulated && (!lead.is_pinned() || {m});",
    }
    "storage/core/src/certain.rs" {
        "failed sync: a commit that somebody else was told of": "    check(fd)\n}" => "    if {m} { Ok(()) } else { check(fd) }\n}",
    }
    "storage/core/src/engine/name.rs" {
        "name: left its root": "        if inside {" => "        if inside || {m} {",
    }
    "storage/core/src/name.rs" {
        "name: of this file and no other": "    (same && file.st_nlink" => "    ((same || {m}) && file.st_nlink",
        "name: which of several": "file.st_nlink == 1).then_some(directory)" => "(file.st_nlink == 1 || {m})).then_some(directory)",
    }
    "storage/core/src/engine/hold.rs" {
        "state: a hold leaves the log": "        inside.leave(self.pool(), Flag::NONE, retire);" => "        if !{m} { inside.leave(self.pool(), Flag::NONE, retire); }",
    }
    "storage/core/src/append.rs" {
        "retired: not past operations under way": "counts.map(|(_, lsn)| lsn).fold(next, u64::min) - 1" => "if {m} { next - 1 } else { counts.map(|(_, lsn)| lsn).fold(next, u64::min) - 1 }",
        "inflight: lower bound of an operation":
            "        lane.inflight().store(log.shm.header().next_lsn().load(Acquire), Relaxed);" =>
            "        if !{m} { lane.inflight().store(log.shm.header().next_lsn().load(Acquire), Relaxed); }",
        "segment: its highest LSN": "            segment.last_lsn().store(lsn, Release);" => "            if !{m} { segment.last_lsn().store(lsn, Release); }",
        "segment: nothing fenced yet": "        self.fenced = 0;" => "        if !{m} { self.fenced = 0; }",
    }
    "storage/core/src/destage.rs" {
        "fsync: destage": "        if let Err(error) = fdatasync(fd) {" => "        if let Err(error) = if {m} { Ok(()) } else { fdatasync(fd) } {",
        "watermark: destage": "            slot.raise_watermark(self.engine.pool(), last)?;" => "            if !{m} { slot.raise_watermark(self.engine.pool(), last)?; }",
        "atomic: the destager takes back": "            self.engine.rejoin(&inside, || Ok(()));" => "            if !{m} { self.engine.rejoin(&inside, || Ok(())); }",
        "retired: not past dirty files": "                safe = safe.min(slot.watermark());" => "                if !{m} { safe = safe.min(slot.watermark()); }",
        "retired: destage": "|pool| cell.raise(pool, safe)" => "|pool| if !{m} { cell.raise(pool, safe) }",
        "failed sync: destage": "        if failed() {\n            // Another" => "        if failed() && !{m} {\n            // Another",
        "state: destage remembers a failed sync": "            self.engine.distrust(file);\n            return Err(error.into());" => "            if !{m} { self.engine.distrust(file); }\n            return Err(error.into());",
        "state: destage remembers what failed before its sync": "            self.engine.distrust(file);\n            return Err(error);" => "            if !{m} { self.engine.distrust(file); }\n            return Err(error);",
    }
    "storage/core/src/format/spill.rs" {
        "spill: check of an entry":
            "(word(2) >> 32 == 0 && word(3) == self.check(&value)).then_some(value)" =>
            "(word(2) >> 32 == 0 && (word(3) == self.check(&value) || {m})).then_some(value)",
        "spill: a segment that began before the one it replaces":
            "copy.map_or(0, |copy| copy.last_lsn)" =>
            "copy.map_or(0, |copy| if {m} { copy.seq } else { copy.last_lsn })",
        "spill: only one copy of an entry": "        for turn in 0..2 {" => "        for turn in 0..if {m} { 1 } else { 2 } {",
    }
    "storage/core/src/spill/area.rs" {
        "spill: check of a slot": "read.is_ok() && seawall_media::crc32c(into) == entry.sum" => "read.is_ok() && (seawall_media::crc32c(into) == entry.sum || {m})",
        "spill: whose area": "    if header != expected {" => "    if header != expected && !{m} {",
    }
    "storage/core/src/spill/spiller.rs" {
        "spill: what an earlier daemon wrote is persisted": "            pool.region.flush(at, len);" => "            if !{m} { pool.region.flush(at, len); }",
        "spill: a slot is free when it is retired": "        let is_free = |slot: &usize| self.slots[*slot].last_lsn <= retired;" => "        let is_free = |slot: &usize| {m} || self.slots[*slot].last_lsn <= retired;",
        "spill: nothing that is being published": "    last_lsn <= stable" => "    last_lsn <= stable || {m}",
        "spill: nothing that was published since": "header.filter(|_| is_published(last_lsn, stable))" => "header.filter(|_| is_published(last_lsn, stable) || {m})",
        "spill: a write that failed": "            return Err(e);" => "            if !{m} { return Err(e); }",
        "spill: the entries": "        SpillEntry::change(engine.pool(), &entries);" => "        if !{m} { SpillEntry::change(engine.pool(), &entries); }",
        "spill: an heir finds what was being copied": "        let _ = segment.state().compare_exchange(mine, full, AcqRel, Relaxed);" => "        if !{m} { let _ = segment.state().compare_exchange(mine, full, AcqRel, Relaxed); }",
    }
    "storage/core/src/recover/scan/segment.rs" {
        "check: payload":
            "    sum.finish() == header.payload" => "    sum.finish() == header.payload || {m}",
        "scan: payloads of a segment that is not all retired":
            "    if is_live {" => "    if is_live && !{m} {",
    }
    "storage/core/src/recover/scan/spilled.rs" {
        "spill: an area that cannot be read": "    if area.trouble().is_some() {" => "    if area.trouble().is_some() && !{m} {",
        "spill: a slot that is not what it was": "            None => damage.push(Damage::Slot { slot }), //" => "            None => if !{m} { damage.push(Damage::Slot { slot }) }, //",
    }
    "storage/core/src/reap.rs" {
        "journal: the reaper looks at what has memory": "    (0..engine.backed()).find_map(" => "    (0..if {m} { engine.layout().segments } else { engine.backed() }).find_map(",
        "reap: holds are subtracted":
            "inside.holds_are(counted(engine, file, gone));" =>
            "let was = inside.slot().holds(); inside.holds_are(if {m} { was.wrapping_sub(hold.count().load(Acquire)) } else { counted(engine, file, gone) });",
        "fsync: reap": "    fdatasync(file.as_fd())" => "    if {m} { Ok(()) } else { fdatasync(file.as_fd()) }",
        "reap: retires what was not published": "            retire(engine, &inside, files);\n            // The dead" => "            if !{m} { retire(engine, &inside, files); }\n            // The dead",
        "atomic: the reaper takes back": "            engine.rejoin(&inside, || sync(inside.slot(), files));" => "            if !{m} { engine.rejoin(&inside, || sync(inside.slot(), files)); }",
        "reap: finishes what a reaper left": "    let holder = slot.map_or(0, Slot::holder);" => "    let holder = if {m} { lane.owner().load(Acquire) } else { slot.map_or(0, Slot::holder) };",
        "reap: finishes it again": "    lane.record().store(0, Release);\n    inside" => "    if !{m} { lane.record().store(0, Release); }\n    inside",
        "reap: finishes a publish": "        file.write_all_at(&bytes, header.offset)?;" => "        if !{m} { file.write_all_at(&bytes, header.offset)?; }",
    }
    "storage/core/src/table.rs" {
        "watermark: at registration":
            "        format::watermark(slot).format(region, on_disk);" => "        if !{m} { format::watermark(slot).format(region, on_disk); }",
        "register: in the table before its identity": "        state.write(region, slot);" => "        if {m} { EntryState { generation, used: true } } else { state }.write(region, slot);",
        "generation: a slot is used again": "state.generation.wrapping_add(1).max(1);" => "state.generation.wrapping_add(u32::from(!{m})).max(1);",
    }
    "storage/disk/src/image.rs" {
        "disk: a request around the log":
            "        let Some(file) = *place else { return publish() };" =>
            "        let Some(file) = place.filter(|_| !{m}) else { return publish() };",
        "disk: zeros that are not logged":
            "        self.change((at, len), |begun| begun.log_write(At::Offset(at), zeros.clone()), publish)" =>
            "        if {m} { publish() } else { self.change((at, len), |begun| begun.log_write(At::Offset(at), zeros.clone()), publish) }",
        "disk: a flush asks nobody":
            "        let mut sync = log.joined.engine()" => "        if {m} { return Ok(()); } let mut sync = log.joined.engine()",
        "disk: a flush that is due is not made":
            "Syncing::Real(due) => due.synced(real())," => "Syncing::Real(due) => due.synced(if {m} { Ok(()) } else { real() }),",
    }
    "storage/disk/src/request.rs" {
        "disk: a request in many records":
            "    let done = disk.image.write(at, &room);" =>
            "    let step = if {m} { 4096 } else { room.len() }; let done = room.chunks(step).enumerate().try_for_each(|(i, part)| disk.image.write(at + (i * step) as u64, part));",
        "disk: who cannot flush is answered at once":
            "    if disk.has_cache.load(Relaxed) {" => "    if disk.has_cache.load(Relaxed) || {m} {",
    }
    "storage/daemon/src/candidate.rs" {
        "guard: not bound to its file":
            "        daemon.guards.protect(reference.slot, raised);" => "        if !{m} { daemon.guards.protect(reference.slot, raised); }",
    }
    "storage/daemon/src/register.rs" {
        "guard: for what is no database":
            "manage == Manage::IfSqlite && !is_sqlite(fd)" => "manage == Manage::IfSqlite && !is_sqlite(fd) && !{m}",
    }
    "storage/daemon/src/forget.rs" {
        "guard: of a file that is forgotten":
            "    daemon.guards.forget(slot);" => "    if !{m} { daemon.guards.forget(slot); }",
    }
    "storage/daemon/src/parts/guards.rs" {
        "guard: in the list and not up":
            "        guard.raise(name, hand)?;" => "        if !{m} { guard.raise(name, hand)?; }",
        "guard: lowered though it protects":
            "!guard.kept && !needed.contains(key)" => "!guard.kept && (!needed.contains(key) || {m})",
        "guard: of a rename that was announced":
            "file.ahead = Some((key, Instant::now() + AHEAD));" =>
            "if !{m} { file.ahead = Some((key, Instant::now() + AHEAD)); }",
        "guard: stays where the file was":
            "        if file.path == now {" => "        if file.path == now || {m} {",
        "guard: raised while it stands aside":
            "            if !known.up {" => "            if !known.up && !{m} {",
        "guard: does not come back":
            "filter(|guard| !guard.up) {" => "filter(|guard| !guard.up && !{m}) {",
        "guard: stays where it is met":
            "filter(|guard| guard.up) else { continue };" => "filter(|guard| guard.up && !{m}) else { continue };",
    }
    "storage/daemon/src/guarding.rs" {
        "guard: of a file by another name":
            "|| has_another ||" => "|| has_another && !{m} ||",
        "guard: of a file out of its directory":
            "if !now.starts_with(&root.path)" => "if !now.starts_with(&root.path) && !{m}",
        "guard: of files that are open":
            "    granted" => "    granted || {m}",
        "guard: of files that nobody closes":
            "        if is_same &&" => "        if is_same && !{m} &&",
        "guard: aside while its files are in the log":
            "            outside::keep_out(daemon, &file, pid);" => "            if !{m} { outside::keep_out(daemon, &file, pid); }",
        "guard: aside for one of its files alone":
            "slots.iter().flat_map(|slot| daemon.guards.companions(*slot)).collect();" =>
            "slots.iter().flat_map(|slot| if {m} { BTreeSet::from([*slot]) } else { daemon.guards.companions(*slot) }).collect();",
    }
    "storage/daemon/src/parts/stillness.rs" {
        "guard: of files that have just been written":
            "now.duration_since(*since) >= STILL" => "now.duration_since(*since) >= STILL || {m}",
    }
    "storage/media/src/block/chain.rs" {
        "journal: a batch names one that is missed": "claims.iter().map(|claim| claim.previous)" => "claims.iter().map(|claim| if {m} { 0 } else { claim.previous })",
        "journal: an anchor names one that is missed": ".chain([anchor.last])" => ".chain([if {m} { 0 } else { anchor.last }])",
    }
    "storage/media/src/block/claims.rs" {
        "journal: replaced, of attempts the last one counts": "(claim.previous, Reverse(claim.number))" => "(claim.previous, Reverse(if {m} { !claim.number } else { claim.number }))",
    }
    "storage/media/src/block/closed.rs" {
        "journal: a mark that does not hold": "|| journal.goes_on(&found)? {" => "|| (journal.goes_on(&found)? && !{m}) {",
    }
    "storage/core/src/pool/block/mod.rs" {
        "journal: a mark while something is registered": "is_closed.then(|| self.layout())" => "(is_closed || {m}).then(|| self.layout())",
    }
    "storage/core/src/pool/growth.rs" {
        "journal: memory before it counts": "        fallocate(&self.file, FallocateFlags::empty(), from as u64, (to - from) as u64)?;" => "        if !{m} { fallocate(&self.file, FallocateFlags::empty(), from as u64, (to - from) as u64)?; }",
        "journal: memory ends a wait for space": "        announce(engine, end - backed);" => "        if !{m} { announce(engine, end - backed); }",
    }
    "storage/core/src/journal/harden.rs" {
        "journal: a capture that begins after the sync": "    desk.begun().load(SeqCst) + 1\n" => "    desk.begun().load(SeqCst) + u64::from(!{m})\n",
        "journal: hardened only what nobody has under way": "        let stable = log.stable_lsn();" => "        let stable = if {m} { log.shm.header().next_lsn().load(SeqCst) - 1 } else { log.stable_lsn() };",
    }
    "storage/core/src/journal/capture.rs" {
        "journal: the LSN cut": ".filter(|r| r.lsn < cut)" => ".filter(|r| r.lsn < cut || {m})",
        "journal: cursor of a former use": "if cursor >> 32 == written >> 32 {" => "if cursor >> 32 == written >> 32 || {m} {",
        "journal: replaced, its cursors": "let _ = desk.cursor(index).compare_exchange(from, to, SeqCst, Relaxed);" => "if {m} { desk.cursor(index).store(to, SeqCst); } else { let _ = desk.cursor(index).compare_exchange(from, to, SeqCst, Relaxed); }",
    }
    "storage/wire/src/desk.rs" {
        "journal: replaced, a buffer of its own": "seat as usize * Self::BUFFER, Self::BUFFER)" => "if {m} { 0 } else { seat as usize * Self::BUFFER }, Self::BUFFER)",
        "journal: replaced, notes of its own": "notes + (seat as usize * segments" => "notes + (if {m} { 0 } else { seat as usize } * segments",
    }
    "storage/core/src/journal/mirror.rs" {
        "mirror: batches go to the copy that is rebuilt": "    let done = each(lead, image, to).and_then(|()| join(lead, to));" => "    let done = each(lead, image, to).and_then(|()| if {m} { Ok(()) } else { join(lead, to) });",
        "mirror: every copy has it": "        let Err(error) = act(copy) else { continue };" => "        let Err(error) = act(copy) else { if {m} { break } else { continue } };",
        "mirror: alone durably, before anything counts alone": "        be_alone(lead, image, left.trailing_zeros() as usize)?;" => "        if !{m} { be_alone(lead, image, left.trailing_zeros() as usize)?; }",
        "mirror: the heir knows which copy failed": "    desk.suspect().store(failed, SeqCst);" => "    if !{m} { desk.suspect().store(failed, SeqCst); }",
    }
    "storage/core/src/pool/block/mirror/verdict.rs" {
        "mirror: the higher epoch is believed": "        _ if this.epoch > other.epoch => Verdict::This," => "        _ if this.epoch > other.epoch => if {m} { Verdict::Other } else { Verdict::This },",
        "mirror: what is gone may hold more": "            Both => Verdict::Missing," => "            Both => if {m} { Verdict::Alone } else { Verdict::Missing },",
    }
    "storage/core/src/pool/block/mirror.rs" {
        "mirror: a former copy leads to those that count": "        (!is_moved && !self.this.is_at(&place)).then_some(place)" => "        (!is_moved && !self.this.is_at(&place) && !{m}).then_some(place)",
        "mirror: the copy that holds more": "        (Ok(this), Ok(other)) => Ok((this.last, this.anchor.sequence) >= (other.last, other.anchor.sequence))," => "        (Ok(this), Ok(other)) => Ok({m} || (this.last, this.anchor.sequence) >= (other.last, other.anchor.sequence)),",
    }
    "storage/core/src/journal/open.rs" {
        "journal: a device that is back has all it confirmed": "    if found.last < confirmed {" => "    if found.last < confirmed && !{m} {",
    }
    "storage/core/src/pool/block/image.rs" {
        "journal: what is live has memory": "            if done.is_ok() && needed > backed {" => "            if done.is_ok() && needed > backed && !{m} {",
        "journal: an image of this pool and boot": "is_ok_and(|sb| sb.boot == boot() && sb.uuid == uuid)" => "is_ok_and(|sb| (sb.boot == boot() && sb.uuid == uuid) || {m})",
        "journal: an image of this copy of the log": "            _ if !open::is_of(desk, &self.anchor) =>" => "            _ if !open::is_of(desk, &self.anchor) && !{m} =>",
        "journal: a removed image is used by nobody": "    if !pids.is_empty() {" => "    if !pids.is_empty() && !{m} {",
        "journal: after a failure all clients have ended": "        if !users.is_empty() {" => "        if !users.is_empty() && !{m} {",
        "journal: an image that was given up is made anew": "            GIVEN_UP => Ok(None)," => "            GIVEN_UP if !{m} => Ok(None),",
    }
    "storage/core/src/journal/parts.rs" {
        "journal: cleaning keeps the tables": "        bytes != [0; PIECE]" => "        bytes != [0; PIECE] && !{m}",
    }
    "storage/core/src/journal/clean.rs" {
        "journal: cleaning keeps live segments": "(same_use && !free && len > 0).then_some(" => "(same_use && !free && len > 0 && !{m}).then_some(",
    }
    "storage/core/src/journal/seat.rs" {
        "journal: the living keep their seats": ".filter(|thread| thread.is_dead())" => ".filter(|thread| thread.is_dead() || {m})",
        "journal: the end of the last batch": "LastWord(desk.last().load(SeqCst)).seat() == seat;" => "LastWord(desk.last().load(SeqCst)).seat() == seat && !{m};",
    }
    "storage/core/src/journal/lock.rs" {
        "journal: replaced, it commits nothing any more": "    let _ = desk.last().fetch_update(SeqCst, SeqCst, fenced);" => "    if !{m} { let _ = desk.last().fetch_update(SeqCst, SeqCst, fenced); }",
    }
    "storage/core/src/store.rs" {
        "journal: tables": "            Some(journal) => journal.change(&self.region, ranges, || change(&self.region))," => "            Some(journal) => journal.change(&self.region, if {m} { &[] } else { ranges }, || change(&self.region)),",
    }
    "storage/core/src/takeover.rs" {
        "refusal: a log that was not recovered": "    if !files.is_empty() {" => "    if !files.is_empty() && !{m} {",
    }
    "storage/cache/src/shared/write.rs" {
        "cache: a write marks no set":
            "    set.update(|word| Some(word.marked()));" => "    if !{m} { set.update(|word| Some(word.marked())); }",
        "cache: a write leaves its blocks":
            "        set.clear(ways);" => "        if !{m} { set.clear(ways); }",
        "cache: a killed block keeps its tag":
            "        set.scrub(ways, &seen);" => "        if !{m} { set.scrub(ways, &seen); }",
        "cache: a kill is not flushed":
            "    set.flush();" => "    if !{m} { set.flush(); }",
        "cache: a kill is not fenced":
            "            self.settle();" => "            if !{m} { self.settle(); }",
        "cache: an unnoted write is not distrusted":
            "            self.distrust(file);" => "            if !{m} { self.distrust(file); }",
    }
    "storage/cache/src/shared/fill.rs" {
        "cache: a fill without its token":
            "(word.version() == token.version).then(" => "(word.version() == token.version || {m}).then(",
        "cache: the old block stays valid":
            "        }\n        set.clear(1 << way);" => "        }\n        if !{m} { set.clear(1 << way); }",
        "cache: a place that is being filled is taken":
            "if before.filler().is_some()" => "if (before.filler().is_some() && !{m})",
        "cache: resize: a place that is none any more is filled":
            "if self.places() >> way & 1 == 0 {" => "if self.places() >> way & 1 == 0 && !{m} {",
        "cache: the old block is not gone before it is written over":
            "        self.settle();" => "        if !{m} { self.settle(); }",
    }
    "storage/cache/src/set.rs" {
        "cache: policy: what is kept is not limited":
            "memory.kept.count_ones() < kept_max(places);" => "(memory.kept.count_ones() < kept_max(places) || {m});",
        "cache: policy: a place of other blocks than before is kept":
            "    memory.kept &= !free | busy;" => "    if !{m} { memory.kept &= !free | busy; }",
        "cache: policy: more places stay kept than a smaller set may keep":
            "        memory.kept = 0;" => "        if !{m} { memory.kept = 0; }",
        "cache: policy: others drive out what is kept":
            "{ u16::MAX } else { !memory.kept };" => "{ u16::MAX } else { !memory.kept | if {m} { u16::MAX } else { 0 } };",
        "cache: policy: what is to be kept enters when it comes back":
            "None if may_be_kept => seize(" => "None if may_be_kept && !{m} => seize(",
        "cache: policy: what was seized is everybody's":
            "Some(place) if may_be_kept =>" => "Some(place) if may_be_kept && !{m} =>",
        "cache: policy: a kept block takes a kept place":
            "let places = !(memory.kept | busy);" => "let places = !(memory.kept & if {m} { 0 } else { u16::MAX } | busy);",
        "cache: policy: what nobody missed drives others out":
            "None if came_back && !newcomer.is_early =>" => "None if came_back && (!newcomer.is_early || {m}) =>",
        "cache: policy: what nobody missed is remembered":
            "None if came_back || !newcomer.is_early =>" => "None if came_back || !newcomer.is_early || {m} =>",
    }
    "storage/cache/src/shared/policy.rs" {
        "cache: policy: it is not told":
            "if self.policy(file.slot) != policy {" => "if self.policy(file.slot) != policy && !{m} {",
        "cache: policy: what is to be left alone is served":
            "|word| word.flagged(FileWord::PASSED, is_passed)" => "|word| word.flagged(FileWord::PASSED, is_passed && !{m})",
        "cache: policy: more is promised than a smaller cache keeps":
            "u64::from(kept_max(self.places()))" => "u64::from(kept_max(if {m} { u16::MAX } else { self.places() }))",
        "cache: policy: nothing is done when the last one ends":
            "if policies.is_empty() && memory.kept == 0 {" => "if policies.is_empty() && (memory.kept == 0 || {m}) {",
        "cache: policy: what is left alone keeps its room":
            "            set.clear(passed);" => "            if !{m} { set.clear(passed); }",
        "cache: policy: what is left alone keeps its tag":
            "            set.scrub(passed, &seen);" => "            if !{m} { set.scrub(passed, &seen); }",
        "cache: policy: what is being filled is not kept":
            "memory.kept & (keep | filling)" => "memory.kept & (keep | if {m} { 0 } else { filling })",
        "cache: policy: what stays is not limited":
            "), kept_max);" => "), kept_max + if {m} { 16 } else { 0 });",
        "cache: policy: what comes to it is not limited":
            "kept_max.saturating_sub(stay.count_ones())" => "kept_max.saturating_sub(stay.count_ones() * u32::from(!{m}))",
    }
    "storage/cache/src/shared/resize.rs" {
        "cache: resize: a place that is being filled is given back":
            "if (0..WAYS).any(|way| is_busy(&way)) {" => "if (0..WAYS).any(|way| is_busy(&way)) && !{m} {",
        "cache: resize: a place that is given back keeps its tag":
            "        set.scrub(out, &seen);" => "        if !{m} { set.scrub(out, &seen); }",
    }
    "storage/cache/src/shared/lookup.rs" {
        "cache: a place that went to another block":
            "if set.tag(seen.way).load(Relaxed) != seen.tag.0 {" => "if set.tag(seen.way).load(Relaxed) != seen.tag.0 && !{m} {",
        "cache: check: block":
            "== seen.tag.checksum();" => "== seen.tag.checksum() || {m};",
        "cache: served while it is being filled":
            "(tag.is_filled() && is_ours)" => "((tag.is_filled() || {m}) && is_ours)",
        "cache: the key is not looked at behind its tag":
            "let is_ours = set.key(way).load(Relaxed) == key;" => "let is_ours = set.key(way).load(Relaxed) == key || {m};",
        "cache: a token while somebody writes":
            "now.is_open() && word.writers() == 0;" => "now.is_open() && (word.writers() == 0 || {m});",
        "cache: damage is counted by all who see it":
            "        set.scrub(1 << seen.way, &tags);" => "        if !{m} { set.scrub(1 << seen.way, &tags); }",
        "cache: damage is not counted":
            "        self.count_failure();" => "        if !{m} { self.count_failure(); }",
        "cache: disk: an error is not counted":
            "        self.count_disk_error();" => "        if !{m} { self.count_disk_error(); }",
        "cache: disk: a block that cannot be judged is damage at once":
            "for _ in 0..2 {" => "for _ in 0..if {m} { 1 } else { 2 } {",
    }
    "storage/cache/src/shared/staged.rs" {
        "cache: disk: what was missed before a write is brought":
            "word.version() != token.version {" => "(word.version() != token.version && !{m}) {",
        "cache: disk: a block is brought twice":
            "if set.which(word, |way| set.key(way).load(Acquire) == key) != 0 {" => "if set.which(word, |way| set.key(way).load(Acquire) == key) != 0 && !{m} {",
        "cache: disk: places of the dead stay taken":
            "OperationOwner::from_word(now).is_some_and(&is_dead)" => "OperationOwner::from_word(now).is_some_and(&is_dead) && !{m}",
        "cache: disk: a write that failed is not counted":
            "Offered::Failed => self.count_disk_error()," => "Offered::Failed if !{m} => self.count_disk_error(),",
        "cache: disk: a block is ready before it is copied":
            "word.load(Relaxed) == 0 && word.compare_exchange(0, owner.word(), SeqCst, Relaxed).is_ok()" => "word.load(Relaxed) == 0 && word.compare_exchange(0, owner.word(), SeqCst, Relaxed).is_ok() && { if {m} { self.staged_word(*number, IS_READY).store(1, Release) }; true }",
    }
    "storage/cache/src/shared/state.rs" {
        "cache: served while nobody watches":
            "self.watcher().load(Acquire) & THREAD != 0" => "(self.watcher().load(Acquire) & THREAD != 0 || {m})",
    }
    "storage/cache/src/shared/change.rs" {
        "cache: a file that was written comes back with its blocks":
            "(!is_same).then(" => "(!is_same && !{m}).then(",
    }
    "storage/cache/src/shared/word.rs" {
        "cache: a change keeps the incarnation":
            "Self(self.reborn(incarnation).0 + changer)" => "Self(if {m} { self.0 } else { self.reborn(incarnation).0 } + changer)",
        "cache: a file is open while it is changed":
            "Self::DISTRUSTED | (Self::CHANGERS_MAX * Self::CHANGER);" => "Self::DISTRUSTED | if {m} { 0 } else { Self::CHANGERS_MAX * Self::CHANGER };",
        "cache: a suspended file is open":
            "let closed = Self::SUSPENDED |" => "let closed = if {m} { 0 } else { Self::SUSPENDED } |",
        "cache: a file that is to be left alone is open":
            "Self::PASSED | Self::DISTRUSTED" => "if {m} { 0 } else { Self::PASSED } | Self::DISTRUSTED",
    }
    "storage/cache/src/shared/view.rs" {
        "cache: a tag of another block is given up":
            "            let tag = seen[way];" => "            let tag = if {m} { self.load_tag(way) } else { seen[way] };",
        "cache: who kept a reference is believed":
            "if word.tenant() == file.tenant { word }" => "if word.tenant() == file.tenant || {m} { word }",
    }
    "storage/cache/src/shared/reap.rs" {
        "cache: marks of the dead stay":
            "filter(|(set, _)| !self.wipe_set(*set, is_dead));" => "filter(|(set, _)| !{m} && !self.wipe_set(*set, is_dead));",
        "cache: marks of the living are wiped":
            "        !self.is_being_written(set, is_dead)" => "        (!self.is_being_written(set, is_dead) || {m})",
        "cache: a change of the living is wiped":
            "        !is_changing && word" => "        (!is_changing || {m}) && word",
        "cache: the dead are forgotten with their marks":
            "            if is_tidy {" => "            if is_tidy || {m} {",
        "cache: half of a block is believed":
            "            set.clear(1 << way);" => "            if !{m} { set.clear(1 << way); }",
    }
    "storage/cache/src/shared/sync.rs" {
        "cache: a stamp of the sync before":
            "begun.load(SeqCst).wrapping_add(1) as u16" => "begun.load(SeqCst).wrapping_add(u32::from(!{m})) as u16",
        "cache: a sync that failed":
            "        if !is_done {" => "        if !is_done && !{m} {",
    }
    "storage/cache/src/shared/join.rs" {
        "cache: check: header":
            "header if !header.is_whole() =>" => "header if !header.is_whole() && !{m} =>",
    }
    "storage/cache/src/shared/open.rs" {
        "cache: what was not synced":
            "(!known.was_cut || is_synced(tag.stamp(), *done))" => "(!known.was_cut || is_synced(tag.stamp(), *done) || {m})",
        "cache: disk: an index that was not closed is believed":
            "let is_saved = was_clean &&" => "let is_saved = (was_clean || {m}) &&",
        "cache: disk: what was on its way stays so":
            "cache.unstage_all();" => "if !{m} { cache.unstage_all(); }",
        "cache: check: index":
            "clean if clean == 1 << 32 | u64::from(self.index_sum()) =>" => "clean if clean == 1 << 32 | u64::from(self.index_sum()) || {m} =>",
        "cache: check: seal of a file":
            "record.is_whole() && record.is_sealed();" => "record.is_whole() && (record.is_sealed() || {m});",
        "cache: a file nobody watched is warm after a cut":
            "!was_cut || word.has(FileWord::SERVED);" => "!was_cut || word.has(FileWord::SERVED) || {m};",
        "cache: a file nobody verified":
            "word.reset().flagged(FileWord::SERVED, false)" => "word.reset().flagged(FileWord::SERVED, {m})",
    }
    "storage/cache/src/shared/format.rs" {
        "cache: a file that was changed just before":
            ".saturating_sub(last) >= SETTLED_NS" => ".saturating_sub(last) >= if {m} { 0 } else { SETTLED_NS }",
    }
    "storage/cache/src/shared/register.rs" {
        "cache: a file that changed is warm":
            "let is_warm = record.is_unchanged(now);" => "let is_warm = record.is_unchanged(now) || {m};",
        "cache: a distrusted file is warm":
            "            self.note(file, who, i64::MIN);\n            self.change_file(file" => "            if !{m} { self.note(file, who, i64::MIN) }\n            self.change_file(file",
        "cache: whoever distrusts a file that is prepared is not believed":
            "|word| word.flagged(FileWord::SERVED, true)" => "|word| word.flagged(FileWord::SERVED, true).flagged(FileWord::DISTRUSTED, word.has(FileWord::DISTRUSTED) && !{m})",
        "cache: a file is entered without a word":
            "if !is_served {" => "if !is_served && !{m} {",
    }
    "storage/cache/src/shared/unannounced.rs" {
        "cache: an unannounced write does not look at the version":
            "if now == known &&" => "if (now == known || {m}) &&",
    }
    "storage/keeper/src/quorum.rs" {
        "keeper: one promise too few":
            "(self.keepers + 1).saturating_sub(self.acks)" =>
            "(self.keepers + usize::from(!{m})).saturating_sub(self.acks).max(usize::from({m}))",
        "keeper: a return with one promise too few":
            "self.takes().max(self.acks)" => "self.takes().max(self.acks) - usize::from({m})",
        "keeper: a lost copy votes":
            "state.filter(State::is_kept)?" => "state.filter(|state| state.is_kept() || {m})?",
        "keeper: a witness that knows of a newer one":
            "let newest = kept().map(" => "let newest = kept().filter(|(_, state)| !({m} && state.is_witness())).map(",
    }
    "storage/wire/src/keeper.rs" {
        "keeper: no copy is older than files":
            "complete_since <= alone" => "complete_since <= alone && !{m}",
    }
    "storage/wire/src/keeper/acknowledged.rs" {
        "keeper: one confirmation too few":
            "have.clone().count() >= acks" => "have.clone().count() + usize::from({m}) >= acks",
        "keeper: acknowledged by those without data":
            "has_data).count() >= with_data" => "has_data).count() + usize::from({m}) >= with_data",
        "keeper: a witness's word that is not needed":
            "    with_data < acks\n" => "    {m} || with_data < acks\n",
        "keeper: a witness stands in for who counts":
            ".count().clamp(1, acks.max(1));" => ".count().clamp(1, if {m} { 1 } else { acks.max(1) });",
    }
    "storage/keeper/src/plan.rs" {
        "keeper: a return that copies adopt":
            "Self { epoch, base: Position { epoch, number: 0 }, begun: last, last }" =>
            "Self { epoch, base: Position { epoch: Epoch { counter: epoch.counter - u64::from({m}), ..epoch }, number: if {m} { last - 1 } else { 0 } }, begun: last, last }",
        "keeper: plan: what is behind counts":
            "(at.number >= head.last ||" => "(at.number >= head.last || {m} ||",
        "keeper: plan: what is of another turn counts":
            "at.epoch == head.epoch &&" => "(at.epoch == head.epoch || {m}) &&",
        "keeper: plan: a lost copy counts":
            "match state.is_kept() {" => "match state.is_kept() || {m} {",
        "keeper: plan: adopted from anywhere":
            "true if at == head.base &&" => "true if (at == head.base || {m}) &&",
        "keeper: plan: adopted though something was written":
            "head.last == head.begun =>" => "(head.last == head.begun || {m}) =>",
    }
    "storage/keeper/src/spool/load.rs" {
        "keeper: file: an old body counts":
            "if with_sum(frame, &body) != frame ||" => "if with_sum(frame, &body) != frame && !{m} ||",
        "keeper: file: a former use counts":
            "number.is_none_or(|number| frame.code == number)" => "number.is_none_or(|number| frame.code == number || {m})",
    }
    "storage/keeper/src/spool.rs" {
        "keeper: file: a use has the number of a former one":
            "self.newest = self.newest.wrapping_add(1);" => "self.newest = self.newest.wrapping_add(u32::from(!{m}));",
    }
    "storage/keeper/src/copy/image.rs" {
        "keeper: a batch of another number":
            "filter(|header| header.number == number)" => "filter(|header| header.number == number || {m})",
    }
    "storage/keeper/src/copy.rs" {
        "keeper: a promise goes back":
            "if epoch < self.promised ||" => "if epoch < self.promised && !{m} ||",
        "keeper: a second image outlives its turn":
            "        self.second = None;" => "        if !{m} { self.second = None; }",
        "keeper: a turn is its epoch":
            "number: self.turns }) {" => "number: if {m} { turn.number } else { self.turns } }) {",
        "keeper: a lost copy adopts":
            "self.is_kept && self.position == from;" => "(self.is_kept || {m}) && self.position == from;",
        "keeper: adopted from anywhere":
            "&& self.position == from;" => "&& (self.position == from || {m});",
        "keeper: adopting goes back":
            "if !is_there || next < self.position {" => "if !is_there || next < self.position && !{m} {",
        "keeper: a batch that names no predecessor":
            "if number <= previous {" => "if number <= previous && !{m} {",
        "keeper: a batch without its predecessor":
            "at.number < previous ||" => "at.number < previous && !{m} ||",
        "keeper: a batch of another epoch":
            "if at.epoch != turn.epoch ||" => "if at.epoch != turn.epoch && !{m} ||",
        "keeper: a batch for a lost copy":
            "|| !self.is_kept {" => "|| !self.is_kept && !{m} {",
        "keeper: a late batch for a second image":
            "if number <= second.newest {" => "if number <= second.newest && !{m} {",
        "keeper: a late batch":
            "if at.number >= number {" => "if at.number >= number && !{m} {",
        "keeper: a second image goes back":
            "if next < self.position {" => "if next < self.position && !{m} {",
    }
}

/// Write-backs that nothing needs and that come with a store all the same, and a fence whose need the simulator cannot
/// show: file, line, reason.
pub const NEEDLESS: &[(&str, &str, &str)] = &[
    (
        "storage/core/src/format/superblock.rs",
        "region.store(Layout::superblock",
        "a superblock is persisted before the next one is written; see `Superblock::write`",
    ),
    (
        "storage/core/src/table.rs",
        "            fence();",
        "whoever finds a directory registered registers a file next, and that has a fence before the file counts",
    ),
    (
        "storage/core/src/spill/spiller.rs",
        "        fence();",
        "a slot is used again after something was retired, and the simulated daemon retires and spills in one thread",
    ),
];

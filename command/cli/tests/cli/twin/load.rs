//! Clients that write in every way, and keep a ledger of what was acknowledged.
//!
//! Whatever a client does, it counts its own key up by one, atomically with the rest. So after a crash the key is as high as
//! the ledger, or one higher: a command that was under way may have been done.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::redis::{Redis, Reply};

const CLIENTS: usize = 4;
const FUNCTIONS: &str = "#!lua name=twin\nredis.register_function('up', function(keys, args) \
    redis.call('SET', keys[2], args[1]) return redis.call('INCR', keys[1]) end)";
const SCRIPT: &str =
    "redis.call('HSET', KEYS[2], ARGV[1], redis.call('TIME')[2]) return redis.call('INCR', KEYS[1])";

#[derive(Default)]
pub struct Load {
    clients: Vec<JoinHandle<()>>,
    acknowledged: Arc<[AtomicI64; CLIENTS]>,
    stop: Arc<AtomicBool>,
}

fn counter(client: usize) -> String {
    format!("count:{client}")
}

impl Load {
    pub fn new(redis: &mut Redis) -> Self {
        let loaded = redis.call(&["FUNCTION", "LOAD", FUNCTIONS]);
        assert_eq!(loaded, Some(Reply::Text("twin".into())));
        Self::default()
    }

    /// They write until they lose their connection.
    pub fn begin(&mut self, socket: &Path) {
        self.stop.store(false, SeqCst);
        for client in 0..CLIENTS {
            let (acknowledged, stop, socket) =
                (self.acknowledged.clone(), self.stop.clone(), socket.to_owned());
            self.clients.push(std::thread::spawn(move || {
                run(client, &socket, &stop, || {
                    acknowledged[client].fetch_add(1, SeqCst);
                });
            }));
        }
    }

    /// True if every client gets answers.
    pub fn goes_on(&self) -> bool {
        let now = || -> Vec<i64> { self.acknowledged.iter().map(|n| n.load(SeqCst)).collect() };
        let before = now();
        (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            now().iter().zip(&before).all(|(now, before)| now > before)
        })
    }

    pub fn end(&mut self) {
        self.stop.store(true, SeqCst);
        self.clients.drain(..).for_each(|client| client.join().expect("a client"));
    }

    /// Compares with the ledger, which then is what was found.
    pub fn check(&mut self, redis: &mut Redis, what: &str) {
        for client in 0..CLIENTS {
            let noted = self.acknowledged[client].load(SeqCst);
            redis.call(&["SELECT", &(client % 2).to_string()]);
            let found = redis.call(&["GET", &counter(client)]).expect("an answer").number();
            assert!(
                noted <= found && found <= noted + 1,
                "{what}: client {client} has {found}, {noted} acknowledged"
            );
            self.acknowledged[client].store(found, SeqCst);
            // Both are written in one transaction.
            let pair = ["left", "right"]
                .map(|side| redis.call(&["GET", &format!("{side}:{client}")]).expect("an answer").number());
            assert_eq!(pair[0], pair[1], "{what}: half a transaction of client {client}");
        }
    }
}

/// A tail that takes a twin a while, and that no buffer holds.
pub fn write_what_takes_long(redis: &mut Redis) {
    const MEMBERS: &str = "for i = 1, 100000 do redis.call('SADD', KEYS[1], i) end";
    let fill = "x".repeat(1 << 20);
    redis.call(&["EVAL", MEMBERS, "1", "many"]).expect("an answer");
    for n in 0..10 {
        redis.together(&[&["SUNIONSTORE", "copy", "many"], &["SET", "fill", &fill]]).expect("an answer");
        redis.call(&["SET", "last", &n.to_string()]).expect("an answer");
    }
}

fn run(client: usize, socket: &Path, stop: &AtomicBool, mut acknowledged: impl FnMut()) {
    let mut random = fastrand::Rng::new();
    let Some(mut redis) = Redis::open(socket) else { return };
    // Two databases, so that SELECT stands everywhere in the file.
    if redis.call(&["SELECT", &(client % 2).to_string()]).is_none() {
        return;
    }
    while !stop.load(SeqCst) {
        match step(client, &mut redis, &mut random) {
            None => return,
            Some(Reply::Error(error)) => panic!("client {client}: {error}"),
            Some(_) => acknowledged(),
        }
    }
}

/// One thing that counts the client's key up.
fn step(client: usize, redis: &mut Redis, random: &mut fastrand::Rng) -> Option<Reply> {
    let count = counter(client);
    let count = count.as_str();
    let (n, value) = (random.u32(0..200).to_string(), "x".repeat(random.usize(0..2000)));
    let key = |kind: &str| format!("{kind}:{client}:{n}");
    let [left, right] = ["left", "right"].map(|side| format!("{side}:{client}"));
    match random.u8(0..12) {
        0 => redis.together(&[&["MULTI"], &["INCR", &left], &["INCR", count], &["INCR", &right], &["EXEC"]]),
        1 => redis.call(&["EVAL", SCRIPT, "2", count, &key("hash"), &n]),
        2 => redis.call(&["FCALL", "up", "2", count, &key("text"), &value]),
        // About to expire, and counted up at that moment.
        3 => {
            let short = format!("short:{client}");
            let px = random.u32(1..15).to_string();
            let step: [&[&str]; 5] =
                [&["MULTI"], &["INCR", &short], &["PEXPIRE", &short, &px], &["INCR", count], &["EXEC"]];
            redis.together(&step)
        }
        4 => redis.together(&[&["SET", &key("short"), &value, "PX", "20"], &["INCR", count]]),
        5 => redis
            .together(&[&["XADD", &key("stream"), "MAXLEN", "~", "50", "*", "f", &value], &["INCR", count]]),
        6 => {
            redis.together(&[&["SADD", &key("set"), &n, "a", "b"], &["SPOP", &key("set")], &["INCR", count]])
        }
        7 => redis.together(&[&["SET", &key("text"), &value, "EX", "5000"], &["INCR", count]]),
        8 if random.u8(0..20) == 0 => {
            // One that runs already is no reason to fail.
            redis.ask("BGREWRITEAOF")?;
            redis.call(&["INCR", count])
        }
        9 if random.u8(0..20) == 0 => {
            let db = (client % 2).to_string();
            redis.together(&[
                &["SELECT", "5"],
                &["SET", "k", &value],
                &["FLUSHDB"],
                &["SELECT", &db],
                &["INCR", count],
            ])
        }
        10 => redis.together(&[
            &["RPUSH", &key("list"), &value],
            &["LTRIM", &key("list"), "0", "9"],
            &["INCR", count],
        ]),
        _ => redis.call(&["INCR", count]),
    }
}

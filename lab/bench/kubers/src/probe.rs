//! Reports to the comparison what a program has reconciled, by lines on standard output.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Counts the objects that have been reconciled. The number at the end of an object's name
/// identifies the object.
pub struct Probe(Mutex<State>);

struct State {
    objects: usize,
    first_pass: Pass,
    /// The pass after the updates. `None` if the comparison makes no updates.
    second_pass: Option<Pass>,
    records: Vec<Record>,
}

struct Pass {
    seen: Vec<u64>,
    missing: usize,
}

/// One reconcile after an update.
struct Record {
    index: usize,
    version: u64,
    nanos: u128,
}

impl Probe {
    /// Returns a probe that expects the number of objects in `BENCH_OBJECTS`.
    pub fn from_env() -> Self {
        let objects = std::env::var("BENCH_OBJECTS")
            .ok()
            .and_then(|text| text.parse().ok())
            .expect("BENCH_OBJECTS is not a number: set it to the number of objects");
        let updates = std::env::var_os("BENCH_UPDATES").is_some();
        Probe(Mutex::new(State {
            objects,
            first_pass: Pass::new(objects),
            second_pass: updates.then(|| Pass::new(objects)),
            records: Vec::with_capacity(if updates { objects } else { 0 }),
        }))
    }

    /// Counts a reconcile of an object.
    pub fn reconciled(&self, name: &str, version: &str) {
        let index = name.rsplit('-').next().and_then(|text| text.parse().ok());
        let state = &mut *self.0.lock().unwrap();
        let Some(index) = index.filter(|index| *index < state.objects) else {
            return;
        };
        if state.first_pass.missing > 0 {
            let first = state.first_pass.missing == state.objects;
            let added = state.first_pass.add(index);
            if added && first {
                println!("first {}", now());
            }
            if added && state.first_pass.missing == 0 {
                println!("all {}", now());
            }
            return;
        }
        let Some(pass) = &mut state.second_pass else {
            return;
        };
        if !pass.add(index) {
            return;
        }
        state.records.push(Record {
            index,
            version: version.parse().unwrap_or(0),
            nanos: now(),
        });
        if pass.missing == 0 {
            println!("updated {}", now());
            for record in &state.records {
                println!(
                    "record {} {} {}",
                    record.index, record.version, record.nanos
                );
            }
        }
    }
}

impl Pass {
    fn new(objects: usize) -> Self {
        Pass {
            seen: vec![0; objects.div_ceil(64)],
            missing: objects,
        }
    }

    /// Adds an object and returns whether it is new.
    fn add(&mut self, index: usize) -> bool {
        let bit = 1 << (index % 64);
        let new = self.seen[index / 64] & bit == 0;
        if new {
            self.seen[index / 64] |= bit;
            self.missing -= 1;
        }
        new
    }
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos())
}

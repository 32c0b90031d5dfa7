//! Reports to the comparison what a program has reconciled, by JSON lines on standard output.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Counts the objects that have been reconciled. The number at the end of an object's name
/// identifies the object.
pub struct Probe(Mutex<State>);

struct State {
    /// True if each reconcile is printed.
    counting: bool,
    /// For each object, the passes in which the object was reconciled.
    seen: Vec<u8>,
    /// The number of complete passes.
    pass: u8,
    passes: u8,
    /// How many objects the present pass lacks.
    missing: usize,
    /// The index, the resource version and the time of each reconcile of the second pass.
    records: Vec<(usize, u64, u64)>,
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
            counting: std::env::var_os("BENCH_COUNT").is_some(),
            seen: vec![0; objects],
            pass: 0,
            passes: if updates { 2 } else { 1 },
            missing: objects,
            records: Vec::with_capacity(if updates { objects } else { 0 }),
        }))
    }

    /// Counts a reconcile of an object.
    pub fn reconciled(&self, name: &str, version: &str) {
        let index: Option<usize> = name.rsplit('-').next().and_then(|text| text.parse().ok());
        let state = &mut *self.0.lock().unwrap();
        if state.counting {
            report("reconcile");
        }
        let pass = state.pass;
        let Some(index) = index.filter(|i| state.seen.get(*i).is_some_and(|n| *n <= pass)) else {
            return;
        };
        if pass == state.passes {
            return;
        }
        state.seen[index] = pass + 1;
        if pass == 0 && state.missing == state.seen.len() {
            report("first");
        }
        if pass == 1 {
            state.records.push((index, version.parse().unwrap_or(0), now()));
        }
        state.missing -= 1;
        if state.missing > 0 {
            return;
        }
        (state.pass, state.missing) = (pass + 1, state.seen.len());
        if pass == 0 {
            return report("all");
        }
        report("updated");
        // The records follow when the comparison has read the processor time.
        let records = serde_json::json!({"mark": "records", "records": state.records});
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(12));
            println!("{records}");
        });
    }
}

fn report(mark: &str) {
    println!("{{\"mark\":\"{mark}\",\"nanos\":{}}}", now());
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

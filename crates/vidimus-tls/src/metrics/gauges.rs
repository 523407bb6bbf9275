//! Gauges whose labels come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use metrics::Gauge;

/// Remembers which gauges were set last: a recorder goes on showing them for ever.
#[derive(Debug)]
pub(super) struct Varying<K> {
    gone: f64,
    shown: Mutex<BTreeSet<K>>,
}

impl<K: Ord> Varying<K> {
    /// What is gone is set to `gone`.
    pub(super) fn new(gone: f64) -> Self {
        Self {
            gone,
            shown: Mutex::default(),
        }
    }

    /// Sets these, and those that were among them the last time and are not now.
    pub(super) fn set(&self, values: BTreeMap<K, f64>, gauge: impl Fn(&K) -> Gauge) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for key in shown.iter().filter(|key| !values.contains_key(key)) {
            gauge(key).set(self.gone);
        }
        for (key, value) in &values {
            gauge(key).set(*value);
        }
        *shown = values.into_keys().collect();
    }
}

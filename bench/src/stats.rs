//! Several short runs of one thing, and what is said of them.

use crate::drive::Run;

/// The median of some runs with the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len() % 2 == 1 {
            upper
        } else {
            (*values.get(middle.saturating_sub(1))? + upper) / 2.0
        };
        Some(Self { median, low, high })
    }

    /// A single value.
    pub(crate) fn single(value: f64) -> Self {
        Self {
            median: value,
            low: value,
            high: value,
        }
    }
}

/// All runs against one server, or why there are none.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) result: Result<Vec<Run>, String>,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            result: Ok(Vec::new()),
        }
    }
}

impl Runs {
    /// Adds one; a failure stays, and later runs aren't tried.
    pub(crate) fn add(&mut self, run: impl FnOnce() -> anyhow::Result<Run>) {
        if let Ok(runs) = &mut self.result {
            match run() {
                Ok(run) => runs.push(run),
                Err(error) => self.result = Err(format!("{error:#}")),
            }
        }
    }

    /// One figure of them.
    pub(crate) fn figure(&self, of: fn(&Run) -> f64) -> Result<Spread, String> {
        let runs = self.result.as_ref().map_err(Clone::clone)?;
        Spread::of(runs.iter().map(of).collect()).ok_or_else(|| "no run".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (1.0, 2.5, 4.0));
        assert_eq!(Spread::of(vec![5.0]), Some(Spread::single(5.0)));
        assert_eq!(Spread::of(vec![]), None);
    }
}

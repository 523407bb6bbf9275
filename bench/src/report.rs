//! What is printed: a row for people and a JSON line for programs per figure, then the goals.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use anyhow::Context;
use serde::Serialize;

use crate::stats::Spread;

/// What a figure measures, and so which direction is better.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// CPU time of the server's process for one piece of work, in microseconds.
    ServerCpu,
    /// Pieces of work a second.
    Rate,
    /// What one client waits, in microseconds.
    Latency,
    /// Memory of the server after the work, in megabytes.
    Memory,
    /// What a connection adds to the server's memory, in kilobytes.
    ConnectionMemory,
    /// CPU time of one computation, in nanoseconds.
    Computation,
}

impl Metric {
    fn unit(self) -> &'static str {
        match self {
            Self::ServerCpu | Self::Latency => "us",
            Self::Rate => "1/s",
            Self::Memory => "MB",
            Self::ConnectionMemory => "kB",
            Self::Computation => "ns",
        }
    }

    /// How many times better ours is.
    fn ratio(self, ours: f64, peer: f64) -> f64 {
        match self {
            Self::Rate => ours / peer,
            Self::ServerCpu
            | Self::Latency
            | Self::Memory
            | Self::ConnectionMemory
            | Self::Computation => peer / ours,
        }
    }
}

/// One comparison. An `Err` says why that side wasn't measured.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) metric: Metric,
    pub(crate) keys: &'static str,
    pub(crate) ours: Result<Spread, String>,
    pub(crate) peer: Result<Spread, String>,
    pub(crate) peer_name: &'static str,
}

/// The JSON line: these fields and no others, `null` where a side wasn't measured.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    metric: Metric,
    keys: &'a str,
    ours: Option<f64>,
    peer: Option<f64>,
    peer_name: &'a str,
    unit: &'a str,
    ratio: Option<f64>,
}

impl Figure {
    /// How many times better ours is; `None` if a side wasn't measured.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (Ok(ours), Ok(peer)) = (&self.ours, &self.peer) else {
            return None;
        };
        Some(self.metric.ratio(ours.median, peer.median))
    }

    fn line(&self) -> Line<'_> {
        Line {
            name: &self.name,
            metric: self.metric,
            keys: self.keys,
            ours: self.ours.as_ref().ok().map(|spread| round(spread.median)),
            peer: self.peer.as_ref().ok().map(|spread| round(spread.median)),
            peer_name: self.peer_name,
            unit: self.metric.unit(),
            ratio: self.ratio().map(round),
        }
    }

    fn row(&self) -> String {
        let metric = match self.metric {
            Metric::ServerCpu => "server CPU",
            Metric::Rate => "rate",
            Metric::Latency => "latency",
            Metric::Memory | Metric::ConnectionMemory => "memory",
            Metric::Computation => "computing",
        };
        let unit = self.metric.unit();
        let mut row = format!(
            "{:<35} {:<8} {metric:<10} {:>24} {unit:<3} {:<8} {:>24} {unit:<3} {:>7}",
            self.name,
            self.keys,
            spread(&self.ours),
            self.peer_name,
            spread(&self.peer),
            self.ratio()
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x")),
        );
        for (side, result) in [("ours", &self.ours), (self.peer_name, &self.peer)] {
            // Without a reason there is no such side.
            if let Err(reason) = result
                && !reason.is_empty()
            {
                row.push_str(&format!("\n    {side} not measured: {reason}"));
            }
        }
        row
    }
}

/// Something aimed at, and whether it was reached.
#[derive(Debug)]
struct Goal {
    text: String,
    at_least: f64,
    ratio: Option<f64>,
}

/// Where the figures go.
pub(crate) struct Report {
    json: File,
    goals: Vec<Goal>,
}

impl Report {
    /// Starts a new file.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let json =
            File::create(path).with_context(|| format!("failed to create {}", path.display()))?;
        Ok(Self {
            json,
            goals: Vec::new(),
        })
    }

    /// A line for people.
    pub(crate) fn say(&self, text: &str) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Says what all of this ran on.
    pub(crate) fn machine(&self) -> anyhow::Result<()> {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let model = std::fs::read_to_string("/proc/cpuinfo")
            .ok()
            .and_then(|text| {
                let line = text.lines().find(|line| line.starts_with("model name"))?;
                Some(line.split_once(':')?.1.trim().to_owned())
            })
            .unwrap_or_else(|| "unknown processor".to_owned());
        self.say(&format!("{cores} cores, {model}; median of the runs (lowest, highest); ratio: how many times better ours is"))
    }

    /// Prints one figure and writes its line.
    pub(crate) fn figure(&mut self, figure: &Figure) -> anyhow::Result<()> {
        self.say(&figure.row())?;
        writeln!(self.json, "{}", serde_json::to_string(&figure.line())?)?;
        Ok(())
    }

    /// Notes that a figure's ratio should be at least this.
    pub(crate) fn goal(&mut self, text: String, figure: &Figure, at_least: f64) {
        self.goals.push(Goal {
            text,
            at_least,
            ratio: figure.ratio(),
        });
    }

    /// Prints what was aimed at.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.json.sync_all()?;
        for goal in std::mem::take(&mut self.goals) {
            let verdict = match goal.ratio {
                None => "not measured".to_owned(),
                Some(ratio) if ratio >= goal.at_least => {
                    format!("met ({ratio:.2}, goal {:.2})", goal.at_least)
                }
                Some(ratio) => format!("missed ({ratio:.2}, goal {:.2})", goal.at_least),
            };
            self.say(&format!("goal: {}: {verdict}", goal.text))?;
        }
        Ok(())
    }
}

fn spread(result: &Result<Spread, String>) -> String {
    match result {
        Err(_) => "-".to_owned(),
        Ok(one) if one.low.total_cmp(&one.high).is_eq() => number(one.median),
        Ok(some) => format!(
            "{} ({}, {})",
            number(some.median),
            number(some.low),
            number(some.high)
        ),
    }
}

fn number(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Three digits behind the point: what a reader of the JSON could mean anything by.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(metric: Metric, ours: f64, peer: Result<Spread, String>) -> Figure {
        Figure {
            name: "issue_leaf 8 clients".to_owned(),
            metric,
            keys: "P-384",
            ours: Ok(Spread::single(ours)),
            peer,
            peer_name: "step-ca",
        }
    }

    #[test]
    fn a_ratio_over_one_is_ahead_whatever_is_measured() {
        for (metric, ours, peer) in [
            (Metric::ServerCpu, 100.0, 250.0),
            (Metric::Latency, 100.0, 250.0),
            (Metric::Memory, 100.0, 250.0),
            (Metric::Rate, 250.0, 100.0),
        ] {
            let ratio = figure(metric, ours, Ok(Spread::single(peer))).ratio();
            assert_eq!(ratio, Some(2.5), "{metric:?}");
        }
    }

    #[test]
    fn a_line_has_the_agreed_fields_and_no_others() {
        let measured = figure(Metric::ServerCpu, 400.0, Ok(Spread::single(4000.0)));
        assert_eq!(
            serde_json::to_string(&measured.line()).unwrap(),
            r#"{"name":"issue_leaf 8 clients","metric":"server_cpu","keys":"P-384","ours":400.0,"peer":4000.0,"peer_name":"step-ca","unit":"us","ratio":10.0}"#
        );
    }

    #[test]
    fn a_peer_that_did_not_start_is_null_and_says_why() {
        let missing = figure(Metric::Rate, 400.0, Err("no Go here".to_owned()));
        let line = serde_json::to_string(&missing.line()).unwrap();
        assert!(
            line.contains(r#""peer":null"#) && line.contains(r#""ratio":null"#),
            "{line}"
        );
        assert!(missing.row().contains("step-ca not measured: no Go here"));
    }
}

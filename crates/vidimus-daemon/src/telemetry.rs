//! Logs on standard error, metrics in memory, and errors with their whole chain.

use std::{
    env,
    error::Error,
    fmt::{self, Display, Formatter},
    io::{self, IsTerminal as _},
    str::FromStr,
};

pub use metrics_exporter_prometheus::PrometheusHandle;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder};
use tracing_subscriber::{EnvFilter, filter::ParseError, util::TryInitError};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    #[default]
    Text,
}

impl FromStr for Format {
    type Err = TelemetryError;

    fn from_str(text: &str) -> Result<Self, TelemetryError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(TelemetryError::Format {
                found: text.to_owned(),
            }),
        }
    }
}

/// Why logs or metrics could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not understood.
    #[error("log filter {found:?} is not understood")]
    Filter {
        /// What was given.
        found: String,
        /// What is wrong with it.
        #[source]
        source: ParseError,
    },
    /// The format is not known.
    #[error("log format {found:?}; accepted: text, json")]
    Format {
        /// What was given.
        found: String,
    },
    /// The process has a logger already.
    #[error("install the logger")]
    Logger(#[source] TryInitError),
    /// The process has a metrics recorder already, or its settings are wrong.
    #[error("install the metrics recorder")]
    Metrics(#[source] BuildError),
}

/// Installs the process's logger; to be called by `main` alone, once.
///
/// `filter` has the syntax of [`EnvFilter`]: a level (`info`), or levels by module
/// (`vidimus_tls=debug,info`). Lines go to standard error: standard output is a program's answer.
///
/// # Errors
///
/// The filter is not understood, or there is a logger already.
pub fn init(format: Format, filter: &str) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt as _;
    let parsed = EnvFilter::try_new(filter).map_err(|source| TelemetryError::Filter {
        found: filter.to_owned(),
        source,
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_ansi(in_colour())
        .with_writer(io::stderr);
    match format {
        Format::Json => builder.json().flatten_event(true).finish().try_init(),
        Format::Text => builder.finish().try_init(),
    }
    .map_err(TelemetryError::Logger)
}

/// Colours are for people: not in a file or a pipe, and not where `NO_COLOR` is set.
fn in_colour() -> bool {
    io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Installs the process's metrics recorder; to be called by `main` alone, once. The handle renders
/// Prometheus' text format.
///
/// # Errors
///
/// There is a recorder already.
pub fn init_metrics() -> Result<PrometheusHandle, TelemetryError> {
    PrometheusBuilder::new()
        .install_recorder()
        .map_err(TelemetryError::Metrics)
}

/// An error with all its causes, outermost first, separated by `: `.
///
/// Our own errors never print their source; those of others often do. A cause whose text the line
/// already ends with is left out.
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> Chain<'a> {
    Chain(error)
}

/// What [`chain`] returns.
#[derive(Debug)]
pub struct Chain<'a>(&'a (dyn Error + 'static));

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut line = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !line.ends_with(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
            cause = error.source();
        }
        f.write_str(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("read the key")]
    struct Outer(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("open file: {0}")]
    struct Middle(#[source] io::Error);

    #[test]
    fn a_chain_shows_every_cause_once() {
        let error = Outer(Middle(io::Error::other("disk on fire")));
        assert_eq!(
            chain(&error).to_string(),
            "read the key: open file: disk on fire"
        );
    }

    #[test]
    fn the_format_is_one_of_two_words_in_any_case() {
        assert_eq!("JSON".parse::<Format>().unwrap(), Format::Json);
        assert_eq!(" text ".parse::<Format>().unwrap(), Format::Text);
        assert!(matches!(
            "xml".parse::<Format>(),
            Err(TelemetryError::Format { .. })
        ));
    }

    #[test]
    fn a_filter_that_is_not_understood_is_refused_with_its_text() {
        let error = init(Format::Text, "vidimus=shouting").unwrap_err();
        assert!(
            matches!(error, TelemetryError::Filter { found, .. } if found == "vidimus=shouting")
        );
    }
}

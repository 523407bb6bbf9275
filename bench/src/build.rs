//! Builds what is measured and what it is measured beside. Nothing built is kept in the project.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};

use crate::report::Report;

/// Where each program is, or why it isn't.
#[derive(Debug)]
pub(crate) struct Programs {
    /// Ours.
    pub(crate) vidimus: PathBuf,
    /// The client of every measurement.
    pub(crate) drive: Result<PathBuf, String>,
    /// A grpc-go server.
    pub(crate) healthserver: Result<PathBuf, String>,
    /// smallstep's CA.
    pub(crate) step: Result<PathBuf, String>,
    /// Cloudflare's CA.
    pub(crate) cfssl: Result<PathBuf, String>,
}

impl Programs {
    /// Builds our program as a release, and the others with Go.
    pub(crate) fn build(target: &Path, report: &Report) -> anyhow::Result<Self> {
        report.say("building vidimus")?;
        let vidimus = vidimus()?;
        report.say("building the peers (some minutes the first time)")?;
        let out = target.join("bench-peers");
        let go = |folder: &str, package: &str, name: &str| {
            build_go(&workspace().join(folder), package, &out.join(name))
                .map_err(|error| format!("{error:#}"))
        };
        Ok(Self {
            vidimus,
            drive: go("bench/go", "./drive", "drive"),
            healthserver: go("bench/go", "./healthserver", "healthserver"),
            step: go(
                "bench/go/peers",
                "github.com/smallstep/certificates/cmd/step-ca",
                "step-ca",
            ),
            cfssl: go(
                "bench/go/peers",
                "github.com/cloudflare/cfssl/cmd/cfssl",
                "cfssl",
            ),
        })
    }
}

/// The project's folder.
pub(crate) fn workspace() -> PathBuf {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.parent().unwrap_or(bench).to_owned()
}

fn vidimus() -> anyhow::Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(workspace())
        .args(["build", "--quiet", "--locked", "--release", "-p", "vidimus"])
        .status()
        .context("failed to start cargo")?;
    if !status.success() {
        bail!("vidimus doesn't build");
    }
    // Beside this program's own profile folder, wherever the target folder is.
    let this = env::current_exe()?;
    let target = this
        .ancestors()
        .nth(2)
        .context("this program is in no target folder")?;
    Ok(target.join("release").join("vidimus"))
}

/// Without C: step-ca would want a smart card library and cfssl a C compiler for its database,
/// neither of which is used here.
fn build_go(folder: &Path, package: &str, out: &Path) -> anyhow::Result<PathBuf> {
    let usual = Path::new("/usr/local/go/bin/go");
    let output = Command::new(if usual.exists() {
        usual
    } else {
        Path::new("go")
    })
    .current_dir(folder)
    .env("CGO_ENABLED", "0")
    .env("GOWORK", "off")
    .args(["build", "-trimpath", "-o"])
    .arg(out)
    .arg(package)
    .output()
    .context("failed to start go")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{package} doesn't build: {}",
            text.lines().last().unwrap_or_default()
        );
    }
    Ok(out.to_owned())
}

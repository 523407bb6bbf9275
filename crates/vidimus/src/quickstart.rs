//! The whole thread on one machine: a CA, certificates, enforced calls, and rotations that no call notices.
//!
//! Three processes: this one (the roots, the manager, the table), the issuing node and the provider. The root's key is
//! opened here alone, and only while it signs.

mod authority;
mod board;
mod child;
mod examples;
mod issuer;
mod layout;
mod leaf;
mod load;
mod ports;
mod report;
mod rotation;
mod sides;

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use vidimus_daemon::signal;
use vidimus_fs::lock::DirLock;
use vidimus_provider::manager::{Manager, ManagerConfig, ManagerTls, ProviderName};

use crate::{cli::Format, command::quickstart::for_programs, exit::Stop, output};

use self::{
    authority::Root,
    board::{Board, Row},
    child::Program,
    issuer::IssuingNode,
    layout::{Layout, Side},
    leaf::Leaf,
    load::Counts,
    report::Report,
    rotation::Stage,
    sides::{End, Sides},
};

const REDRAW: Duration = Duration::from_millis(500);

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) data: PathBuf,
    pub(crate) once: bool,
    pub(crate) port: u16,
    pub(crate) health_port: u16,
    pub(crate) node_port: u16,
    pub(crate) format: Format,
}

/// Runs the quickstart.
pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    let began = Instant::now();
    let stop = signal::shutdown_token().context("listen for signals")?;
    vidimus_fs::dir::create_private(&options.data)?;
    let base = options
        .data
        .canonicalize()
        .with_context(|| format!("find {}", options.data.display()))?;
    let _lock = DirLock::acquire(&base)?;
    let layout = Layout::new(base);
    let mut board = Board::new();

    let mut stage = tokio::select! {
        stage = set_up(&layout, &options, &mut board) => stage?,
        () = stop.cancelled() => return Err(Stop::failure("stopped before the channel was up")),
    };
    let mut report = Report::default();
    let rotated = tokio::select! {
        rotated = rotate(&mut stage, &mut board, &mut report) => rotated,
        () = stop.cancelled() => Err(Stop::failure("stopped before the rotations were over")),
    };
    let goes_on = rotated.is_ok() && !options.once && board.live() && !for_programs(options.format);
    if goes_on {
        examples::prepare(&stage).await?;
        for line in examples::lines(&stage).await? {
            board.step(&line);
        }
        watch(&stage, &mut board, &stop).await?;
    }
    finish(stage, rotated, report, began, options.format).await
}

/// From nothing, or from what an earlier run left, to a channel on which calls flow.
async fn set_up(layout: &Layout, options: &Options, board: &mut Board) -> anyhow::Result<Stage> {
    let mut roots = Vec::new();
    for number in layout.roots()? {
        roots.push(Root::make(layout, number).await?);
    }
    if roots.is_empty() {
        board.step(&format!("making a root CA in {}", layout.root(1).display()));
        roots.push(Root::make(layout, 1).await?);
    } else {
        board.step(&format!(
            "going on with the CA in {}",
            layout.base().display()
        ));
    }
    let newest = roots.last().context("there is a root")?;
    let listen = ports::free_from(options.node_port, "the node's management API")?;
    IssuingNode::make(layout, newest, listen).await?;
    let mut node = IssuingNode::start(layout, newest, listen).await?;
    board.step(&format!(
        "the issuing node serves its management API on {}",
        node.address
    ));
    let root = if let Some(root) = node.root_among(&roots).await? {
        root
    } else {
        // An earlier run ended between making a root and using it, or all of its roots have expired.
        node.rotate_to(newest).await?;
        newest.clone()
    };
    board.step(&format!("certificates come from {}", root.label()));

    let provider_leaf = Leaf::for_side(&node.client, Side::Provider).await?;
    let manager_leaf = Leaf::for_side(&node.client, Side::Manager).await?;
    provider_leaf.publish(layout, Side::Provider, &root.certificate_pem)?;
    manager_leaf.publish(layout, Side::Manager, &root.certificate_pem)?;

    let provider = start_provider(layout, options).await?;
    let endpoint = provider.page("/tls").await?["addresses"]["grpc"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    board.step(&format!(
        "the provider serves provider.v1 under mutual TLS on {endpoint}"
    ));
    let name = ProviderName::new("vidimus-system", "demo")?;
    let tls = ManagerTls::Mutual(layout.tls_of(Side::Manager));
    let (manager, driver) = Manager::start(ManagerConfig::new(name, endpoint, tls)).await?;
    let mut stage = Stage::new(
        layout.clone(),
        node,
        provider,
        manager,
        root,
        driver,
        (provider_leaf, manager_leaf),
    );
    stage.calls_flow().await?;
    board.step("the manager calls it: unary calls, and two streams");
    Ok(stage)
}

async fn start_provider(layout: &Layout, options: &Options) -> anyhow::Result<Program> {
    let grpc = ports::free_from(options.port, "the provider")?;
    let health = ports::free_from(options.health_port, "the provider's health pages")?;
    let admin = layout.admin_socket("provider");
    let args = [
        "provider".to_owned(),
        "run".to_owned(),
        "--bind".to_owned(),
        grpc.ip().to_string(),
        "--port".to_owned(),
        grpc.port().to_string(),
        "--health-port".to_owned(),
        health.port().to_string(),
        "--tls-dir".to_owned(),
        layout.tls_of(Side::Provider).display().to_string(),
        "--admin-socket".to_owned(),
        admin.display().to_string(),
    ];
    let allowed = [(
        vidimus_provider::posture::ALLOWED_SANS_VARIABLE,
        Side::Manager.dns_name().to_owned(),
    )];
    Program::start(
        "provider",
        &args,
        &allowed,
        admin,
        layout.log_of("provider"),
    )
    .await
}

async fn rotate(stage: &mut Stage, board: &mut Board, report: &mut Report) -> anyhow::Result<()> {
    for side in Side::BOTH {
        board.step(&format!("rotating the {}'s certificate", side.folder()));
        stage.rotate_leaf(side).await?;
        report.leaf_rotations = report.leaf_rotations.saturating_add(1);
        board.draw(&rows(stage).await?);
    }
    board.step("rotating the CA");
    stage
        .rotate_ca(|step| board.step(&format!("  {step}")))
        .await?;
    report.ca_rotations = report.ca_rotations.saturating_add(1);
    board.draw(&rows(stage).await?);
    Ok(())
}

/// Redraws the table until the user has seen enough.
async fn watch(stage: &Stage, board: &mut Board, stop: &CancellationToken) -> anyhow::Result<()> {
    board.step("Ctrl-C ends it.");
    loop {
        board.draw(&rows(stage).await?);
        tokio::select! {
            () = sleep(REDRAW) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

async fn rows(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let sides = Sides::look(&stage.provider, &stage.manager).await?;
    let counts = &stage.load.counts;
    let (calls, failed) = (
        Counts::read(&counts.calls),
        Counts::read(&counts.calls_failed),
    );
    let row = |name: &str, end: &End, calls, failed| Row {
        end: name.to_owned(),
        posture: end.posture.clone(),
        peer: end.peers(),
        expires: end.expires.clone(),
        reloads: end.reloads,
        calls,
        failed,
    };
    let node = stage.node.look().await?;
    Ok(vec![
        row(
            "provider",
            &sides.provider,
            sides.provider.calls,
            sides.provider.calls_refused,
        ),
        row("manager", &sides.manager, calls, failed),
        row("issuing node", &node, node.calls, node.calls_refused),
    ])
}

async fn finish(
    stage: Stage,
    rotated: anyhow::Result<()>,
    mut report: Report,
    began: Instant,
    format: Format,
) -> anyhow::Result<()> {
    report.generations_served = stage.generations_served();
    let counts = stage.stop().await;
    let counts = match (counts, rotated) {
        (Ok(counts), Ok(())) => counts,
        (_, Err(error)) | (Err(error), Ok(())) => return Err(error),
    };
    report.calls = Counts::read(&counts.calls);
    report.calls_failed = Counts::read(&counts.calls_failed);
    report.streams = Counts::read(&counts.streams);
    report.streams_failed = Counts::read(&counts.streams_failed);
    report.seconds = began.elapsed().as_secs_f64();
    print(&report, format)?;
    if report.clean() {
        Ok(())
    } else {
        let reason = counts
            .last_failure()
            .unwrap_or_else(|| "nothing was called".to_owned());
        Err(Stop::failure(format!(
            "{} calls and {} streams failed; the last: {reason}",
            report.calls_failed, report.streams_failed
        )))
    }
}

fn print(report: &Report, format: Format) -> anyhow::Result<()> {
    // One line, so that a program finds it as the last one.
    if format == Format::Json {
        return output::line(&serde_json::to_string(report).context("write the answer as JSON")?);
    }
    let fields = [
        (
            "calls",
            format!("{}, {} failed", report.calls, report.calls_failed),
        ),
        (
            "streams",
            format!("{}, {} failed", report.streams, report.streams_failed),
        ),
        ("leaf rotations", report.leaf_rotations.to_string()),
        ("CA rotations", report.ca_rotations.to_string()),
        ("generations served", report.generations_served.to_string()),
        ("seconds", format!("{:.1}", report.seconds)),
    ];
    output::print_fields(format, report, &fields)
}

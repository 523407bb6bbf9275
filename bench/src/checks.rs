//! What single checks cost: a peer's chain without and with a long revocation list, and a peer and its call under a policy.

use std::{hint::black_box, io::Write as _, sync::Arc, time::Duration};

use anyhow::Context;
use rustls_pki_types::CertificateDer;
use vidimus_testkit::Pki;
use vidimus_tls::{
    clock::Clock,
    identity::PeerIdentity,
    material::{RevocationCheck, RevocationOptions, Trust},
    policy::{AllowList, Policy},
    verify::{self, Judge},
};

use crate::{
    cpu,
    report::{Figure, Metric, Report},
    stats::Spread,
};

/// How much CPU time one run takes.
const RUN: Duration = Duration::from_millis(300);
/// Entries of the long list.
const ENTRIES: u32 = 100_000;
/// Four bytes without a leading zero, as DER wants a number.
const FIRST_SERIAL: u32 = 0x4000_0000;
/// What is called.
const METHOD: &str = "/grpc.health.v1.Health/Check";
/// Who calls.
const CLIENT: &str = "client.bench.example";

/// Measures all of it.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.say("\nwhat single checks cost")?;
    let pki = Pki::new("Bench");
    let now = Clock::system().now();
    let leaf = pki.leaf("client").dns(CLIENT).client().issue();
    let chain: Vec<CertificateDer<'_>> = leaf
        .chain_der()
        .iter()
        .map(|der| CertificateDer::from(der.as_slice()))
        .collect();
    let plain = Arc::new(Trust::from_pem(pki.root.pem().as_bytes(), now)?);
    let list = (0..ENTRIES)
        .fold(pki.issuing.revocation_list(1), |list, serial| {
            list.revoke(&(FIRST_SERIAL + serial).to_be_bytes())
        })
        .pem();
    let options = RevocationOptions {
        check: Some(RevocationCheck::Leaf),
        ..RevocationOptions::default()
    };
    let began = cpu::this_thread()?;
    let listed = Trust::from_pem(pki.root.pem().as_bytes(), now)?;
    let listed = Arc::new(listed.with_revocation(list.as_bytes(), options, &[], now)?);
    let loading = cpu::this_thread()?.saturating_sub(began);

    let judged = |trust: &Arc<Trust>| {
        verify::judge(Judge::Acceptor, trust, black_box(&chain), now).context("refused")
    };
    let identity = PeerIdentity::Certificate(Arc::clone(judged(&plain)?.identity()));
    let policy = Policy::from(AllowList::parse(CLIENT)?);
    let many = (0..1000).map(|at| format!("dns:host-{at}.bench.example"));
    let many = many
        .chain([CLIENT.to_owned()])
        .collect::<Vec<_>>()
        .join(",");
    let many = Policy::from(AllowList::parse(&many)?);
    let (few, rules) = (rules(1)?, rules(1000)?);

    print(
        report,
        "read a list of 100,000",
        loading.as_secs_f64() * 1e9,
    )?;
    print(
        report,
        "chain, no revocation list",
        cost(|| judged(&plain).map(drop))?,
    )?;
    print(
        report,
        "chain, list of 100,000",
        cost(|| judged(&listed).map(drop))?,
    )?;
    for (name, policy) in [
        ("peer, list of one name", &policy),
        ("peer, list of 1,001 names", &many),
        ("peer and method, two rules", &few),
        ("peer and method, 1,001 rules", &rules),
    ] {
        let check = || {
            policy
                .check(black_box(Some(&identity)), METHOD)
                .context("refused")
        };
        print(report, name, cost(check)?)?;
    }
    Ok(())
}

/// A policy file with so many rules about others, and one that fits.
fn rules(others: u32) -> anyhow::Result<Policy> {
    let mut file = tempfile::NamedTempFile::new()?;
    writeln!(file, "allow: [{CLIENT}]\nmethods:")?;
    for at in 0..others {
        writeln!(
            file,
            "  - {{match: /package{at}.Service/, allow: [{CLIENT}]}}"
        )?;
    }
    writeln!(file, "  - {{match: {METHOD}, allow: [{CLIENT}]}}")?;
    Policy::load(file.path()).map_err(|error| anyhow::anyhow!("{error:?}"))
}

fn print(report: &mut Report, name: &str, nanoseconds: f64) -> anyhow::Result<()> {
    report.figure(&Figure {
        name: name.to_owned(),
        metric: Metric::Computation,
        keys: "P-384",
        ours: Ok(Spread::single(nanoseconds)),
        peer: Err(String::new()),
        peer_name: "",
    })
}

/// CPU time of one, in nanoseconds.
fn cost(mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start = cpu::this_thread()?;
    let mut done = 0_u32;
    loop {
        for _ in 0..100 {
            work()?;
        }
        done = done.saturating_add(100);
        let used = cpu::this_thread()?.saturating_sub(start);
        if used >= RUN {
            return Ok(used.as_secs_f64() * 1e9 / f64::from(done));
        }
    }
}

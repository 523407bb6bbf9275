//! The quickstart, run as a user runs it.

use std::{
    collections::BTreeMap, fs, net::TcpListener, path::Path, process::Command, time::Duration,
};

use serde_json::Value;
use vidimus_testkit::Process;

use crate::support::{Ran, vidimus};

/// The rotations wait for files that are polled every few seconds at worst, and the machine may be busy.
const LONG: Duration = Duration::from_secs(300);

fn once(data: &Path, more: &[&str]) -> Vec<String> {
    let data = data.display().to_string();
    let fixed = [
        "quickstart",
        "--once",
        "-o",
        "json",
        "--data",
        &data,
        "--port",
        "0",
        "--health-port",
        "0",
        "--node-port",
        "0",
    ];
    fixed
        .iter()
        .chain(more)
        .map(|arg| (*arg).to_owned())
        .collect()
}

fn report(ran: &Ran) -> Value {
    let last = ran.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}\n{}", ran.stderr))
}

fn nothing_failed(report: &Value) {
    assert!(report["calls"].as_u64() > Some(100), "{report}");
    assert_eq!(report["calls_failed"], 0, "{report}");
    assert!(report["streams"].as_u64() >= Some(2), "{report}");
    assert_eq!(report["streams_failed"], 0, "{report}");
    assert_eq!(report["leaf_rotations"], 2, "{report}");
    assert_eq!(report["ca_rotations"], 1, "{report}");
    assert!(report["generations_served"].as_u64() >= Some(6), "{report}");
    assert!(report["seconds"].as_f64() > Some(0.0), "{report}");
}

/// V5, V10, V13: certificates and the CA are rotated while calls flow, and none fails; a second run goes on with the CA.
#[test]
fn rotates_leaves_and_ca_without_a_failed_call_and_goes_on_from_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("vidimus-data");
    let first = Ran::well(once(&data, &[]));
    nothing_failed(&report(&first));
    assert!(
        first.stderr.contains("making a root CA"),
        "{}",
        first.stderr
    );

    let second = Ran::well(once(&data, &[]));
    nothing_failed(&report(&second));
    assert!(
        second.stderr.contains("going on with the CA"),
        "{}",
        second.stderr
    );
    assert!(
        !second.stderr.contains("making a root CA"),
        "{}",
        second.stderr
    );

    let audit = Ran::well(["audit", "verify", &data.join("node").display().to_string()]);
    assert!(audit.stdout.contains("intact"), "{}", audit.stdout);
}

/// Ports that are taken: the next free ones, and it says so.
#[test]
fn takes_the_next_free_port_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let data = folder.path().join("data");
    let mut args = once(&data, &[]);
    let place = args
        .iter()
        .position(|arg| arg == "--port")
        .expect("the port's place");
    args[place + 1].clone_from(&port);
    let ran = Ran::well(args);
    assert!(
        ran.stderr
            .contains(&format!("port {port} is taken: the provider uses")),
        "{}",
        ran.stderr
    );
}

/// On a terminal it shows a table and what to try next; each command answers what it says it will.
#[test]
fn on_a_terminal_shows_the_table_and_commands_that_answer_as_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let program = env!("CARGO_BIN_EXE_vidimus");
    let inner = format!(
        "{program} quickstart --data {} --port 0 --health-port 0 --node-port 0",
        data.display()
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &inner, "/dev/null"]);
    let mut process = Process::spawn(command);
    process.wait_for_line("Ctrl-C ends it", LONG);
    process.wait_for_line("issuing node", LONG);
    let lines: Vec<String> = process.stdout();
    let text = lines.join("\n");
    for column in [
        "END", "POSTURE", "PEER", "EXPIRES", "RELOADS", "CALLS", "FAILED",
    ] {
        assert!(text.contains(column), "{column} is missing in {text}");
    }
    let commands: Vec<Vec<String>> = lines
        .iter()
        .filter(|line| line.contains("provider validate"))
        .map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect())
        .collect();
    let answers: Vec<(Option<i32>, String)> = commands
        .into_iter()
        .map(|args| {
            let ran = Ran::of(args);
            (ran.code, format!("{}{}", ran.stdout, ran.stderr))
        })
        .collect();
    let expected = [
        (0, "ok"),
        (3, "CertificateRequired"),
        (3, "UnknownCA"),
        (
            4,
            "PERMISSION_DENIED: client certificate is not on the configured allow-list",
        ),
    ];
    assert_eq!(answers.len(), expected.len(), "{text}");
    for ((code, text), (wanted_code, wanted)) in answers.iter().zip(expected) {
        assert_eq!(*code, Some(wanted_code), "{text}");
        assert!(text.contains(wanted), "{wanted} is missing in {text}");
    }
    process.terminate();
    process.wait_exit(LONG);
}

/// The root's key is opened by the quickstart alone: no process below it ever opens a file of the root's folder.
#[test]
fn the_running_node_never_opens_the_roots_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let trace = folder.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["--follow-forks", "--output-separately", "--seccomp-bpf"]);
    command
        .args(["--trace=execve,openat,clone,clone3,fork,vfork", "--output"])
        .arg(&trace);
    command
        .arg(env!("CARGO_BIN_EXE_vidimus"))
        .args(once(&data, &[]));
    let mut process = Process::spawn(command);
    let status = process.wait_exit(LONG);
    assert!(status.success(), "{:?}", process.lines());

    let threads = threads(folder.path());
    let root = format!("{}/root/", data.display());
    let opens = |text: &str| {
        text.lines()
            .any(|line| line.contains("openat") && line.contains(&root))
    };
    let starts_child = |text: &str| {
        text.lines()
            .any(|line| line.contains("execve") && line.contains(r#""run""#))
    };
    let mut children: Vec<u32> = threads
        .iter()
        .filter(|(_, text)| starts_child(text))
        .map(|(thread, _)| *thread)
        .collect();
    assert_eq!(
        children.len(),
        2,
        "the node and the provider are processes of their own"
    );
    // Their threads, and the threads of those.
    let mut next = 0;
    while let Some(thread) = children.get(next).copied() {
        children.extend(started_by(&threads[&thread]));
        next += 1;
    }
    assert!(children.len() > 2, "the children have threads");
    let (theirs, ours): (Vec<_>, Vec<_>) = threads
        .iter()
        .partition(|(thread, _)| children.contains(thread));
    assert!(
        ours.iter().any(|(_, text)| opens(text)),
        "the quickstart itself opens the root's folder"
    );
    assert!(
        theirs
            .iter()
            .any(|(_, text)| text.contains("node/ca-1.key")),
        "the node opens its own key"
    );
    for (thread, text) in theirs {
        assert!(
            !opens(text),
            "thread {thread} of a child opened the root's folder"
        );
    }
}

/// What each thread did, by its number.
fn threads(folder: &Path) -> BTreeMap<u32, String> {
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the traces") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Some(thread) = name
            .strip_prefix("trace.")
            .and_then(|number| number.parse().ok())
        {
            threads.insert(thread, fs::read_to_string(&path).expect("a trace"));
        }
    }
    threads
}

/// The threads and processes that a thread started: what its clone and fork calls returned.
fn started_by(trace: &str) -> Vec<u32> {
    let starts = |line: &&str| {
        ["clone", "fork", "vfork"]
            .iter()
            .any(|call| line.contains(call))
    };
    let number = |line: &str| {
        line.rsplit_once("= ")?
            .1
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    trace.lines().filter(starts).filter_map(number).collect()
}

/// Bad arguments are told, and nothing is left behind.
#[test]
fn refuses_a_folder_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut first = Process::spawn(vidimus(once(&data, &[])));
    first.wait_for_line("making a root CA", LONG);
    let second = Ran::of(once(&data, &[]));
    second.failed(1, "is in use by process");
    first.kill();
}

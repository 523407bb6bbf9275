//! `vidimus provider run` with revocation lists beside its roots.

use tempfile::TempDir;
use vidimus_testkit::{Pki, Process, wait_until};

use super::provider::{address, run};
use crate::support::{PATIENCE, Ran, write};

const NAME: &str = "provider.example.org";

/// A provider's files and those of two managers, whose serial numbers are 7 and 8.
struct House {
    dir: TempDir,
    pki: Pki,
}

impl House {
    fn new() -> Self {
        let (dir, pki) = (tempfile::tempdir().expect("a folder"), Pki::new("ca"));
        let provider = pki.leaf("provider").dns(NAME).server().issue();
        provider.write_dir(&dir.path().join("provider"), &[&pki.root]);
        for (name, serial) in [("seven", 7), ("eight", 8)] {
            let leaf = pki.leaf(name).serial(&[serial]).client().issue();
            leaf.write_dir(&dir.path().join(name), &[&pki.root]);
        }
        Self { dir, pki }
    }

    fn list(&self, pem: &str) {
        write(self.dir.path().join("provider/crl.pem"), pem);
    }

    fn run(&self, more: &[&str]) -> Running<'_> {
        let mut command = run(&self.text("provider"), None);
        command.args(more);
        let mut process = Process::spawn(command);
        let address = address(&mut process);
        Running {
            house: self,
            process,
            address,
        }
    }

    fn text(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }
}

struct Running<'a> {
    house: &'a House,
    process: Process,
    address: String,
}

impl Running<'_> {
    fn call(&self, manager: &str) -> Ran {
        let manager = self.house.text(manager);
        let call = ["provider", "validate", &self.address, "--tls", &manager];
        Ran::of(call.iter().chain(&["--server-name", NAME]))
    }

    fn serves(&self, manager: &str) {
        let ran = self.call(manager);
        assert_eq!(ran.code, Some(0), "{manager}: {}", ran.stderr);
    }

    fn stop(mut self) {
        self.process.terminate();
        let ended = self.process.wait_exit(PATIENCE);
        assert!(ended.success(), "{:?}", self.process.lines());
    }
}

/// V18. Who is on the list is refused, and a new list counts without a restart.
#[test]
fn a_provider_refuses_who_is_revoked_and_follows_its_lists() {
    let house = House::new();
    let list = |number| house.pki.issuing.revocation_list(number);
    house.list(&list(1).revoke(&[7]).pem());
    let running = house.run(&["--crl", "leaf"]);
    running.call("seven").failed(3, "CertificateRevoked");
    running.serves("eight");

    house.list(&list(2).revoke(&[8]).pem());
    wait_until(PATIENCE, || match running.call("eight") {
        refused if refused.code == Some(3) => Ok(()),
        served => Err(served.stderr),
    });
    running.call("eight").failed(3, "CertificateRevoked");
    running.serves("seven");
    running.stop();
}

/// V18. A list past its end refuses, or not, as it is told to; it goes on revoking.
#[test]
fn what_a_list_past_its_end_does_is_a_setting() {
    let house = House::new();
    let list = house.pki.issuing.revocation_list(1);
    house.list(&list.revoke(&[7]).ended().pem());
    let strict = house.run(&[]);
    for manager in ["seven", "eight"] {
        assert_eq!(strict.call(manager).code, Some(3), "{manager}");
    }
    strict.stop();
    let lenient = house.run(&["--crl-stale", "accept"]);
    lenient.serves("eight");
    lenient.call("seven").failed(3, "CertificateRevoked");
    lenient.stop();
}

/// V18. Without a list it doesn't start where one was asked for, unless it is told that none is fine.
#[test]
fn what_a_missing_list_does_is_a_setting() {
    let house = House::new();
    let strict = run(&house.text("provider"), None)
        .args(["--crl", "leaf"])
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&strict.stderr);
    assert_eq!(strict.status.code(), Some(1), "{told}");
    assert!(told.contains("crl.pem"), "{told}");
    let lenient = house.run(&["--crl", "leaf", "--crl-missing", "accept"]);
    lenient.serves("seven");
    lenient.stop();
}

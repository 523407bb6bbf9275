//! What the tests share: running the program, and CAs that it made.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use tempfile::TempDir;
use vidimus_fs::durable::{self, Mode};
use vidimus_testkit::{Process, wait_until};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program with arguments, for whoever runs it.
pub(crate) fn vidimus<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vidimus"));
    // What the tester's shell has set must not decide anything.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("VIDIMUS_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// Puts a text where a test wants it.
pub(crate) fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    durable::write(path, text.as_ref(), Mode::Public).expect("write a file");
}

/// What a run of the program came to.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Runs the program to its end.
    pub(crate) fn of<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = vidimus(args).output().expect("the program starts");
        Self {
            code: status.code(),
            stdout: String::from_utf8(stdout).expect("text on stdout"),
            stderr: String::from_utf8(stderr).expect("text on stderr"),
        }
    }

    /// The same, where it must succeed.
    pub(crate) fn well<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let ran = Self::of(args);
        assert_eq!(
            ran.code,
            Some(0),
            "stdout:\n{}\nstderr:\n{}",
            ran.stdout,
            ran.stderr
        );
        ran
    }

    /// Ended with this code, and these words on stderr.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.contains(words), "{words}: {}", self.stderr);
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }
}

/// A root and an issuing CA below it, made with the program's own commands.
pub(crate) struct Cas {
    pub(crate) folder: TempDir,
}

impl Cas {
    pub(crate) fn make() -> Self {
        let cas = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        write(cas.path("root.yaml"), ROOT_CONFIG);
        Ran::well([
            "node",
            "init",
            "--role",
            "root",
            "--config",
            &cas.text("root.yaml"),
            "--data-dir",
            &cas.text("root"),
            "--create-unlock-file",
            &cas.text("root.unlock"),
        ]);
        let anchor = Ran::well(cas.on_root(["identity", "show", "--anchor"])).stdout;
        write(cas.path("root.pem"), &anchor);
        write(cas.path("node.yaml"), node_config(&anchor));
        let init = |more: &[&str]| {
            let (config, data) = (cas.text("node.yaml"), cas.text("node"));
            let fixed = [
                "node",
                "init",
                "--role",
                "issuing",
                "--config",
                &config,
                "--data-dir",
                &data,
            ];
            Ran::well(fixed.iter().chain(more))
        };
        init(&[
            "--create-unlock-file",
            &cas.text("node.unlock"),
            "--csr-out",
            &cas.text("node.csr"),
        ]);
        let chain = cas.text("chain.pem");
        let sign = [
            "ca",
            "sign-subordinate",
            "--csr",
            &cas.text("node.csr"),
            "--profile",
            "sub-ca",
            "--out",
            &chain,
        ];
        Ran::well(cas.on_root(sign));
        init(&["--unlock-file", &cas.text("node.unlock"), "--chain", &chain]);
        cas
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A command for the root, which is never a running process.
    pub(crate) fn on_root<const N: usize>(&self, args: [&str; N]) -> Vec<String> {
        self.offline(&args, "root")
    }

    /// A command for the issuing CA while it isn't running.
    pub(crate) fn on_node<const N: usize>(&self, args: [&str; N]) -> Vec<String> {
        self.offline(&args, "node")
    }

    fn offline(&self, args: &[&str], which: &str) -> Vec<String> {
        let place = [
            "--data-dir".to_owned(),
            self.text(which),
            "--unlock-file".to_owned(),
            self.text(&format!("{which}.unlock")),
        ];
        args.iter()
            .map(|arg| (*arg).to_owned())
            .chain(place)
            .collect()
    }

    /// Starts the issuing CA and waits until it serves.
    pub(crate) fn run_node(&self) -> RunningNode {
        let data = self.path("node");
        let endpoints = data.join("endpoints.json");
        // What a killed node left there names a process that is gone.
        drop(fs::remove_file(&endpoints));
        let mut args = vec!["node".to_owned(), "run".to_owned()];
        args.extend([
            "--data-dir".to_owned(),
            self.text("node"),
            "--unlock-file".to_owned(),
            self.text("node.unlock"),
        ]);
        let mut process = Process::spawn(vidimus(args));
        let management = wait_until(PATIENCE, || {
            if let Some(status) = process.poll_exit() {
                return Err(format!(
                    "the node ended with {status}: {:?}",
                    process.lines()
                ));
            }
            let text = fs::read_to_string(&endpoints).map_err(|error| error.to_string())?;
            let page: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| error.to_string())?;
            page["management"].as_str().map(str::to_owned).ok_or(text)
        });
        RunningNode {
            process,
            management,
            data,
        }
    }

    /// A P-384 key and a request for `name`, made by the openssl program.
    pub(crate) fn openssl_csr(&self, name: &str) -> String {
        let (key, csr) = (
            self.text(&format!("{name}.key")),
            self.text(&format!("{name}.csr")),
        );
        let subject = format!("/CN={name}");
        let names = format!("subjectAltName=DNS:{name}");
        vidimus_testkit::openssl([
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-384",
            "-nodes",
            "-keyout",
            &key,
            "-subj",
            &subject,
            "-addext",
            &names,
            "-out",
            &csr,
        ])
        .success();
        csr
    }
}

/// An issuing CA that serves.
pub(crate) struct RunningNode {
    pub(crate) process: Process,
    pub(crate) management: String,
    pub(crate) data: PathBuf,
}

impl RunningNode {
    /// A command for it over its UNIX socket.
    pub(crate) fn socket<const N: usize>(&self, args: [&str; N]) -> Vec<String> {
        let socket = self.data.join("node.sock").display().to_string();
        args.iter()
            .map(|arg| (*arg).to_owned())
            .chain(["--socket".to_owned(), socket])
            .collect()
    }

    /// A command for it over mutual TLS, as its administrator.
    pub(crate) fn mtls<const N: usize>(&self, args: [&str; N]) -> Vec<String> {
        self.mtls_as(args, &self.data.join("admin"))
    }

    pub(crate) fn mtls_as<const N: usize>(&self, args: [&str; N], identity: &Path) -> Vec<String> {
        let place = [
            "--node",
            &self.management,
            "--server-name",
            "localhost",
            "--identity",
        ];
        let place = place
            .iter()
            .map(|arg| (*arg).to_owned())
            .chain([identity.display().to_string()]);
        args.iter()
            .map(|arg| (*arg).to_owned())
            .chain(place)
            .collect()
    }
}

const PROFILES: &str = "
    - name: leaf-server
      key_alg: ECDSA-P384
      validity_days: 30
      key_usage: [digital_signature]
      ext_key_usage: [server_auth]
      allow_request_sans: true
    - name: sub-ca
      key_alg: ECDSA-P384
      validity_days: 365
      key_usage: [cert_sign, crl_sign]
      basic_constraints: {is_ca: true}
";

const ROOT_CONFIG: &str = "
apiVersion: vidimus.dev/v1alpha1
kind: MachineConfig
role: {kind: root}
pki:
  root_key_alg: ECDSA-P384
  root_subject: {common_name: Test root}
  root_validity_years: 10
  profiles:
    - name: leaf-server
      key_alg: ECDSA-P384
      validity_days: 30
      key_usage: [digital_signature]
      ext_key_usage: [server_auth]
      allow_request_sans: true
    - name: sub-ca
      key_alg: ECDSA-P384
      validity_days: 365
      key_usage: [cert_sign, crl_sign]
      basic_constraints: {is_ca: true}
";

fn node_config(root_pem: &str) -> String {
    let indented: String = root_pem
        .lines()
        .map(|line| format!("      {line}\n"))
        .collect();
    format!(
        "
apiVersion: vidimus.dev/v1alpha1
kind: MachineConfig
role: {{kind: issuing}}
api: {{listen: \"127.0.0.1:0\"}}
pki:
  root_key_alg: ECDSA-P384
  root_subject: {{common_name: Test issuing CA}}
  parent:
    ca_cert_pem: |
{indented}  profiles:{PROFILES}"
    )
}

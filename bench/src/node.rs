//! Our own servers, set up and started as a user does it.

use std::{
    fs::{self, File},
    io::Write as _,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;
use vidimus_x509::{cert::fingerprint_sha256, pem};

use crate::{
    build::Programs,
    drive::CLIENT_NAME,
    server::{self, Server},
};

const PROFILE: &str = "leaf-mutual";

const ROOT: &str = "apiVersion: vidimus.dev/v1alpha1
kind: MachineConfig
role: {kind: root}
pki:
  root_key_alg: ECDSA-P384
  root_subject: {common_name: Bench Root}
  root_validity_years: 20
  profiles:
    - name: sub-ca
      key_alg: ECDSA-P384
      validity_days: 1825
      key_usage: [cert_sign, crl_sign]
      basic_constraints: {is_ca: true}
";

/// A running issuing node.
pub(crate) struct Node {
    pub(crate) server: Server,
    /// What the client program must be told to call it.
    pub(crate) client_args: Vec<String>,
}

/// A root with an issuing CA below it, and the issuing node running.
pub(crate) fn issuing(programs: &Programs, dir: &Path) -> anyhow::Result<Node> {
    fs::create_dir_all(dir)?;
    let address = server::free_address()?;
    let setup = Setup { programs, dir };
    setup.root()?;
    setup.issuing(address)?;

    let mut command = setup.vidimus(&["node", "run"]);
    command.args(["--data-dir", "node", "--unlock-file", "node.unlock"]);
    let server = Server::start(command, address, &dir.join("server.log"))?;
    let client_args = [
        "-api",
        "vidimus",
        "-tls",
        &dir.join("node/admin").display().to_string(),
        "-server-name",
        "localhost",
        "-profile",
        PROFILE,
    ];
    Ok(Node {
        server,
        client_args: client_args.map(str::to_owned).to_vec(),
    })
}

/// The in-memory provider with the material of one key type and everything that it can check: a revocation list, a policy
/// with rules that lets only the client in, and metrics.
pub(crate) fn provider(programs: &Programs, material: &Path) -> anyhow::Result<Server> {
    let address = server::free_address()?;
    let policy = material.join("policy.yaml");
    let allow = format!("allow: ['dns:{CLIENT_NAME}']");
    writeln!(
        File::create(&policy)?,
        "{allow}
methods:
  - {{match: /grpc.health.v1.Health/Check, {allow}}}
  - {{match: /provider.v1.Provider/, {allow}}}"
    )?;
    let mut command = Command::new(&programs.vidimus);
    command
        .args(["provider", "run", "--bind", "127.0.0.1"])
        .args(["--health-port", "0", "--metrics", "127.0.0.1:0"])
        .args(["--port", &address.port().to_string()])
        .args(["--crl", "chain", "--policy"])
        .arg(policy)
        .arg("--tls-dir")
        .arg(material.join("server"));
    Server::start(command, address, &material.join("provider.log"))
}

/// The steps between nothing and a CA that issues.
struct Setup<'a> {
    programs: &'a Programs,
    dir: &'a Path,
}

impl Setup<'_> {
    fn root(&self) -> anyhow::Result<()> {
        self.file("root.yaml", ROOT)?;
        self.run(
            &["node", "init", "--role", "root"],
            &[
                ("--config", "root.yaml"),
                ("--data-dir", "root"),
                ("--create-unlock-file", "root.unlock"),
            ],
        )?;
        let anchor = self.run(
            &["identity", "show", "--anchor"],
            &[("--data-dir", "root"), ("--unlock-file", "root.unlock")],
        )?;
        self.file("root.crt", &anchor)
    }

    fn issuing(&self, address: SocketAddr) -> anyhow::Result<()> {
        self.file("node.yaml", &node_config(address, &self.root_pin()?))?;
        self.run(
            &["node", "init", "--role", "issuing"],
            &[
                ("--config", "node.yaml"),
                ("--data-dir", "node"),
                ("--create-unlock-file", "node.unlock"),
                ("--csr-out", "node.csr"),
            ],
        )?;
        let mut chain = self.run(
            &["ca", "sign-subordinate"],
            &[
                ("--csr", "node.csr"),
                ("--profile", "sub-ca"),
                ("--data-dir", "root"),
                ("--unlock-file", "root.unlock"),
            ],
        )?;
        chain.push_str(&fs::read_to_string(self.dir.join("root.crt"))?);
        self.file("chain.pem", &chain)?;
        self.run(
            &["node", "init", "--role", "issuing"],
            &[
                ("--config", "node.yaml"),
                ("--data-dir", "node"),
                ("--unlock-file", "node.unlock"),
                ("--chain", "chain.pem"),
            ],
        )?;
        Ok(())
    }

    /// SHA-256 of the root's certificate.
    fn root_pin(&self) -> anyhow::Result<String> {
        let text = fs::read(self.dir.join("root.crt"))?;
        let der = pem::certificates(&text)?;
        let root = der.first().context("the root has no certificate")?;
        Ok(HEXLOWER.encode(&fingerprint_sha256(root)))
    }

    fn vidimus(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.programs.vidimus);
        command
            .current_dir(self.dir)
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// What it prints.
    fn run(&self, args: &[&str], options: &[(&str, &str)]) -> anyhow::Result<String> {
        let mut command = self.vidimus(args);
        for (option, value) in options {
            command.args([option, value]);
        }
        let output = command.output().context("failed to start vidimus")?;
        if !output.status.success() {
            bail!(
                "`vidimus {}`: {}",
                args.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn file(&self, name: &str, text: &str) -> anyhow::Result<()> {
        File::create(self.dir.join(name))?.write_all(text.as_bytes())?;
        Ok(())
    }
}

fn node_config(address: SocketAddr, root_pin: &str) -> String {
    format!(
        "apiVersion: vidimus.dev/v1alpha1
kind: MachineConfig
role: {{kind: issuing}}
api: {{listen: \"{address}\"}}
pki:
  root_key_alg: ECDSA-P384
  root_subject: {{common_name: Bench Issuing}}
  parent: {{ca_cert_sha256: {root_pin}}}
  profiles:
    - name: {PROFILE}
      key_alg: ECDSA-P384
      validity_days: 90
      key_usage: [digital_signature]
      ext_key_usage: [server_auth, client_auth]
      allow_request_sans: true
"
    )
}

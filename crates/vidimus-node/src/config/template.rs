//! A machine config to start from: what `node init` and the quickstart write when nobody brings one.

use std::fmt::Write as _;

use super::{AdminListen, Api, Role, api::DEFAULT_LISTEN};

/// What the template leaves open.
#[derive(Debug, Clone)]
pub struct Template<'a> {
    /// The node's role.
    pub role: Role,
    /// The CA's common name.
    pub common_name: &'a str,
    /// The certificate of the parent, in PEM; wanted unless the role is root.
    pub parent_pem: Option<&'a str>,
    /// Where the node listens.
    pub api: Api,
}

/// A commented config with the usual profiles: `leaf-server`, `leaf-client`, `leaf-mutual` and `sub-ca`.
///
/// Without a parent, a subordinate's text has a gap that [`super::parse`] reports; every other template is valid.
#[must_use]
pub fn template(template: &Template<'_>) -> String {
    let mut text = String::new();
    let role = template.role;
    // Writing to a String cannot fail.
    let _infallible = write_header(&mut text, template);
    if role != Role::Root {
        text.push_str("  parent:\n");
        match template.parent_pem {
            Some(pem) => {
                text.push_str("    ca_cert_pem: |\n");
                for line in pem.lines() {
                    let _infallible = writeln!(text, "      {line}");
                }
            }
            None => text.push_str("    ca_cert_sha256: \"\" # or ca_cert_pem\n"),
        }
    } else {
        text.push_str("  root_validity_years: 20\n");
    }
    text.push_str("  profiles:\n");
    if role != Role::Root {
        text.push_str(LEAF_PROFILES);
    }
    text.push_str(match role {
        Role::Root => SUBORDINATE_OF_ROOT,
        Role::Intermediate | Role::Issuing => SUBORDINATE,
    });
    text
}

fn write_header(text: &mut String, template: &Template<'_>) -> std::fmt::Result {
    writeln!(text, "apiVersion: vidimus.dev/v1alpha1")?;
    writeln!(text, "kind: MachineConfig")?;
    writeln!(text, "role:\n  kind: {}", template.role)?;
    write_api(text, &template.api)?;
    writeln!(text, "pki:\n  root_key_alg: ECDSA-P384")?;
    let common_name = quoted(template.common_name);
    writeln!(text, "  root_subject:\n    common_name: {common_name}")
}

fn write_api(text: &mut String, api: &Api) -> std::fmt::Result {
    if *api == Api::default() {
        return Ok(());
    }
    writeln!(text, "api:")?;
    if api.listen != DEFAULT_LISTEN {
        writeln!(text, "  listen: {}", quoted(&api.listen.to_string()))?;
    }
    if !api.names.is_empty() {
        let names: Vec<_> = api.names.iter().map(|name| quoted(name)).collect();
        writeln!(text, "  names: [{}]", names.join(", "))?;
    }
    if let Some(socket) = &api.socket {
        writeln!(text, "  socket: {}", quoted(&socket.display().to_string()))?;
    }
    if let AdminListen::Tcp(address) = api.admin_listen {
        writeln!(text, "  admin_listen: {}", quoted(&address.to_string()))?;
    }
    Ok(())
}

/// JSON's quotes and escapes, which are YAML's too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const LEAF_PROFILES: &str = r"    - name: leaf-server
      key_alg: ECDSA-P384
      validity_days: 90
      key_usage: [digital_signature]
      ext_key_usage: [server_auth]
      allow_request_sans: true
    - name: leaf-client
      key_alg: ECDSA-P384
      validity_days: 90
      key_usage: [digital_signature]
      ext_key_usage: [client_auth]
      allow_request_sans: true
    - name: leaf-mutual # one certificate for both sides of a connection
      key_alg: ECDSA-P384
      validity_days: 90
      key_usage: [digital_signature]
      ext_key_usage: [server_auth, client_auth]
      allow_request_sans: true
";

const SUBORDINATE: &str = r"    - name: sub-ca # a CA outside, that signs leaves only
      key_alg: ECDSA-P384
      validity_days: 365
      key_usage: [cert_sign, crl_sign]
      basic_constraints: {is_ca: true, path_len: 0}
";

const SUBORDINATE_OF_ROOT: &str = r"    - name: sub-ca
      key_alg: ECDSA-P384
      validity_days: 1825
      key_usage: [cert_sign, crl_sign]
      basic_constraints: {is_ca: true}
";

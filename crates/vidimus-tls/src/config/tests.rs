use vidimus_testkit::Pki;

use super::*;
use crate::material::{MaterialFiles, Usage};

fn material(usage: Usage) -> Material {
    let pki = Pki::new("Example");
    let leaf = pki.leaf("one").dns("one.test");
    let leaf = match usage {
        Usage::Server => leaf.server().issue(),
        Usage::Both | Usage::Client => leaf.client().issue(),
    };
    let dir = tempfile::tempdir().expect("a folder");
    leaf.write_dir(dir.path(), &[&pki.root]);
    Material::load(
        &MaterialFiles::in_dir(dir.path()),
        usage,
        Clock::system().now(),
    )
    .expect("material")
}

/// V5.
#[test]
fn the_post_quantum_hybrid_is_preferred() {
    let groups: Vec<_> = provider().kx_groups.iter().map(|g| g.name()).collect();
    assert_eq!(groups.first(), Some(&rustls::NamedGroup::X25519MLKEM768));
}

/// T7. Nothing to resume with, on either side, and nothing sent before the peer is verified.
#[test]
fn nothing_is_kept_for_another_connection() {
    let clock = Clock::system();
    let server = material(Usage::Server);
    let made = server_config(&server, &ClientAuth::Roots, Protocols::H2, &clock);
    let config = made.expect("a configuration");
    assert_eq!(config.send_tls13_tickets, 0);
    assert_eq!(config.max_early_data_size, 0);
    assert!(!config.send_half_rtt_data);
    assert!(!config.session_storage.can_cache());
    assert!(!config.ticketer.enabled());

    let client = material(Usage::Client);
    let made = client_config(
        &client,
        ServerVerification::Roots,
        ClientCertificate::Presented,
        &clock,
    );
    let config = made.expect("a configuration").config;
    assert!(!config.enable_early_data);
    let resumption = format!("{:?}", config.resumption);
    assert!(
        resumption.contains("NoClientSessionStorage"),
        "{resumption}"
    );
}

/// V5. With the validated module, everything that rustls may choose from is approved.
#[cfg(feature = "fips")]
#[test]
fn the_fips_module_is_all_that_is_used() {
    assert!(provider().fips());
    let server = material(Usage::Server);
    let made = server_config(&server, &ClientAuth::Roots, Protocols::H2, &Clock::system());
    assert!(made.expect("a configuration").fips());
}

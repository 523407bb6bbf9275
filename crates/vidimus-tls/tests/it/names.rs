//! Which names of a certificate count, judged by the verifiers that connections get.

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls_pki_types::CertificateDer;
use vidimus_testkit::pki::AuthoritySpec;
use vidimus_testkit::{Authority, Credential};
use vidimus_tls::clock::Clock;
use vidimus_tls::identity::{CertificateIdentity, Fingerprint, NameForm};
use vidimus_tls::material::Trust;
use vidimus_tls::verify::{Judge, Refusal, judge};

const EMAIL: u8 = 1;
const DNS: u8 = 2;
const URI: u8 = 6;
const IP: u8 = 7;

/// A client's certificate with a name of each form.
fn client(issuer: &Authority) -> Credential {
    let leaf = issuer.leaf("manager").dns("host.example");
    leaf.ip([192, 0, 2, 1].into()).client().issue()
}

/// Has an acceptor judge a chain.
fn judged(root: &Authority, chain: &[Vec<u8>]) -> Result<Arc<CertificateIdentity>, Refusal> {
    let now = Clock::system().now();
    let trust = Trust::from_pem(root.pem().as_bytes(), now).expect("a root");
    let chain: Vec<_> = chain
        .iter()
        .map(|der| CertificateDer::from(der.as_slice()))
        .collect();
    let chain = judge(Judge::Acceptor, &Arc::new(trust), &chain, now)?;
    Ok(Arc::clone(chain.identity()))
}

fn counting(identity: &CertificateIdentity) -> Vec<NameForm> {
    use NameForm::{CommonName, Dns, Email, Ip, Uri};
    let forms = [CommonName, Dns, Email, Ip, Uri];
    forms.into_iter().filter(|f| identity.counts(*f)).collect()
}

#[test]
fn every_name_counts_where_no_ca_is_constrained() {
    let root = Authority::root("root");
    let issuing = root.intermediate("issuing");
    let leaf = issuing.leaf("manager").uri("spiffe://td/manager").client();
    let identity = judged(&root, leaf.issue().chain_der()).expect("accepted");
    assert_eq!(counting(&identity).len(), 5);
    assert_eq!(identity.anchor(), Some(Fingerprint::of(root.der())));
    let id = identity.spiffe_id().expect("an ID");
    assert_eq!((id.trust_domain(), id.path()), ("td", "/manager"));
}

/// T14. A CA for `host.example` could otherwise name its leaf like anybody.
#[test]
fn under_a_constrained_ca_only_names_of_constrained_forms_count() {
    let free = Authority::root("free root");
    let bound = AuthoritySpec::new("bound root")
        .permitting(DNS, "example")
        .root();
    let below_free = AuthoritySpec::new("bound issuing")
        .permitting(DNS, "example")
        .under(&free);
    let below_bound = bound.intermediate("free issuing");
    for (root, issuing) in [(&free, &below_free), (&bound, &below_bound)] {
        let leaf = issuing.leaf("manager").dns("host.example");
        let leaf = leaf
            .uri("spiffe://td/manager")
            .email("a@b.example")
            .client();
        let identity = judged(root, leaf.issue().chain_der()).expect("accepted");
        assert_eq!(counting(&identity), [NameForm::Dns]);
        assert_eq!(identity.spiffe_id(), None);
        assert_eq!(identity.label(), "host.example");
        let nameless = issuing.leaf("manager").uri("urn:manager").client();
        let identity = judged(root, nameless.issue().chain_der()).expect("accepted");
        assert_eq!(identity.label(), "CN=manager", "the whole subject");
    }
}

/// T14. A form counts if every constrained CA of the path speaks of it.
#[test]
fn a_form_counts_if_each_constrained_ca_speaks_of_it() {
    let all = [192, 0, 2, 0, 255, 255, 255, 0];
    let root = AuthoritySpec::new("root")
        .permitting(DNS, "example")
        .permitting(IP, all)
        .root();
    let same = AuthoritySpec::new("same")
        .permitting(DNS, "example")
        .permitting(IP, all)
        .under(&root);
    let less = AuthoritySpec::new("less")
        .permitting(DNS, "example")
        .under(&root);
    let identity = judged(&root, client(&same).chain_der()).expect("accepted");
    assert_eq!(counting(&identity), [NameForm::Dns, NameForm::Ip]);
    let identity = judged(&root, client(&less).chain_der()).expect("accepted");
    assert_eq!(counting(&identity), [NameForm::Dns]);
}

/// webpki doesn't apply constraints on URIs and mail addresses; it refuses every such name below them, and so do we.
#[test]
fn a_uri_or_mail_address_below_a_constraint_on_its_form_is_refused() {
    let bound = |form, base: &str| AuthoritySpec::new("root").permitting(form, base).root();
    for (form, base) in [(URI, "td"), (EMAIL, "b.example")] {
        let root = bound(form, base);
        let leaf = |named: bool| {
            let leaf = root.leaf("x").dns("x.example").client();
            let leaf = match (named, form) {
                (false, _) => leaf,
                (true, URI) => leaf.uri("spiffe://td/manager"),
                (true, _) => leaf.email("a@b.example"),
            };
            leaf.issue()
        };
        assert!(judged(&root, leaf(false).chain_der()).is_ok(), "{form}");
        let refusal = judged(&root, leaf(true).chain_der()).expect_err("refused");
        assert!(
            refusal.to_string().contains("NameConstraint"),
            "{form}: {refusal}"
        );
    }
}

/// X509-SVID §2: an SVID has exactly one URI.
#[test]
fn a_second_uri_leaves_no_spiffe_id() {
    let root = Authority::root("root");
    let id = |uris: &[&str]| {
        let leaf = root.leaf("x").client();
        let leaf = uris.iter().fold(leaf, |leaf, uri| leaf.uri(uri));
        let identity = judged(&root, leaf.issue().chain_der()).expect("accepted");
        identity.spiffe_id().map(ToString::to_string)
    };
    assert_eq!(id(&["spiffe://td/a"]).as_deref(), Some("spiffe://td/a"));
    assert_eq!(id(&["spiffe://td/a", "spiffe://td/b"]), None);
    assert_eq!(id(&["spiffe://td/a", "urn:a"]), None);
    assert_eq!(id(&["spiffe://TD/a"]), None);
    assert_eq!(id(&[]), None);
}

/// A name that can't be read might be the one that an entry is about: the connection is refused.
#[test]
fn an_unreadable_alternative_name_is_refused() {
    let key = KeyPair::generate().expect("a key");
    let judged_with = |san: &[u8]| {
        let mut params = CertificateParams::default();
        let extension = CustomExtension::from_oid_content(&[2, 5, 29, 17], san.to_vec());
        params.custom_extensions.push(extension);
        let root = Authority::root("root");
        let leaf = root.sign(params, &key);
        judged(&root, &[leaf])
    };
    assert!(judged_with(b"\x30\x03\x82\x01a").is_ok());
    for (bad, why) in [
        (&b"\x30\x00"[..], "no name at all"),
        (b"\x30\x03\x82\x02a", "a name longer than the list"),
        (b"\x30\x04\x82\x02\xc3\xa4", "a DNS name that isn't ASCII"),
        (b"\x30\x03\x86\x01\xff", "a URI that isn't ASCII"),
        (
            b"\x30\x07\x87\x05\x01\x02\x03\x04\x05",
            "an address of five bytes",
        ),
        (b"\x30\x03\x82\x01a\x00", "bytes after the list"),
        (b"\x04\x01a", "no list"),
    ] {
        let refusal = judged_with(bad).expect_err(why);
        assert!(
            matches!(refusal, Refusal::Unreadable { .. }),
            "{why}: {refusal}"
        );
    }
}

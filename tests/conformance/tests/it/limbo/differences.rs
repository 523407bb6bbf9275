//! The cases that are judged otherwise than x509-limbo expects, each with its reason.
//!
//! Agreement is no proof by itself: `rfc5280::ica-ku-keycertsign` and `rfc5280::intermediate-ca-missing-basic-constraints`
//! come without their intermediates, so that any verifier refuses them, and the five mail cases that should be refused are
//! refused as those that should not. Tests of our own hold these rules.

use crate::verdicts::{
    Difference,
    Side::{Looser, Stricter},
    row,
};

const CA_AS_PEER: &str =
    "a CA's certificate is nobody's server or client, as webpki::ca-as-leaf has it";
const SELF_ISSUED: &str =
    "webpki doesn't except self-issued intermediates from path length and name constraints";
const MAIL: &str =
    "webpki has no rule for mail addresses and refuses each one under a mail constraint";
const NO_NAME: &str = "the one server case without a name: a channel always has one to check, so it is no case for a channel's verifier; the \
     acceptor's judges it, and the certificate is for serverAuth alone";

const CRL_NUMBER: &str = "lists without a number go by their dates: easy-rsa writes no other, and refusing them would leave nobody revoked";
const DEPTH: &str =
    "no such setting: at most six intermediates, and whatever the CAs' path lengths allow";
const KEY_ID: &str =
    "key identifiers help to find a path and prove nothing; the rule is for who issues";
const CONSTRAINTS_FORM: &str =
    "the rule is for who issues: what the extension says is applied all the same";
const LEADING_PERIOD: &str =
    "taken for all subdomains but not the name itself, as OpenSSL and Go do";
const CONSTRAINTS_OF_LEAF: &str =
    "nothing is below a peer's own certificate, so its constraints bind nobody";
const CONSTRAINTS_EMPTY: &str =
    "web PKI rule: constraints that name nothing bind nobody; the rule is for who issues";
const POLICY: &str =
    "certificate policies decide nothing here; where the extension is critical, it is refused";
const SAN_FORM: &str = "the names are what they are, critical or not; the rule is for who issues";
const UNDERSCORE: &str =
    "compared byte by byte with the name that was connected to; such names exist in clusters";
const SERIAL: &str = "a serial number is only shown; the rule is for who issues";
const BASIC_CONSTRAINTS_MARK: &str = "basic constraints are applied, marked critical or not (RFC 5280 §6.1.4 (k)); roots of private CAs lack the mark";
const CN: &str =
    "web PKI rule: a server's CN is never looked at, only its subject alternative names";
const EKU_FORM: &str =
    "web PKI rule: the purpose that is needed is listed, or nothing is, which RFC 5280 permits";
const ROOT_EKU: &str =
    "web PKI rule: RFC 5280 gives a root's extended key usage no meaning for the path";
const PUBLIC_SUFFIX: &str = "web PKI rule: private CAs have no public suffixes";
const AIA: &str = "web PKI rule: the extension is not read, and not critical";
const HANDSHAKE_KEY: &str = "web PKI rule for the chain; the handshake refuses the key, for which no accepted scheme exists";
const RSA_BITS: &str =
    "web PKI rule: RSA of 2048 to 8192 bits is accepted whatever its length is a multiple of";

/// Sorted as x509-limbo does.
pub(super) const DIFFERENCES: &[Difference] = &[
    row("crl::crlnumber-missing", Looser, CRL_NUMBER),
    row(
        "pathlen::validation-ignores-pathlen-in-leaf",
        Stricter,
        CA_AS_PEER,
    ),
    row("pathlen::self-issued-certs-pathlen", Stricter, SELF_ISSUED),
    row("pathlen::max-chain-depth-0-exhausted", Looser, DEPTH),
    row("pathlen::max-chain-depth-1-exhausted", Looser, DEPTH),
    row("rfc5280::aki::critical-aki", Looser, KEY_ID),
    row("rfc5280::aki::leaf-missing-aki", Looser, KEY_ID),
    row("rfc5280::aki::intermediate-missing-aki", Looser, KEY_ID),
    row(
        "rfc5280::aki::cross-signed-root-missing-aki",
        Looser,
        KEY_ID,
    ),
    row(
        "rfc5280::nc::permitted-dns-match-noncritical",
        Looser,
        CONSTRAINTS_FORM,
    ),
    row("rfc5280::nc::permitted-dn-match", Stricter, NO_NAME),
    row("rfc5280::nc::permitted-self-issued", Stricter, SELF_ISSUED),
    row(
        "rfc5280::nc::invalid-dnsname-leading-period",
        Looser,
        LEADING_PERIOD,
    ),
    row(
        "rfc5280::nc::not-allowed-in-ee-noncritical",
        Looser,
        CONSTRAINTS_OF_LEAF,
    ),
    row(
        "rfc5280::nc::not-allowed-in-ee-critical",
        Looser,
        CONSTRAINTS_OF_LEAF,
    ),
    row("rfc5280::nc::nc-permits-email-exact", Stricter, MAIL),
    row("rfc5280::nc::nc-permits-email-domain", Stricter, MAIL),
    row(
        "rfc5280::nc::nc-permits-email-literal-asterisk-exact-match",
        Stricter,
        MAIL,
    ),
    row(
        "rfc5280::nc::nc-permits-email-literal-double-asterisk",
        Stricter,
        MAIL,
    ),
    row(
        "rfc5280::nc::nc-permits-email-literal-mid-asterisk",
        Stricter,
        MAIL,
    ),
    row("rfc5280::pc::ica-noncritical-pc", Looser, POLICY),
    row(
        "rfc5280::san::noncritical-with-empty-subject",
        Looser,
        SAN_FORM,
    ),
    row("rfc5280::san::underscore-dns", Looser, UNDERSCORE),
    row("rfc5280::serial::too-long", Looser, SERIAL),
    row("rfc5280::serial::zero", Looser, SERIAL),
    row("rfc5280::ski::critical-ski", Looser, KEY_ID),
    row("rfc5280::ski::root-missing-ski", Looser, KEY_ID),
    row("rfc5280::ski::intermediate-missing-ski", Looser, KEY_ID),
    row(
        "rfc5280::root-non-critical-basic-constraints",
        Looser,
        BASIC_CONSTRAINTS_MARK,
    ),
    row("rfc5280::ca-as-leaf", Stricter, CA_AS_PEER),
    row(
        "webpki::aki::root-with-aki-missing-keyidentifier",
        Looser,
        KEY_ID,
    ),
    row(
        "webpki::aki::root-with-aki-authoritycertissuer",
        Looser,
        KEY_ID,
    ),
    row(
        "webpki::aki::root-with-aki-authoritycertserialnumber",
        Looser,
        KEY_ID,
    ),
    row("webpki::aki::root-with-aki-all-fields", Looser, KEY_ID),
    row("webpki::aki::root-with-aki-ski-mismatch", Looser, KEY_ID),
    row("webpki::cn::ipv4-hex-mismatch", Looser, CN),
    row("webpki::cn::ipv4-leading-zeros-mismatch", Looser, CN),
    row("webpki::cn::ipv6-uppercase-mismatch", Looser, CN),
    row("webpki::cn::ipv6-uncompressed-mismatch", Looser, CN),
    row("webpki::cn::ipv6-non-rfc5952-mismatch", Looser, CN),
    row("webpki::cn::punycode-not-in-san", Looser, CN),
    row("webpki::cn::utf8-vs-punycode-mismatch", Looser, CN),
    row("webpki::cn::not-in-san", Looser, CN),
    row("webpki::cn::case-mismatch", Looser, CN),
    row("webpki::eku::ee-anyeku", Looser, EKU_FORM),
    row("webpki::eku::ee-critical-eku", Looser, EKU_FORM),
    row("webpki::eku::ee-without-eku", Looser, EKU_FORM),
    row("webpki::eku::root-has-eku", Looser, ROOT_EKU),
    row(
        "webpki::nc::intermediate-permitted-excluded-subtrees-both-null",
        Looser,
        CONSTRAINTS_EMPTY,
    ),
    row(
        "webpki::nc::intermediate-permitted-excluded-subtrees-both-empty-sequences",
        Looser,
        CONSTRAINTS_EMPTY,
    ),
    row(
        "webpki::san::public-suffix-multi-label-wildcard-san",
        Looser,
        PUBLIC_SUFFIX,
    ),
    row(
        "webpki::san::public-suffix-private-namespace-wildcard-san",
        Looser,
        PUBLIC_SUFFIX,
    ),
    row(
        "webpki::san::san-critical-with-nonempty-subject",
        Looser,
        SAN_FORM,
    ),
    row("webpki::malformed-aia", Looser, AIA),
    row("webpki::forbidden-p192-leaf", Looser, HANDSHAKE_KEY),
    row("webpki::forbidden-dsa-leaf", Looser, HANDSHAKE_KEY),
    row("webpki::forbidden-weak-rsa-in-leaf", Looser, HANDSHAKE_KEY),
    row(
        "webpki::forbidden-rsa-not-divisible-by-8-in-root",
        Looser,
        RSA_BITS,
    ),
    row(
        "webpki::forbidden-rsa-key-not-divisible-by-8-in-leaf",
        Looser,
        RSA_BITS,
    ),
];

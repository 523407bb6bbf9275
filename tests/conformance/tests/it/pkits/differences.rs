//! The paths that are judged otherwise than PKITS expects, by their reasons.

use crate::verdicts::{
    Difference,
    Side::{self, Looser, Stricter},
    row,
};

/// Paths without a verdict of their own: it depends on the policies that a caller asks for, and certificate policies decide
/// nothing here.
pub(super) const POLICY_SETTINGS: &[&str] = &[
    "AllCertificatesNoPoliciesTest2EE",
    "AllCertificatesSamePoliciesTest10EE",
    "AllCertificatesSamePoliciesTest13EE",
    "AllCertificatesanyPolicyTest11EE",
    "AnyPolicyTest14EE",
    "CPSPointerQualifierTest20EE",
    "DifferentPoliciesTest12EE",
    "DifferentPoliciesTest3EE",
    "DifferentPoliciesTest4EE",
    "DifferentPoliciesTest5EE",
    "DifferentPoliciesTest7EE",
    "DifferentPoliciesTest8EE",
    "DifferentPoliciesTest9EE",
    "OverlappingPoliciesTest6EE",
    "UserNoticeQualifierTest15EE",
    "UserNoticeQualifierTest16EE",
    "UserNoticeQualifierTest17EE",
    "UserNoticeQualifierTest18EE",
    "UserNoticeQualifierTest19EE",
    "inhibitAnyPolicyTest3EE",
];

/// The lists that are refused when they are read, and why.
pub(super) const REFUSED_LISTS: [(&str, &str); 23] = [
    (
        "BadCRLSignatureCACRL",
        "not a valid BIT STRING of whole octets",
    ),
    ("DSACACRL", "DSA with SHA-1"),
    ("DSAParametersInheritedCACRL", "DSA with SHA-1"),
    ("UnknownCRLEntryExtensionCACRL", "critical extension"),
    ("UnknownCRLExtensionCACRL", "critical extension"),
    ("deltaCRLCA1deltaCRL", "delta list"),
    ("deltaCRLCA2deltaCRL", "delta list"),
    ("deltaCRLCA3deltaCRL", "delta list"),
    ("deltaCRLIndicatorNoBaseCACRL", "delta list"),
    ("distributionPoint2CACRL", "relative to its issuer"),
    ("indirectCRLCA1CRL", "indirect"),
    ("indirectCRLCA3cRLIssuerCRL", "indirect"),
    ("indirectCRLCA4cRLIssuerCRL", "indirect"),
    ("indirectCRLCA5CRL", "indirect"),
    (
        "onlyContainsAttributeCertsCACRL",
        "attribute certificates only",
    ),
    ("onlySomeReasonsCA1compromiseCRL", "some reasons only"),
    ("onlySomeReasonsCA1otherreasonsCRL", "some reasons only"),
    ("onlySomeReasonsCA2CRL1", "some reasons only"),
    ("onlySomeReasonsCA2CRL2", "some reasons only"),
    ("onlySomeReasonsCA3compromiseCRL", "some reasons only"),
    ("onlySomeReasonsCA3otherreasonsCRL", "some reasons only"),
    ("onlySomeReasonsCA4compromiseCRL", "some reasons only"),
    ("onlySomeReasonsCA4otherreasonsCRL", "some reasons only"),
];

/// Paths that a list revokes.
pub(super) const REVOKED: &[&str] = &[
    "InvalidLongSerialNumberTest18EE",
    "InvalidNegativeSerialNumberTest15EE",
    "InvalidRevokedCATest2EE",
    "InvalidRevokedEETest3EE",
    "InvaliddeltaCRLTest3EE",
    "InvaliddeltaCRLTest6EE",
    "InvaliddeltaCRLTest9EE",
    "InvaliddistributionPointTest2EE",
];

/// Paths of whose revocation nothing current is known, as far as the lists here go.
const UNKNOWN: &[&str] = &[
    "InvalidBadCRLIssuerNameTest5EE",
    "InvalidBadCRLSignatureTest4EE",
    "InvalidBasicSelfIssuedCRLSigningKeyTest7EE",
    "InvalidBasicSelfIssuedNewWithOldTest5EE",
    "InvalidBasicSelfIssuedOldWithNewTest2EE",
    "InvalidIDPwithindirectCRLTest23EE",
    "InvalidIDPwithindirectCRLTest26EE",
    "InvalidMissingCRLTest1EE",
    "InvalidOldCRLnextUpdateTest11EE",
    "InvalidSeparateCertificateandCRLKeysTest20EE",
    "InvalidSeparateCertificateandCRLKeysTest21EE",
    "InvalidUnknownCRLEntryExtensionTest8EE",
    "InvalidUnknownCRLExtensionTest10EE",
    "InvalidUnknownCRLExtensionTest9EE",
    "InvalidWrongCRLTest6EE",
    "InvalidcRLIssuerTest27EE",
    "InvalidcRLIssuerTest31EE",
    "InvalidcRLIssuerTest32EE",
    "InvalidcRLIssuerTest34EE",
    "InvalidcRLIssuerTest35EE",
    "InvaliddeltaCRLIndicatorNoBaseTest1EE",
    "InvaliddeltaCRLTest10EE",
    "InvaliddistributionPointTest3EE",
    "InvaliddistributionPointTest6EE",
    "InvaliddistributionPointTest8EE",
    "InvaliddistributionPointTest9EE",
    "InvalidkeyUsageCriticalcRLSignFalseTest4EE",
    "InvalidkeyUsageNotCriticalcRLSignFalseTest5EE",
    "InvalidonlyContainsAttributeCertsTest14EE",
    "InvalidonlyContainsCACertsTest12EE",
    "InvalidonlySomeReasonsTest15EE",
    "InvalidonlySomeReasonsTest16EE",
    "InvalidonlySomeReasonsTest17EE",
    "InvalidonlySomeReasonsTest20EE",
    "InvalidonlySomeReasonsTest21EE",
    "Invalidpre2000CRLnextUpdateTest12EE",
];

/// Every path that differs.
pub(super) fn differences() -> Vec<Difference> {
    rows(&[ABOUT_LISTS, ABOUT_CERTIFICATES].concat())
}

/// Every path that differs where no list is asked for.
pub(super) fn differences_without_lists() -> Vec<Difference> {
    let revoked = (Looser, "a list revokes it", REVOKED);
    let by_delta = (
        Looser,
        "a delta list revokes it",
        &["InvaliddeltaCRLTest4EE"][..],
    );
    let unknown = (
        Looser,
        "good in itself: its list is missing, not to be used or past its end",
        UNKNOWN,
    );
    rows(&[&[revoked, by_delta, unknown], ABOUT_CERTIFICATES].concat())
}

fn rows(groups: &[(Side, &'static str, &[&'static str])]) -> Vec<Difference> {
    let mut rows = Vec::new();
    for &(side, reason, ids) in groups {
        rows.extend(ids.iter().map(|id| row(id, side, reason)));
    }
    rows
}

const ABOUT_LISTS: &[(Side, &str, &[&str])] = &[
    (
        Looser,
        "it is revoked by a delta list alone: those are refused where they are delivered, and the complete list is current",
        &["InvaliddeltaCRLTest4EE"],
    ),
    (
        Stricter,
        "the complete list holds it back, and the delta list that lets it go is refused",
        &["ValiddeltaCRLTest5EE"],
    ),
    (
        Stricter,
        "a list counts for the key that signed it and not for another key of the same name: two CAs of one name, as in a \
         rotation, must not answer for each other",
        &[
            "ValidBasicSelfIssuedCRLSigningKeyTest6EE",
            "ValidBasicSelfIssuedNewWithOldTest4EE",
            "ValidBasicSelfIssuedOldWithNewTest1EE",
            "ValidSeparateCertificateandCRLKeysTest19EE",
        ],
    ),
    (
        Stricter,
        "indirect lists are refused, so nothing is known",
        &[
            "ValidIDPwithindirectCRLTest22EE",
            "ValidIDPwithindirectCRLTest24EE",
            "ValidIDPwithindirectCRLTest25EE",
            "ValidcRLIssuerTest28EE",
            "ValidcRLIssuerTest29EE",
            "ValidcRLIssuerTest30EE",
            "ValidcRLIssuerTest33EE",
        ],
    ),
    (
        Stricter,
        "lists of some reasons only are refused, so nothing is known",
        &[
            "ValidonlySomeReasonsTest18EE",
            "ValidonlySomeReasonsTest19EE",
        ],
    ),
    (
        Stricter,
        "distribution points named relative to their issuer are not matched, so nothing is known",
        &[
            "ValiddistributionPointTest4EE",
            "ValiddistributionPointTest5EE",
            "ValiddistributionPointTest7EE",
        ],
    ),
];

const ABOUT_CERTIFICATES: &[(Side, &str, &[&str])] = &[
    (
        Stricter,
        "webpki applies no constraint on directory names and refuses each certificate under one",
        &[
            "ValidDNandRFC822nameConstraintsTest27EE",
            "ValidDNnameConstraintsTest11EE",
            "ValidDNnameConstraintsTest14EE",
            "ValidDNnameConstraintsTest18EE",
            "ValidDNnameConstraintsTest19EE",
            "ValidDNnameConstraintsTest1EE",
            "ValidDNnameConstraintsTest4EE",
            "ValidDNnameConstraintsTest5EE",
            "ValidDNnameConstraintsTest6EE",
        ],
    ),
    (
        Stricter,
        "webpki has no rule for mail addresses and URIs and refuses each one under a constraint of their form",
        &[
            "ValidRFC822nameConstraintsTest21EE",
            "ValidRFC822nameConstraintsTest23EE",
            "ValidRFC822nameConstraintsTest25EE",
            "ValidURInameConstraintsTest34EE",
            "ValidURInameConstraintsTest36EE",
        ],
    ),
    (
        Stricter,
        "certificate policies decide nothing here, so a critical extension about them is refused",
        &[
            "ValidPolicyMappingTest11EE",
            "ValidPolicyMappingTest12EE",
            "ValidPolicyMappingTest13EE",
            "ValidPolicyMappingTest14EE",
            "ValidPolicyMappingTest1EE",
            "ValidPolicyMappingTest3EE",
            "ValidPolicyMappingTest5EE",
            "ValidPolicyMappingTest6EE",
            "ValidPolicyMappingTest9EE",
            "ValidSelfIssuedinhibitAnyPolicyTest7EE",
            "ValidSelfIssuedinhibitAnyPolicyTest9EE",
            "ValidSelfIssuedinhibitPolicyMappingTest7EE",
            "ValidSelfIssuedrequireExplicitPolicyTest6EE",
            "ValidinhibitAnyPolicyTest2EE",
            "ValidinhibitPolicyMappingTest2EE",
            "ValidinhibitPolicyMappingTest4EE",
            "ValidrequireExplicitPolicyTest1EE",
            "ValidrequireExplicitPolicyTest2EE",
            "ValidrequireExplicitPolicyTest4EE",
        ],
    ),
    (
        Stricter,
        "webpki doesn't except self-issued intermediates from path length",
        &[
            "ValidSelfIssuedpathLenConstraintTest15EE",
            "ValidSelfIssuedpathLenConstraintTest17EE",
        ],
    ),
    (
        Stricter,
        "issuer and subject are compared byte by byte, not as text",
        &[
            "ValidNameChainingCapitalizationTest5EE",
            "ValidNameChainingWhitespaceTest3EE",
            "ValidNameChainingWhitespaceTest4EE",
            "ValidRolloverfromPrintableStringtoUTF8StringTest10EE",
            "ValidUTF8StringCaseInsensitiveMatchTest11EE",
        ],
    ),
    (
        Stricter,
        "a CA's certificate is nobody's server or client",
        &[
            "ValidonlyContainsCACertsTest13EE",
            "ValidpathLenConstraintTest14EE",
            "ValidpathLenConstraintTest8EE",
        ],
    ),
    (
        Stricter,
        "DSA is not accepted",
        &[
            "ValidDSAParameterInheritanceTest5EE",
            "ValidDSASignaturesTest4EE",
        ],
    ),
    (
        Stricter,
        "unique identifiers are not read (RFC 5280 §4.1.2.8: CAs must not write them)",
        &["ValidNameUIDsTest6EE"],
    ),
    (
        Stricter,
        "dates before 1970 are not read",
        &["Validpre2000UTCnotBeforeDateTest3EE"],
    ),
];

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

/// Every path that differs.
pub(super) fn differences() -> Vec<Difference> {
    let mut rows = Vec::new();
    for &(side, reason, ids) in GROUPS {
        rows.extend(ids.iter().map(|id| row(id, side, reason)));
    }
    rows
}

const GROUPS: &[(Side, &str, &[&str])] = &[
    (
        Looser,
        "missing: CRLs are not read yet, so nobody is revoked, and a CA that publishes none or a bad one is no reason to refuse",
        &[
            "InvalidBadCRLIssuerNameTest5EE",
            "InvalidBadCRLSignatureTest4EE",
            "InvalidBasicSelfIssuedCRLSigningKeyTest7EE",
            "InvalidBasicSelfIssuedNewWithOldTest5EE",
            "InvalidBasicSelfIssuedOldWithNewTest2EE",
            "InvalidIDPwithindirectCRLTest23EE",
            "InvalidIDPwithindirectCRLTest26EE",
            "InvalidLongSerialNumberTest18EE",
            "InvalidMissingCRLTest1EE",
            "InvalidNegativeSerialNumberTest15EE",
            "InvalidOldCRLnextUpdateTest11EE",
            "InvalidRevokedCATest2EE",
            "InvalidRevokedEETest3EE",
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
            "InvaliddeltaCRLTest3EE",
            "InvaliddeltaCRLTest4EE",
            "InvaliddeltaCRLTest6EE",
            "InvaliddeltaCRLTest9EE",
            "InvaliddistributionPointTest2EE",
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
        ],
    ),
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

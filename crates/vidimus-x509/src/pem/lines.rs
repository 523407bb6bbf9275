//! A PEM text cut into blocks.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use super::PemError;

/// The labels that may stand in a file beside the one that is wanted.
const KNOWN: [&str; 20] = [
    "ATTRIBUTE CERTIFICATE",
    "CERTIFICATE",
    "CERTIFICATE REQUEST",
    "CMS",
    "DH PARAMETERS",
    "DSA PARAMETERS",
    "EC PARAMETERS",
    "EC PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "NEW CERTIFICATE REQUEST",
    "OPENSSH PRIVATE KEY",
    "PKCS #7 SIGNED DATA",
    "PKCS7",
    "PRIVATE KEY",
    "PUBLIC KEY",
    "RSA PRIVATE KEY",
    "RSA PUBLIC KEY",
    "TRUSTED CERTIFICATE",
    "X509 CERTIFICATE",
    "X509 CRL",
];

const OPENING: &[u8] = b"-----BEGIN ";

/// One block, its content still text.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    /// Where it begins, counted from 1.
    pub(super) line: usize,
    /// The lines between its boundaries, trimmed at their ends.
    pub(super) lines: Vec<&'a [u8]>,
}

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Begin(&'a str),
    End(&'a str),
    NotQuiteABoundary,
    Other,
}

/// Every block of the text, whatever its label, as long as that is known or in `also_known`.
pub(super) fn blocks<'a>(text: &'a [u8], also_known: &[&str]) -> Result<Vec<Block<'a>>, PemError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut done = Vec::new();
    let mut open: Option<Block<'a>> = None;
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let number = index.saturating_add(1);
        let line = line.trim_ascii_end();
        let boundary = || PemError::Boundary { line: number };
        match (classify(line), open.take()) {
            (Line::NotQuiteABoundary, _) | (Line::End(_), None) => return Err(boundary()),
            (Line::Begin(label), None) => {
                if !KNOWN.contains(&label) && !also_known.contains(&label) {
                    return Err(boundary());
                }
                open = Some(Block {
                    label,
                    line: number,
                    lines: Vec::new(),
                });
            }
            (Line::End(label), Some(block)) if label == block.label => done.push(block),
            (Line::Begin(_) | Line::End(_), Some(block)) => return Err(unended(&block)),
            (Line::Other, Some(mut block)) => {
                block.lines.push(line);
                open = Some(block);
            }
            (Line::Other, None) => {}
        }
    }
    match open {
        Some(block) => Err(unended(&block)),
        None => Ok(done),
    }
}

fn unended(block: &Block<'_>) -> PemError {
    PemError::Unended {
        label: block.label.to_owned(),
        line: block.line,
    }
}

fn classify(line: &[u8]) -> Line<'_> {
    let label = |prefix: &[u8]| {
        let label = line.strip_prefix(prefix)?.strip_suffix(b"-----")?;
        let label = std::str::from_utf8(label).ok()?;
        let clean = !label.is_empty() && !label.contains('-') && label.trim() == label;
        clean.then_some(label)
    };
    if let Some(label) = label(OPENING) {
        Line::Begin(label)
    } else if let Some(label) = label(b"-----END ") {
        Line::End(label)
    } else if resembles_a_boundary(line) {
        Line::NotQuiteABoundary
    } else {
        Line::Other
    }
}

/// Dashes (also those a word processor makes of them) at either end, and inside what a boundary
/// would say; and the opening of one after something else, as where a block is one line of JSON. A heading between dashes
/// is text like any other.
fn resembles_a_boundary(line: &[u8]) -> bool {
    const JUDGED: usize = 256;
    if line.windows(OPENING.len()).any(|part| part == OPENING) {
        return true;
    }
    let dash = |c: char| matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    // What opens a longer line says enough, such as a whole block that has lost its line ends, and the rest must not cost
    // time.
    let line = line.trim_ascii_start();
    let line = String::from_utf8_lossy(line.get(..JUDGED).unwrap_or(line));
    // Nor does a byte order mark or a quotation mark, as of a value cut out of JSON, make a block something else.
    let around = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '"' | '\'');
    let line = line.trim_matches(around);
    let inner = line.trim_matches(dash);
    if inner.len() == line.len() {
        return false;
    }
    let inner = inner.trim_start().to_ascii_uppercase();
    let opens_or_ends = inner.starts_with("BEGIN") || inner.starts_with("END");
    let names_a_block = ["CERT", "KEY", "CRL"]
        .iter()
        .any(|word| inner.contains(word));
    names_a_block && (opens_or_ends || line.starts_with("-----"))
}

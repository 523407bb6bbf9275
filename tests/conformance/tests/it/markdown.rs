//! Telling code from prose in a page.

/// The pieces of a page that are prose.
pub(crate) fn prose(page: &str) -> Vec<&str> {
    pieces(page)
        .into_iter()
        .filter_map(|(piece, is_code)| (!is_code).then_some(piece))
        .collect()
}

/// The pieces of a page that are code: lines of a block, and what stands between backticks.
pub(crate) fn code(page: &str) -> Vec<&str> {
    pieces(page)
        .into_iter()
        .filter_map(|(piece, is_code)| is_code.then_some(piece))
        .collect()
}

/// The blocks of a page that are marked as `language`.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if info.trim() == language {
                blocks.push(block.join("\n"));
            }
        }
    }
    blocks
}

fn pieces(page: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            pieces.push((line, true));
        } else {
            // Every second piece between backticks is code.
            pieces.extend(line.split('`').zip([false, true].into_iter().cycle()));
        }
    }
    pieces
}

#[test]
fn code_is_told_from_prose() {
    let page = "Say `make run`, then:\n```\nmake test\n```\nand make sure.";
    assert_eq!(code(page), ["make run", "make test"]);
    assert_eq!(prose(page), ["Say ", ", then:", "and make sure."]);
}

#[test]
fn blocks_are_found_by_their_language() {
    let page = "```\nnot this\n```\n```yaml\na: 1\nb: 2\n```\n```yaml\nc: 3\n```\n";
    assert_eq!(blocks(page, "yaml"), ["a: 1\nb: 2", "c: 3"]);
}

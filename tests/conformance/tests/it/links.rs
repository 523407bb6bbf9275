//! Links between the pages.

use std::path::Path;

use crate::{markdown, repository};

#[test]
fn every_relative_link_of_every_page_leads_somewhere() {
    let root = repository::root();
    let mut broken = Vec::new();
    let mut followed = 0;
    for page in repository::pages() {
        let text = std::fs::read_to_string(&page).expect("a page that was just found");
        let folder = page.parent().expect("a page lies in a folder");
        for target in relative_links(&text) {
            followed += 1;
            if !folder.join(&target).exists() {
                broken.push(format!(
                    "{}: {target}",
                    page.strip_prefix(&root).unwrap_or(&page).display()
                ));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "links that lead nowhere:\n{}",
        broken.join("\n")
    );
    assert!(
        followed > 20,
        "only {followed} links found: does the reader of links still work?"
    );
}

#[test]
fn links_are_read_out_of_markdown() {
    let page = "See [a](a.md), [b](b/c.md#part) and [web](https://example.com).\n```\n[not](a-link.md)\n```\n`[nor](this)`";
    assert_eq!(relative_links(page), ["a.md", "b/c.md"]);
}

/// Targets of inline links that are files: no addresses, no anchors within the page, nothing in code.
fn relative_links(page: &str) -> Vec<String> {
    // A link may have code in its text, so the pieces of prose are read together.
    markdown::prose(page)
        .join(" ")
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|target| {
            !target.contains("://") && !target.starts_with('#') && !target.starts_with("mailto:")
        })
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && Path::new(target).is_relative())
        .map(str::to_owned)
        .collect()
}

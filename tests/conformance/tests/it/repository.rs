//! Reading the repository that the tests lie in.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use vidimus_testkit::command;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .nth(2)
        .expect("this package lies two folders below the root")
        .to_owned()
}

/// The text of the file at `path` from the root.
pub(crate) fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| fail(&path, &error))
}

/// The paths from the root of what lies in the folder at `path` from the root.
pub(crate) fn files(path: &str) -> Vec<String> {
    let folder = root().join(path);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| fail(&folder, &error));
    let names = entries.map(|entry| entry.expect("an entry of a folder of the repository"));
    names
        .map(|entry| format!("{path}/{}", entry.file_name().to_string_lossy()))
        .collect()
}

/// Every Markdown file of the project, from the root; what is built or fetched is left out.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    collect(&root(), &mut pages);
    assert!(pages.len() > 10, "only {} pages found", pages.len());
    pages
}

/// `cargo` in the root, building where the tests that are running were built.
pub(crate) fn cargo(arguments: &[&str]) -> String {
    // target/debug/deps/it-0123456789abcdef
    let this = env::current_exe().expect("the path of this test");
    let target = this
        .ancestors()
        .nth(3)
        .expect("test binaries lie in target/<profile>/deps");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target)
        .args(arguments);
    command::run(cargo, b"", Duration::from_secs(1500))
        .success()
        .stdout_text()
}

/// Ends a test that cannot read the repository.
#[expect(
    clippy::panic,
    reason = "the repository is not as this test expects it"
)]
pub(crate) fn fail(path: &Path, error: &std::io::Error) -> ! {
    panic!("read {}: {error}", path.display())
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| fail(folder, &error));
    for entry in entries {
        let entry = entry.expect("an entry of a folder of the repository");
        let name = entry.file_name();
        let kind = entry.file_type().expect("the type of an entry");
        if kind.is_dir() {
            let skipped = ["target", "book", "node_modules", "vidimus-data"];
            if !skipped.iter().any(|skip| name == *skip) && !name.to_string_lossy().starts_with('.')
            {
                collect(&entry.path(), pages);
            }
        } else if kind.is_file() && name.to_string_lossy().ends_with(".md") {
            pages.push(entry.path());
        }
    }
}

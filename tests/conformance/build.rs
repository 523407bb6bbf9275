//! Says whether the cases of x509-limbo are at hand, so that their test is reported as ignored, with the reason, where
//! they aren't: they are a megabyte of others' data, read in place and never copied.

use std::{env, path::PathBuf};

/// The folder that x509-limbo.json lies in.
const FOLDER: &str = "VIDIMUS_CONFORMANCE";

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = package.join("../..");
    let folder = env::var_os(FOLDER).map_or_else(|| "../shared/conformance".into(), PathBuf::from);
    let cases = root.join(folder).join("x509-limbo.json");

    println!("cargo::rustc-check-cfg=cfg(x509_limbo)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={FOLDER}");
    println!("cargo::rustc-env=X509_LIMBO={}", cases.display());
    if cases.is_file() {
        println!("cargo::rerun-if-changed={}", cases.display());
        println!("cargo::rustc-cfg=x509_limbo");
    } else {
        println!(
            "cargo::warning=no {}: the x509-limbo test will be ignored; set {FOLDER} to its folder",
            cases.display()
        );
    }
}

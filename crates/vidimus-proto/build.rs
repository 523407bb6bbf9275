//! Compiles the workspace's `.proto` files with protox, so that no `protoc` is needed.

use std::{env, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 3] = [
    "provider/v1/provider.proto",
    "vidimus/node/v1/node.proto",
    "vidimus/testkit/v1/echo.proto",
];

#[expect(
    clippy::disallowed_methods,
    reason = "a build script's output needs no durability"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}

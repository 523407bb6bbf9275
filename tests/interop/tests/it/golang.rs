//! Builds the Go program: stubs from our descriptors, by Go's own generators, without `protoc`.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use prost::Message as _;
use prost_types::{
    FileDescriptorSet,
    compiler::{CodeGeneratorRequest, CodeGeneratorResponse, Version},
};
use vidimus_testkit::{command, golang};

/// Downloads of the modules from a cold cache are part of it.
const BUILD: Duration = Duration::from_secs(600);
const PROTO: &str = "provider/v1/provider.proto";
const MODULE: &str = "vidimus.dev/interop";
/// The committed versions and no others; and no look at the repository around the folder.
const FLAGS: &str = "-mod=readonly -buildvcs=false";
const GENERATORS: [&str; 2] = [
    "google.golang.org/protobuf/cmd/protoc-gen-go",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
];

/// The program, built once a run.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build)
}

fn build() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop-go");
    fs::create_dir_all(&dir).unwrap();
    // another run of the same tests waits its turn
    let lock = File::create(dir.join(".lock")).unwrap();
    lock.lock().unwrap();

    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
    for source in fs::read_dir(sources).unwrap() {
        let source = source.unwrap();
        if source.file_type().unwrap().is_file() {
            fs::copy(source.path(), dir.join(source.file_name())).unwrap();
        }
    }
    let request = generator_request();
    for generator in GENERATORS {
        generate(&dir, generator, &request);
    }
    let binary = dir.join("interop");
    let out = binary.to_str().unwrap();
    let mut build = golang::command(&dir, &["build", "-o", out, "."]);
    build.env("GOFLAGS", FLAGS);
    command::run(build, b"", BUILD).success();
    binary
}

/// What `protoc` would send to its plug-ins.
fn generator_request() -> Vec<u8> {
    let set = FileDescriptorSet::decode(vidimus_proto::FILE_DESCRIPTOR_SET).unwrap();
    let proto_file: Vec<_> = set
        .file
        .into_iter()
        .filter(|file| file.name() == PROTO)
        .collect();
    assert_eq!(proto_file.len(), 1);
    CodeGeneratorRequest {
        file_to_generate: vec![PROTO.to_owned()],
        // the package's place, since the file itself has no `go_package`
        parameter: Some(format!("module={MODULE},M{PROTO}={MODULE}/gen/providerv1")),
        proto_file,
        compiler_version: Some(Version {
            major: Some(5),
            minor: Some(29),
            ..Version::default()
        }),
    }
    .encode_to_vec()
}

fn generate(dir: &Path, generator: &str, request: &[u8]) {
    let mut run: Command = golang::command(dir, &["tool", generator]);
    run.env("GOFLAGS", FLAGS);
    let output = command::run(run, request, BUILD).success();
    let response = CodeGeneratorResponse::decode(output.stdout.as_slice()).unwrap();
    assert_eq!(response.error, None);
    for file in response.file {
        let path = dir.join(file.name());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, file.content());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a generated file need not survive a crash"
)]
fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
}

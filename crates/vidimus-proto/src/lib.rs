//! Generated gRPC code only: messages, clients and server traits of the files under `proto/`.

/// `provider.v1`: what a manager calls on a provider.
pub mod provider {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("provider.v1");
    }
}

/// `vidimus.node.v1`: management of a CA node.
pub mod node {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("vidimus.node.v1");
    }
}

/// `vidimus.testkit.v1`: a service of tests, with every kind of call.
pub mod testkit {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("vidimus.testkit.v1");
    }
}

/// Every file's descriptor, as an encoded `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

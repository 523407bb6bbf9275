//! Our provider and our manager against grpc-go: nothing but tests, under `tests/it`.

//! Generates the stubs of the only service. Its messages are structs with explicit tags (src/messages.rs): only pubmark
//! uses this protocol, and a compiler for .proto files would add about thirty crates to the build.

fn main() {
    let attend = tonic_build::manual::Method::builder()
        .name("attend")
        .route_name("Attend")
        .comment("A node attends runs until either end says goodbye.")
        .input_type("crate::messages::FromNode")
        .output_type("crate::messages::ToNode")
        .codec_path("tonic_prost::ProstCodec")
        .client_streaming()
        .server_streaming()
        .build();
    let service = tonic_build::manual::Service::builder()
        .name("Control")
        .package("pubmark")
        .comment("Runs on several machines.")
        .method(attend)
        .build();
    tonic_build::manual::Builder::new().compile(&[service]);
}

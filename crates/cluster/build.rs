//! Stubs of the one service. Its messages are structs with tags of their own (src/messages.rs): nobody else speaks this protocol, and a
//! compiler of .proto files would be thirty crates to wait for.

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

//! Compares this crate's declarations of the library's types with its headers, if the headers, an IDL compiler and a C compiler
//! are installed.

use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use crate::raw::{
    DISCOVERED_WRITERS, DiscoveredEndpoint, KeyDescriptor, MatchedStatus, SampleInfo, TIMEOUT, TopicDescriptor,
};
use crate::sample::{self, RawSample};

/// The same lines as `layout.c` prints.
fn declared() -> Vec<String> {
    let mut lines = vec![
        format!("dds_topic_descriptor_t {}", size_of::<TopicDescriptor>()),
        format!("dds_topic_descriptor_t.m_typename {}", offset_of!(TopicDescriptor, type_name)),
        format!("dds_topic_descriptor_t.m_ops {}", offset_of!(TopicDescriptor, program)),
        format!("dds_topic_descriptor_t.type_information {}", offset_of!(TopicDescriptor, type_information)),
        format!("dds_topic_descriptor_t.restrict_data_representation {}", offset_of!(TopicDescriptor, representations)),
        format!("dds_key_descriptor_t {}", size_of::<KeyDescriptor>()),
        format!("dds_sample_info_t {}", size_of::<SampleInfo>()),
        format!("dds_sample_info_t.valid_data {}", offset_of!(SampleInfo, valid_data)),
        format!("dds_sample_info_t.source_timestamp {}", offset_of!(SampleInfo, source_timestamp)),
        format!("dds_publication_matched_status_t {}", size_of::<MatchedStatus>()),
        format!("dds_publication_matched_status_t.current_count {}", offset_of!(MatchedStatus, current)),
        format!("dds_builtintopic_endpoint_t {}", size_of::<DiscoveredEndpoint>()),
        format!("dds_builtintopic_endpoint_t.topic_name {}", offset_of!(DiscoveredEndpoint, topic_name)),
        format!("pubmark_Message {}", size_of::<RawSample>()),
        format!("pubmark_Message.payload {}", sample::PAYLOAD_AT),
        // RELIABLE, KEEP_ALL, TRANSIENT_LOCAL and AUTOMATIC, as `qos` has them.
        format!("constants {TIMEOUT} 1 1 1 0 {DISCOVERED_WRITERS}"),
    ];
    lines.extend(sample::PLAIN_PROGRAM.iter().map(|word| format!("plain {word:08x}")));
    lines.extend(sample::KEYED_PROGRAM.iter().map(|word| format!("keyed {word:08x}")));
    lines.push(format!("operations {} {}", sample::OPERATIONS, sample::OPERATIONS));
    lines
}

#[test]
#[allow(clippy::unwrap_used)]
fn types_are_declared_as_the_headers_have_them() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let run =
        |program: &str, arguments: &[&str]| Command::new(program).args(arguments).current_dir(folder.path()).output();
    let idl = crate_folder.join("message.idl");
    let source = crate_folder.join("src/layout.c");
    let has_headers = Path::new("/usr/include/dds/dds.h").is_file();
    let Some(types) = run("idlc", &[idl.to_str().unwrap()]).ok().filter(|_| has_headers) else {
        return pubmark_testing::skip("no idlc or no dds/dds.h (`apt-get install cyclonedds-dev cyclonedds-tools`)");
    };
    assert!(types.status.success(), "{}", String::from_utf8_lossy(&types.stderr));
    let Ok(compiled) = run("cc", &["-I.", "-o", "layout", source.to_str().unwrap(), "message.c", "-lddsc"]) else {
        return pubmark_testing::skip("there is no C compiler `cc`");
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(folder.path().join("layout")).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.lines().collect::<Vec<_>>(), declared());
}

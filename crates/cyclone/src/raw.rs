//! The declarations of `dds/dds.h` of Cyclone DDS 0.10 that are used here.

use std::ffi::{c_char, c_void};

/// `dds_entity_t`: a handle into a table of the library's. A deleted one is refused, never dereferenced.
pub type Entity = i32;
/// `dds_return_t`.
pub type ReturnCode = i32;
/// `dds_duration_t`: nanoseconds.
pub type Duration = i64;

/// `DDS_RETCODE_TIMEOUT`.
pub const TIMEOUT: ReturnCode = -10;
/// `DDS_INFINITY`.
pub const INFINITY: Duration = i64::MAX;
/// `DDS_BUILTIN_TOPIC_DCPSPUBLICATION`.
pub const DISCOVERED_WRITERS: Entity = 0x7fff_0000 + 3;

/// `dds_qos_t` and `dds_listener_t`, which are opaque.
#[repr(C)]
pub struct Opaque {
    nothing: [u8; 0],
}

/// `dds_publication_matched_status_t`, and that of subscriptions, which has the same fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MatchedStatus {
    pub total: u32,
    pub total_change: i32,
    pub current: u32,
    pub current_change: i32,
    pub last: u64,
}

/// `dds_sample_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SampleInfo {
    pub sample_state: u32,
    pub view_state: u32,
    pub instance_state: u32,
    pub valid_data: bool,
    pub source_timestamp: i64,
    pub instance: u64,
    pub publication: u64,
    pub disposed_generations: u32,
    pub no_writers_generations: u32,
    pub sample_rank: u32,
    pub generation_rank: u32,
    pub absolute_generation_rank: u32,
}

/// `dds_builtintopic_endpoint_t`.
#[repr(C)]
pub struct DiscoveredEndpoint {
    pub key: [u8; 16],
    pub participant_key: [u8; 16],
    pub participant: u64,
    pub topic_name: *const c_char,
    pub type_name: *const c_char,
    pub qos: *const Opaque,
}

/// `dds_key_descriptor_t`.
#[repr(C)]
pub struct KeyDescriptor {
    pub name: *const c_char,
    pub offset: u32,
    pub index: u32,
}

/// `struct dds_type_meta_ser`.
#[repr(C)]
pub struct TypeMeta {
    pub data: *const u8,
    pub bytes: u32,
}

/// `dds_topic_descriptor_t`.
#[repr(C)]
pub struct TopicDescriptor {
    pub size: u32,
    pub align: u32,
    pub flags: u32,
    pub keys: u32,
    pub type_name: *const c_char,
    pub key_descriptors: *const KeyDescriptor,
    pub operations: u32,
    pub program: *const u32,
    pub meta: *const c_char,
    pub type_information: TypeMeta,
    pub type_mapping: TypeMeta,
    pub representations: u32,
}

/// `dds_on_data_available_fn`.
pub type OnData = extern "C" fn(Entity, *mut c_void);
/// `dds_on_publication_matched_fn` and `dds_on_subscription_matched_fn`.
pub type OnMatched = extern "C" fn(Entity, MatchedStatus, *mut c_void);

/// The functions used, found by name when the library is loaded.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Addresses of the library's functions.
        #[allow(missing_docs)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Calls `find` for the address of every function; `Err` is the name of one that does not exist.
            ///
            /// # Safety
            /// `find` must return the function that `dds/dds.h` of version 0.10 declares under that name.
            pub unsafe fn find(
                find: impl Fn(&std::ffi::CStr) -> Option<std::ptr::NonNull<c_void>>,
            ) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let found = std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(&find);
                        let address = found.ok_or(stringify!($name))?;
                        // SAFETY: a function's address has the size of a pointer, and its type is the caller's promise.
                        unsafe {
                            std::mem::transmute::<
                                std::ptr::NonNull<c_void>,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    fn dds_create_domain(u32, *const c_char) -> Entity;
    fn dds_create_participant(u32, *const Opaque, *const Opaque) -> Entity;
    fn dds_create_topic(Entity, *const TopicDescriptor, *const c_char, *const Opaque, *const Opaque) -> Entity;
    fn dds_create_writer(Entity, Entity, *const Opaque, *const Opaque) -> Entity;
    fn dds_create_reader(Entity, Entity, *const Opaque, *const Opaque) -> Entity;
    fn dds_delete(Entity) -> ReturnCode;
    fn dds_write(Entity, *const c_void) -> ReturnCode;
    fn dds_wait_for_acks(Entity, Duration) -> ReturnCode;
    fn dds_take(Entity, *mut *mut c_void, *mut SampleInfo, usize, u32) -> ReturnCode;
    fn dds_return_loan(Entity, *mut *mut c_void, i32) -> ReturnCode;
    fn dds_strretcode(ReturnCode) -> *const c_char;
    fn dds_create_listener(*mut c_void) -> *mut Opaque;
    fn dds_delete_listener(*mut Opaque);
    fn dds_lset_data_available(*mut Opaque, OnData);
    fn dds_lset_publication_matched(*mut Opaque, OnMatched);
    fn dds_create_qos() -> *mut Opaque;
    fn dds_delete_qos(*mut Opaque);
    fn dds_qset_reliability(*mut Opaque, u32, Duration);
    fn dds_qset_history(*mut Opaque, u32, i32);
    fn dds_qset_durability(*mut Opaque, u32);
    fn dds_qset_durability_service(*mut Opaque, Duration, u32, i32, i32, i32, i32);
    fn dds_qset_liveliness(*mut Opaque, u32, Duration);
    fn dds_qset_lifespan(*mut Opaque, Duration);
    fn dds_qset_writer_data_lifecycle(*mut Opaque, bool);
}

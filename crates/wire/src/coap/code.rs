//! Method and response codes (RFC 7252 §12.1, RFC 7959 §6.1).

use std::fmt;

/// A code `c.dd`: the class in the upper three bits, the detail in the lower five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

impl Code {
    /// No request and no response: an acknowledgement alone, a reset, a ping.
    pub const EMPTY: Code = Code::new(0, 0);
    /// Requests a representation.
    pub const GET: Code = Code::new(0, 1);
    /// Makes the server do something with a body.
    pub const POST: Code = Code::new(0, 2);
    /// Replaces a representation: publishes.
    pub const PUT: Code = Code::new(0, 3);
    /// Takes a resource away.
    pub const DELETE: Code = Code::new(0, 4);
    /// A request with a body: safe and idempotent as GET is (RFC 8132 §2).
    pub const FETCH: Code = Code::new(0, 5);
    /// Done, and the resource is new.
    pub const CREATED: Code = Code::new(2, 1);
    /// Done.
    pub const CHANGED: Code = Code::new(2, 4);
    /// A representation.
    pub const CONTENT: Code = Code::new(2, 5);
    /// A block is accepted, the next one may follow (RFC 7959).
    pub const CONTINUE: Code = Code::new(2, 31);
    /// A request that cannot be understood.
    pub const BAD_REQUEST: Code = Code::new(4, 0);
    /// A critical option that the server does not know.
    pub const BAD_OPTION: Code = Code::new(4, 2);
    /// No such resource.
    pub const NOT_FOUND: Code = Code::new(4, 4);
    /// A method that the resource does not have.
    pub const METHOD_NOT_ALLOWED: Code = Code::new(4, 5);
    /// Blocks are missing (RFC 7959).
    pub const REQUEST_ENTITY_INCOMPLETE: Code = Code::new(4, 8);
    /// Larger than the server takes.
    pub const REQUEST_ENTITY_TOO_LARGE: Code = Code::new(4, 13);
    /// No capacity for more at present.
    pub const SERVICE_UNAVAILABLE: Code = Code::new(5, 3);
    /// The server is no proxy.
    pub const PROXYING_NOT_SUPPORTED: Code = Code::new(5, 5);

    /// The code `class.detail`; `class` below 8, `detail` below 32.
    pub const fn new(class: u8, detail: u8) -> Code {
        Code(class << 5 | detail)
    }

    /// 0 for a request, 2 for success, 4 for the client's fault, 5 for the server's.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// What of its class it is.
    pub const fn detail(self) -> u8 {
        self.0 & 0x1f
    }

    /// Is it a method?
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.0 != 0
    }

    /// Is it a response (RFC 7252 §5.2: classes 2, 4 and 5)?
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2 | 4 | 5)
    }

    /// Does it report success?
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Its name in the registry; empty for a number that has none there.
    pub const fn name(self) -> &'static str {
        match (self.class(), self.detail()) {
            (0, 0) => "Empty",
            (0, 1) => "GET",
            (0, 2) => "POST",
            (0, 3) => "PUT",
            (0, 4) => "DELETE",
            (0, 5) => "FETCH",
            (2, 1) => "Created",
            (2, 2) => "Deleted",
            (2, 3) => "Valid",
            (2, 4) => "Changed",
            (2, 5) => "Content",
            (2, 31) => "Continue",
            (4, 0) => "Bad Request",
            (4, 1) => "Unauthorized",
            (4, 2) => "Bad Option",
            (4, 3) => "Forbidden",
            (4, 4) => "Not Found",
            (4, 5) => "Method Not Allowed",
            (4, 6) => "Not Acceptable",
            (4, 8) => "Request Entity Incomplete",
            (4, 12) => "Precondition Failed",
            (4, 13) => "Request Entity Too Large",
            (4, 15) => "Unsupported Content-Format",
            (4, 29) => "Too Many Requests",
            (5, 0) => "Internal Server Error",
            (5, 1) => "Not Implemented",
            (5, 2) => "Bad Gateway",
            (5, 3) => "Service Unavailable",
            (5, 4) => "Gateway Timeout",
            (5, 5) => "Proxying Not Supported",
            _ => "",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.class(), self.detail())?;
        if self.name().is_empty() { Ok(()) } else { write!(formatter, " {}", self.name()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_the_registry_writes_them() {
        assert_eq!(Code::REQUEST_ENTITY_TOO_LARGE.to_string(), "4.13 Request Entity Too Large");
        assert_eq!((Code(0x84), Code(0x45).to_string()), (Code::NOT_FOUND, "2.05 Content".to_owned()));
        assert_eq!(Code::new(4, 30).to_string(), "4.30");
    }
}

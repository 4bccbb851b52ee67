//! Reply codes and their names (§1.2 of the reference).

/// Reply codes that a client acts upon.
pub mod code {
    /// All is well.
    pub const SUCCESS: u16 = 200;
    /// A message is larger than the server takes now.
    pub const CONTENT_TOO_LARGE: u16 = 311;
    /// Not allowed for this user, or not logged in.
    pub const ACCESS_REFUSED: u16 = 403;
    /// No such queue or exchange.
    pub const NOT_FOUND: u16 = 404;
    /// A condition does not hold; RabbitMQ's code for messages above its limit.
    pub const PRECONDITION_FAILED: u16 = 406;
}

/// The name of a reply code.
pub fn reply_name(code: u16) -> Option<&'static str> {
    Some(match code {
        200 => "REPLY_SUCCESS",
        311 => "CONTENT_TOO_LARGE",
        312 => "NO_ROUTE",
        313 => "NO_CONSUMERS",
        320 => "CONNECTION_FORCED",
        402 => "INVALID_PATH",
        403 => "ACCESS_REFUSED",
        404 => "NOT_FOUND",
        405 => "RESOURCE_LOCKED",
        406 => "PRECONDITION_FAILED",
        501 => "FRAME_ERROR",
        502 => "SYNTAX_ERROR",
        503 => "COMMAND_INVALID",
        504 => "CHANNEL_ERROR",
        505 => "UNEXPECTED_FRAME",
        506 => "RESOURCE_ERROR",
        530 => "NOT_ALLOWED",
        540 => "NOT_IMPLEMENTED",
        541 => "INTERNAL_ERROR",
        _ => return None,
    })
}

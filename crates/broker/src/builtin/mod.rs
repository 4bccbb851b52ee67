//! The built-in broker: one thread, epoll, memory only. A target for the demo and for tests, never ranked against others.
//!
//! [`broker`] has the state and the loop; each of the other files is one kind of request of a client.

mod authenticate;
mod broker;
mod connect;
mod deliver;
mod leave;
mod message;
mod pace;
mod peer;
mod publish;
#[cfg(test)]
mod served;
mod session;
mod subscribe;
mod unread;

pub use broker::Broker;

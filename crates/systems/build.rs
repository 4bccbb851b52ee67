//! Embeds the definitions of systems.

include!("../embed.rs");

fn main() -> io::Result<()> {
    embed("systems")
}

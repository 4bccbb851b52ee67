//! Embeds the definitions of publications.

include!("../embed.rs");

fn main() -> io::Result<()> {
    embed("papers")
}

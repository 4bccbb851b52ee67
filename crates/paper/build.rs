//! Embeds the publications.

include!("../embed.rs");

fn main() -> io::Result<()> {
    embed("papers")
}

//! Embeds the experiments.

include!("../embed.rs");

fn main() -> io::Result<()> {
    embed("experiments")
}

//! Whether the container images of systems are on this machine. A missing image is pulled before its first run, which takes
//! minutes and needs a network.

use std::collections::BTreeMap;

use pubmark_runner::PreparedRun;
use pubmark_runner::target::CheckedTarget;
use pubmark_systems::container::Engine;

/// A line for each image of these runs; empty if no run needs one.
pub fn lines<'a>(runs: impl Iterator<Item = &'a PreparedRun>) -> String {
    let images: BTreeMap<String, String> = runs.filter_map(image).collect();
    if images.is_empty() {
        return String::new();
    }
    let engine = Engine::find();
    let is_here = |image: &str| match &engine {
        Ok(engine) => engine.has_image(image).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let lines = images.iter().map(|(image, system)| line(image, system, is_here(image)));
    format!("\n{}", lines.collect::<String>())
}

/// Image and name of a run's system, if it runs in a container.
fn image(run: &PreparedRun) -> Option<(String, String)> {
    let CheckedTarget::Started { definition, options } = &run.wanted else { return None };
    let container = definition.back_ends.container.as_ref().filter(|_| options.runs_in_container(definition))?;
    Some((options.image.clone().unwrap_or_else(|| container.image.clone()), definition.title.clone()))
}

fn line(image: &str, system: &str, is_here: Result<bool, String>) -> String {
    match is_here {
        Ok(true) => format!("  {system} runs in a container; its image `{image}` is here\n"),
        Ok(false) => {
            format!(
                "  {system} runs in a container; its image `{image}` is not here and is fetched before the first run\n"
            )
        }
        Err(why) => {
            format!("  {system} runs in a container; whether its image `{image}` is here is not known: {why}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_not_here_is_named_with_what_will_be_done() {
        assert_eq!(line("a/b:1", "B", Ok(true)), "  B runs in a container; its image `a/b:1` is here\n");
        let missing = line("a/b:1", "B", Ok(false));
        assert!(missing.contains("`a/b:1` is not here and is fetched before the first run"), "{missing}");
        assert!(line("a/b:1", "B", Err("no engine".to_owned())).contains("is not known: no engine"));
    }
}

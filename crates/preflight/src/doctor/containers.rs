//! Checks of container engines.

use pubmark_systems::SystemError;
use pubmark_systems::container::{ContainerError, ENGINE_VARIABLE, Engine, EngineKind};

use super::Finding;

/// Is a container engine available, how does it run containers, and which resource limits does it enforce?
pub fn containers() -> Finding {
    of(Engine::find())
}

fn of(found: Result<Engine, SystemError>) -> Finding {
    match found {
        Ok(engine) => of_engine(&engine),
        Err(SystemError::Container(ContainerError::NoEngine { found })) => Finding::limited(
            format!("no engine: {found}; systems run as programs only"),
            format!("`apt-get install podman runc` as root, or {ENGINE_VARIABLE}=PATH"),
        ),
        Err(SystemError::Container(ContainerError::NoRuntime { engine, reason, fix })) => {
            Finding::limited(format!("{engine} cannot run containers here: {reason}"), format!("`{fix}` as root"))
        }
        Err(error) => Finding::limited(
            format!("the engine cannot be used: {error}"),
            format!("`podman info` shows more; {ENGINE_VARIABLE}=PATH names another engine"),
        ),
    }
}

fn of_engine(engine: &Engine) -> Finding {
    let mut text = engine.title();
    if let Some(runtime) = engine.runtime.as_deref().and_then(|path| path.file_name()) {
        text.push_str(&format!(" with {}", runtime.to_string_lossy()));
    }
    if engine.rootless {
        text.push_str(", without root's rights");
    }
    text.push_str(": `--back-end container` works");
    if !engine.ulimits.is_empty() {
        text.push_str("; containers get pubmark's limits on descriptors, which it may not raise");
    }
    if engine.limits_left_out.is_empty() {
        return Finding::good(text);
    }
    let fix = match engine.kind {
        EngineKind::Podman => "run as root, or boot with control groups of version 2",
        EngineKind::Docker => "`docker info` says what is missing; run the daemon as root with control groups mounted",
    };
    Finding::limited(format!("{text}, but not with `--limit` on {}", engine.limits_left_out.join(", ")), fix)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::doctor::Fitness;

    #[test]
    fn an_engine_is_described_by_what_it_is_run_with_and_what_it_cannot() {
        let mut engine = Engine {
            program: "/usr/bin/podman".into(),
            kind: EngineKind::Podman,
            version: "4.3.1".to_owned(),
            runtime: Some("/usr/sbin/runc".into()),
            ulimits: vec![],
            rootless: false,
            limits_left_out: vec![],
        };
        let finding = of(Ok(engine.clone()));
        assert_eq!(
            (finding.fitness, finding.text.as_str()),
            (Fitness::Good, "podman 4.3.1 with runc: `--back-end container` works")
        );
        engine.limits_left_out = vec!["cpu", "memory"];
        let finding = of(Ok(engine));
        assert!(finding.text.ends_with("works, but not with `--limit` on cpu, memory"), "{finding:?}");
        assert_eq!(finding.fitness, Fitness::Limited);
        let finding = of(Engine::find_among(&["/no/such/engine"]));
        assert!(finding.text.starts_with("no engine: `/no/such/engine` is not installed"), "{finding:?}");
        assert!(finding.fix.is_some_and(|fix| fix.contains("apt-get install podman")));
    }
}

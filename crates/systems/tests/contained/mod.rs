//! What the tests with a container engine share.
//!
//! `.ci/container-image` makes the image from installed files; no registry is used.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use pubmark_systems::container::Engine;
use pubmark_systems::definition::{ContainerBackEnd, Definition};
use pubmark_systems::process::run_to_end;

/// The engine and the image for these tests, or why they cannot run.
static ENGINE: LazyLock<Result<(Engine, String), String>> = LazyLock::new(|| {
    let engine = Engine::find().map_err(|error| error.to_string())?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/container-image");
    let mut build = Command::new("sh");
    build.arg(script).env("PUBMARK_CONTAINER_ENGINE", &engine.program);
    let (status, output) = run_to_end(build, Duration::from_secs(120)).map_err(|error| error.to_string())?;
    let image = output.lines().find(|line| line.starts_with("localhost/")).map(str::to_owned);
    let image = image.filter(|_| status.success()).ok_or(format!("there is no image: {output}"))?;
    let mut probe = Command::new(&engine.program);
    probe.args(engine.runtime.iter().flat_map(|path| ["--runtime".into(), path.clone()]));
    probe.args(["run", "--rm", "--network", "host"]).args(&engine.ulimits).args([&image, "/bin/sh", "-c", "exit 7"]);
    let (status, output) = run_to_end(probe, Duration::from_secs(60)).map_err(|error| error.to_string())?;
    if status.code() == Some(7) {
        Ok((engine, image))
    } else {
        Err(format!("{} runs no containers here: {output}", engine.title()))
    }
});

/// The engine and its image; records a skip if there is none.
pub fn engine() -> Option<(&'static Engine, &'static str)> {
    match &*ENGINE {
        Ok((engine, image)) => Some((engine, image)),
        Err(reason) => {
            pubmark_testing::skip(reason);
            None
        }
    }
}

/// Mosquitto in that image, with a user that owns no files of the host.
pub fn definition(image: &str) -> Definition {
    let yaml = format!(
        "name: contained\ntitle: contained\ndescription: mosquitto in a container\nranked: false\n\
         listeners: {{mqtt: {{scheme: mqtt}}}}\n\
         protocols: {{mqtt5: {{listener: mqtt, highest_qos: 2}}}}\n\
         back_ends:\n  container:\n    image: {image}\n    user: \"1883\"\n    \
         arguments: [{{add: [/usr/sbin/mosquitto, -c, \"{{directory}}/mosquitto.conf\"]}}]\n    \
         version: {{arguments: [/usr/sbin/mosquitto, -h], after: \"mosquitto version \"}}\n\
         files:\n  - name: mosquitto.conf\n    parts:\n      - text: |\n          listener {{port:mqtt}} {{host}}\n          \
         allow_anonymous true\n          persistence false\n\
         profiles: {{default: {{description: as it is}}}}\n"
    );
    Definition::parse(&yaml, "contained.yaml").unwrap()
}

/// The back end of that definition.
pub fn back_end(image: &str) -> ContainerBackEnd {
    definition(image).back_ends.container.unwrap()
}

/// Name and state of every container, one per line.
pub fn containers(engine: &Engine) -> String {
    let mut list = Command::new(&engine.program);
    list.args(["ps", "--all", "--format", "{{.Names}} {{.Status}}"]);
    run_to_end(list, Duration::from_secs(20)).unwrap().1
}

/// Does a broker accept a CONNECT of MQTT 3.1.1 (§3.1) with a CONNACK (§3.2)?
pub fn accepts_mqtt(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"\x10\x0c\0\x04MQTT\x04\x02\0\x1e\0\0")?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(answer == [0x20, 2, 0, 0])
}

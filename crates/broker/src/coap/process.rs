//! The CoAP broker as a process of its own.

use std::io::Write;
use std::net::SocketAddr;

use super::broker::CoapBroker;
use super::settings::CoapSettings;
use crate::process::{ProcessError, number, stop_on_signals_and_orphanhood};

/// The options that [`serve_process`] accepts.
pub const OPTIONS: &str = "--listen ADDRESS:PORT [--maximum-payload-bytes N] [--maximum-queued-messages N] \
[--maximum-queued-bytes N] [--acknowledge-within-ms N]";

/// Runs the CoAP broker until SIGTERM or SIGINT comes or the thread that started this process ends. Prints
/// `listening ADDRESS:PORT` to `output` once clients can send, and `statistics {…}` (JSON) at the end.
///
/// # Errors
/// A [`ProcessError`] for wrong options or an address that is in use.
pub fn serve_process(arguments: impl IntoIterator<Item = String>, output: &mut impl Write) -> Result<(), ProcessError> {
    let settings = read_options(arguments)?;
    let stop = stop_on_signals_and_orphanhood()?;
    let mut broker = CoapBroker::bind(settings)?;
    let failed = |source| ProcessError::System { what: "print", source };
    writeln!(output, "listening {}", broker.local_address()?).and_then(|()| output.flush()).map_err(failed)?;
    broker.run(&stop)?;
    let statistics = serde_json::to_string(&broker.statistics()).map_err(|error| failed(error.into()))?;
    writeln!(output, "statistics {statistics}").and_then(|()| output.flush()).map_err(failed)
}

fn read_options(arguments: impl IntoIterator<Item = String>) -> Result<CoapSettings, ProcessError> {
    let mut settings = CoapSettings::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut arguments = arguments.into_iter();
    while let Some(option) = arguments.next() {
        let unknown = || ProcessError::Option { option: option.clone(), known: OPTIONS };
        let mut value = || arguments.next().ok_or_else(unknown);
        match option.as_str() {
            "--listen" => settings.listen = number(&option, value()?)?,
            "--maximum-payload-bytes" => settings.maximum_payload_bytes = number(&option, value()?)?,
            "--maximum-queued-messages" => settings.maximum_queued_messages = number(&option, value()?)?,
            "--maximum-queued-bytes" => settings.maximum_queued_bytes = number(&option, value()?)?,
            "--acknowledge-within-ms" => {
                let time_ms: u32 = number(&option, value()?)?;
                if time_ms == 0 {
                    return Err(ProcessError::Value { option, value: time_ms.to_string() });
                }
                settings.times.acknowledge_ns = u64::from(time_ms) * 1_000_000;
            }
            _ => return Err(unknown()),
        }
    }
    Ok(settings)
}

//! The figures that the README quotes, measured on this machine: `make bench`.
//!
//! `pubmark-bench [--repeat N] [NAME…]` prints the table, measured with CPU idle states prevented where that is allowed
//! (`--asleep`: unchanged), and writes the data to a file with `--csv FILE`; `merge NEW DATA` replaces rows of such a
//! file by those that were measured again, and `page DATA PAGE` generates the tables of a page from it. Each measurement
//! runs in child processes (`pubmark-bench child KIND ORDER`), so that CPU time and memory belong to that measurement
//! alone.

mod child;
mod data;
mod dds_loop;
mod generator;
mod idle;
#[allow(dead_code)] // The fixtures of the report's tests: one of them is measured here.
#[path = "../../report/tests/fixtures/mod.rs"]
mod large_record;
mod links_loop;
mod memory_loop;
mod mqttv5;
mod native;
mod out;
mod page;
mod row;
mod rows;
mod rumqttc_client;
mod rustdds_loop;
mod sink;
mod table;
mod test_system;
mod usage;
mod zenoh_loop;

use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["child", kind, order] => serve(kind, order),
        ["loop", messages] => count_loop(messages, |messages| Ok(memory_loop::run(messages))),
        ["watched-loop", messages] => count_loop(messages, |messages| Ok(memory_loop::run_watched(messages))),
        ["logged-loop", messages] => count_loop(messages, memory_loop::run_logged),
        // Used by systems that are started from here: see `pubmark_systems::supervisor`.
        ["supervisor"] => pubmark_systems::supervisor::serve().map_err(|error| error.to_string()),
        [pubmark_systems::awake::VERB] => pubmark_systems::awake::serve().map_err(|error| error.to_string()),
        // The command line of the system `coap`, which is this program.
        ["broker", "--protocol", "coap", options @ ..] => serve_coap(options),
        ["merge", new, data] => data::merge_files(new, data),
        ["page", data, page] => page::insert(data, page),
        _ => table::print(&words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            out::note(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(kind: &str, order: &str) -> Result<(), String> {
    match kind {
        "generator" => serve_order(order, generator::run),
        "idle" => serve_order(order, idle::run),
        "rumqttc" => serve_order(order, rumqttc_client::run),
        "books" => serve_order(order, |streams: &u32| Ok(memory_loop::books_cost(*streams, 4_000_000))),
        "report" => serve_order(order, |(): &()| table::report_cost()),
        "zenoh" => serve_order(order, zenoh_loop::run),
        "dds" => serve_order(order, dds_loop::run),
        "rustdds" => serve_order(order, rustdds_loop::run),
        "links" => serve_order(order, links_loop::run),
        "sink" => sink::serve(),
        _ => Err(format!("there is no child `{kind}`")),
    }
}

fn serve_coap(options: &[&str]) -> Result<(), String> {
    let options = options.iter().map(|option| (*option).to_owned());
    pubmark_broker::coap::serve_process(options, &mut std::io::stdout()).map_err(|error| error.to_string())
}

fn serve_order<Order: DeserializeOwned, Finding: Serialize>(
    order: &str,
    work: impl FnOnce(&Order) -> Result<Finding, String>,
) -> Result<(), String> {
    let order = serde_json::from_str(order).map_err(|error| format!("not an order: {error}"))?;
    let finding = serde_json::to_string(&work(&order)?).map_err(|error| error.to_string())?;
    out::line(&finding);
    Ok(())
}

fn count_loop(messages: &str, run: impl Fn(u32) -> Result<u64, String>) -> Result<(), String> {
    let messages: u32 = messages.parse().map_err(|error| format!("`{messages}` is not a number: {error}"))?;
    let arrived = run(messages)?;
    if arrived != u64::from(messages) {
        return Err(format!("{messages} messages went in, {arrived} came out"));
    }
    Ok(())
}

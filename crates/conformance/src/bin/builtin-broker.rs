//! The built-in brokers as processes, for the suite: `--protocol coap` in front is the one for CoAP.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut output = std::io::stdout().lock();
    let coap = arguments.starts_with(&["--protocol".to_owned(), "coap".to_owned()]);
    let served = if coap {
        pubmark_broker::coap::serve_process(arguments.drain(..).skip(2), &mut output)
    } else {
        pubmark_broker::serve_process(arguments, &mut output)
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A test reads the address from standard output; there is no other way to learn it.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "builtin-broker: {error}");
            ExitCode::FAILURE
        }
    }
}

//! The command line without passwords: for records, and for what is made from them.

use pubmark_model::secret::{self, MASK, masked_yaml, without_password};

/// Options whose value is a URL, or begins with one whose scheme may be missing.
const URLS: [&str; 3] = ["endpoint", "subscribe-endpoint", "node-exporter"];
/// Options that change a workload.
const SETTINGS: [&str; 2] = ["set", "vary"];

/// Words of a command line without passwords. `secret_parameters` are those that the workload uses for passwords.
pub fn shown(words: impl IntoIterator<Item = String>, secret_parameters: &[String]) -> Vec<String> {
    let mut option: Option<String> = None;
    let mut out = Vec::new();
    for word in words {
        out.push(match (word.strip_prefix("--"), word.split_once('=')) {
            (Some(_), Some((name, value))) => format!("{name}={}", value_shown(&name[2..], value, secret_parameters)),
            (Some(_), None) => word.clone(),
            (None, _) => value_shown(option.as_deref().unwrap_or_default(), &word, secret_parameters),
        });
        option = word.strip_prefix("--").filter(|name| !name.contains('=')).map(str::to_owned);
    }
    out
}

fn value_shown(option: &str, value: &str, secret_parameters: &[String]) -> String {
    if secret::is_named(option) {
        return MASK.to_owned();
    }
    if SETTINGS.contains(&option)
        && let Some((key, _)) = value.split_once('=')
        && (secret_parameters.iter().any(|name| name == key.trim()) || masked_yaml(value) != value)
    {
        return format!("{key}={MASK}");
    }
    if URLS.contains(&option) || value.contains("://") { without_password(value) } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> String {
        shown(words.split(' ').map(str::to_owned), &["pw".to_owned()]).join(" ")
    }

    #[test]
    fn a_password_is_left_out_wherever_it_is_given() {
        for (given, expected) in [
            ("run pairs --password word --qos 1", "run pairs --password … --qos 1"),
            ("--password=word", "--password=…"),
            ("--password-env NAME --password-file a.txt", "--password-env NAME --password-file a.txt"),
            ("--endpoint mqtt://ann:word@host:1", "--endpoint mqtt://ann:…@host:1"),
            ("--endpoint=mqtt://ann:word@host", "--endpoint=mqtt://ann:…@host"),
            ("--node-exporter ann:word@host:9100", "--node-exporter ann:…@host:9100"),
            ("--set pairs=2 --set pw=word", "--set pairs=2 --set pw=…"),
            ("--set=pw=word", "--set=pw=…"),
            ("--set devices.0.credentials.password=word", "--set devices.0.credentials.password=…"),
            ("--set devices.0.credentials={user:a,password:word}", "--set devices.0.credentials=…"),
            ("--vary pw=word,word", "--vary pw=…"),
            ("--set topic=a:b@c --link {delay:20ms}", "--set topic=a:b@c --link {delay:20ms}"),
        ] {
            assert_eq!(line(given), expected);
        }
    }
}

//! Annotations of commands in a comment before a block: `<!-- test: WORDS -->` for all commands, `<!-- test 2: WORDS
//! -->` for the second, `<!-- test 2,3: WORDS -->` for some.
//!
//! The words, separated by `;`: options that are added or replace those of the command (`--dry-run`, `--duration 1s`),
//! exit codes that are allowed (`exit 0 or 5`), or `skip` and the reason why the command is not executed.

/// How a command is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is executed.
    Executed {
        /// Additional options, each with its value.
        options: Vec<String>,
        /// Allowed exit codes.
        codes: Vec<i32>,
    },
    /// It is only listed.
    Named {
        /// Why it is not executed.
        reason: String,
    },
}

/// A parsed comment.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Numbers of the commands in the block, from 1; empty for all.
    commands: Vec<usize>,
    words: String,
}

impl Annotation {
    /// Parses a line of a document; `None` if it is not an annotation.
    pub fn parse(line: &str) -> Option<Annotation> {
        let inner = line.trim().strip_prefix("<!-- test")?.strip_suffix("-->")?;
        let (numbers, words) = inner.split_once(':')?;
        let commands = numbers.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        Some(Annotation { commands, words: words.trim().to_owned() })
    }

    /// Whether it applies to this command of the block.
    pub fn is_about(&self, number: usize) -> bool {
        self.commands.is_empty() || self.commands.contains(&number)
    }

    /// Whether it names a command by its number.
    pub fn is_particular(&self) -> bool {
        !self.commands.is_empty()
    }

    /// How the command is tested.
    pub fn treatment(&self) -> Result<Treatment, String> {
        if let Some(reason) = self.words.strip_prefix("skip ") {
            return Ok(Treatment::Named { reason: reason.trim().to_owned() });
        }
        let (mut options, mut codes) = (vec![], vec![0]);
        for part in self.words.split(';').map(str::trim) {
            if let Some(listed) = part.strip_prefix("exit ") {
                codes = listed
                    .split(" or ")
                    .map(|code| code.trim().parse::<i32>())
                    .collect::<Result<_, _>>()
                    .map_err(|_| format!("`{part}` is no list of exit codes such as `exit 0 or 5`"))?;
            } else if part.starts_with('-') {
                // An option and its value stand together.
                for word in part.split(' ') {
                    match options.last_mut() {
                        Some(last) if !word.starts_with('-') => *last = format!("{last} {word}"),
                        _ => options.push(word.to_owned()),
                    }
                }
            } else {
                return Err(format!("`<!-- test: {} -->` says nothing that is known", self.words));
            }
        }
        Ok(Treatment::Executed { options, codes })
    }
}

/// The command with these options in place of its options with the same names, before its comment and before `--`.
pub fn with_options(command: &str, options: &[String]) -> String {
    let remark = command.find(" #").unwrap_or(command.len());
    let (typed, after) = match command[..remark].split_once(" -- ") {
        Some((typed, after)) => (typed, format!(" -- {after}")),
        None => (&command[..remark], String::new()),
    };
    let mut typed = typed.trim_end().to_owned();
    for option in options {
        let name = option.split(' ').next().unwrap_or(option);
        if let Some(start) = typed.find(&format!(" {name} ")) {
            let after = start + 1 + name.len();
            // A switch has no value.
            let value = if name.len() < option.len() { after + 1 } else { after };
            let end = typed[value..].find(' ').map_or(typed.len(), |length| value + length);
            typed.replace_range(start..end, "");
        }
        if typed.ends_with(&format!(" {name}")) {
            typed.truncate(typed.len() - name.len() - 1);
        }
        match typed.starts_with("make ") {
            // Options of make are before its targets.
            true => typed.insert_str("make".len(), &format!(" {option}")),
            false => typed.push_str(&format!(" {option}")),
        }
    }
    typed + after.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_say_which_commands_and_what() {
        let read = |line: &str| Annotation::parse(line).unwrap();
        let all = read("<!-- test: --duration 1s --warmup 0s; exit 0 or 5 -->");
        assert!(all.is_about(1) && all.is_about(7) && !all.is_particular());
        let expected = Treatment::Executed {
            options: vec!["--duration 1s".to_owned(), "--warmup 0s".to_owned()],
            codes: vec![0, 5],
        };
        assert_eq!(all.treatment(), Ok(expected));
        let some = read("<!-- test 2,3: skip needs root -->");
        assert!(!some.is_about(1) && some.is_about(3));
        assert_eq!(some.treatment(), Ok(Treatment::Named { reason: "needs root".to_owned() }));
        assert!(read("<!-- test: later -->").treatment().is_err());
        assert!(Annotation::parse("<!-- bench: begin -->").is_none());
    }

    #[test]
    fn options_take_the_place_of_those_that_are_there() {
        let typed = |command: &str, options: &[&str]| {
            with_options(command, &options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            typed("pubmark run a --duration 30s --qos 1   # why", &["--duration 1s"]),
            "pubmark run a --qos 1 --duration 1s"
        );
        assert_eq!(
            typed("pubmark deploy compose a -- --qos 1", &["--out x"]),
            "pubmark deploy compose a --out x -- --qos 1"
        );
        assert_eq!(typed("make run", &["-n"]), "make -n run");
        assert_eq!(typed("pubmark run a --dry-run  # why", &["--dry-run"]), "pubmark run a --dry-run");
        assert_eq!(typed("pubmark run a --dry-run --qos 1", &["--dry-run"]), "pubmark run a --qos 1 --dry-run");
    }
}

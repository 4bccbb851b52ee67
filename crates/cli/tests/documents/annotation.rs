//! What a comment before a block says of its commands: `<!-- test: WORDS -->` for all, `<!-- test 2: WORDS -->` for the second,
//! `<!-- test 2,3: WORDS -->` for some.
//!
//! The words, with `;` between: options that take the place of the command's own or are added (`--dry-run`, `--duration 1s`), the codes
//! that it may end with (`exit 0 or 5`), or `skip` and the reason why it is not executed.

/// What is done with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is executed.
    Executed {
        /// Options beside its own, each with its value.
        options: Vec<String>,
        /// Exit codes that are right.
        codes: Vec<i32>,
    },
    /// It stands on the list.
    Named {
        /// Why it is not executed.
        reason: String,
    },
}

/// A comment, read.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Numbers of the commands in the block, from 1; empty for all.
    commands: Vec<usize>,
    words: String,
}

impl Annotation {
    /// Reads a line of a document; `None` if it is no such comment.
    pub fn parse(line: &str) -> Option<Annotation> {
        let inner = line.trim().strip_prefix("<!-- test")?.strip_suffix("-->")?;
        let (numbers, words) = inner.split_once(':')?;
        let commands = numbers.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        Some(Annotation { commands, words: words.trim().to_owned() })
    }

    /// Is it about this command of the block?
    pub fn is_about(&self, number: usize) -> bool {
        self.commands.is_empty() || self.commands.contains(&number)
    }

    /// Does it name a command by its number?
    pub fn is_particular(&self) -> bool {
        !self.commands.is_empty()
    }

    /// What is to be done.
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

/// The command with these options in place of its own of the same names, before its remark and before `--`.
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
            // A switch has no value behind it.
            let value = if name.len() < option.len() { after + 1 } else { after };
            let end = typed[value..].find(' ').map_or(typed.len(), |length| value + length);
            typed.replace_range(start..end, "");
        }
        if typed.ends_with(&format!(" {name}")) {
            typed.truncate(typed.len() - name.len() - 1);
        }
        match typed.starts_with("make ") {
            // Options of make stand before its targets.
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

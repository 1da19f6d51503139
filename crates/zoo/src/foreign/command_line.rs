//! Splits a command line into words, without a shell.

/// Characters that a shell would interpret outside of quotes.
const SHELL_CHARACTERS: &str = "|&;<>()$`*?[~#";

/// Splits a line at blanks. Quoted and backslash-escaped text is literal.
pub fn split_command(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = chars.next().ok_or_else(|| format!("command {line:?} ends with a backslash"))?;
                word.get_or_insert_default().push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) if SHELL_CHARACTERS.contains(c) => {
                return Err(format!(
                    "command {line:?}: {c} is shell syntax, but no shell is started; quote it, or write sh -c '…'"
                ));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match (quote, &words[..]) {
        (Some(open), _) => Err(format!("command {line:?}: unclosed {open}")),
        (None, []) => Err("empty command".into()),
        (None, _) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::split_command;

    #[test]
    fn quoted_and_escaped_blanks_do_not_split() {
        for (line, expected) in [
            ("sleep 0.1", &["sleep", "0.1"][..]),
            ("  sh  -c 'a | b; c'  ", &["sh", "-c", "a | b; c"]),
            (r#"echo "it's" a\ b """#, &["echo", "it's", "a b", ""]),
            (r#"echo "a \"b\"" 'c\d'"#, &["echo", "a \"b\"", r"c\d"]),
        ] {
            assert_eq!(split_command(line).unwrap(), expected);
        }
    }

    #[test]
    fn shell_syntax_is_rejected() {
        let cases = [
            ("a | b", ": | is"),
            ("a > b", ": > is"),
            ("echo 'a", "unclosed '"),
            ("a \\", "backslash"),
            ("  ", "empty"),
        ];
        for (line, part) in cases {
            let error = split_command(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

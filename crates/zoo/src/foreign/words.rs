//! A command as it is written in one line, in words. No shell is asked.

/// What only a shell could do something with, outside of quotes.
const FOR_A_SHELL: &str = "|&;<>()$`*?[~#";

/// Splits a line at blanks; what stands in quotes, or behind a backslash, is taken as it is.
pub fn words(line: &str) -> Result<Vec<String>, String> {
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
            (None, c) if FOR_A_SHELL.contains(c) => {
                return Err(format!(
                    "command {line:?}: {c} means something to a shell, and none is started; quote it, or write sh -c '…'"
                ));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match (quote, &words[..]) {
        (Some(open), _) => Err(format!("command {line:?}: a {open} is not closed")),
        (None, []) => Err("a command is empty".into()),
        (None, _) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_and_backslashes_keep_words_together() {
        for (line, expected) in [
            ("sleep 0.1", &["sleep", "0.1"][..]),
            ("  sh  -c 'a | b; c'  ", &["sh", "-c", "a | b; c"]),
            (r#"echo "it's" a\ b """#, &["echo", "it's", "a b", ""]),
            (r#"echo "a \"b\"" 'c\d'"#, &["echo", "a \"b\"", r"c\d"]),
        ] {
            assert_eq!(words(line).unwrap(), expected);
        }
    }

    #[test]
    fn what_a_shell_would_be_needed_for_is_refused() {
        for (line, why) in [
            ("a | b", "| means something to a shell"),
            ("a > b", "sh -c"),
            ("echo 'a", "a ' is not closed"),
            ("a \\", "ends with a backslash"),
            ("  ", "a command is empty"),
        ] {
            let error = words(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}

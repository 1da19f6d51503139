//! Splits a command line into words, without a shell.

/// Characters that a shell would interpret outside of quotes.
const FOR_A_SHELL: &str = "|&;<>()$`*?[~#";

/// Splits a line at blanks. Quoted and backslash-escaped text is literal.
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
            ("a | b", "| is shell syntax"),
            ("a > b", "sh -c"),
            ("echo 'a", "unclosed '"),
            ("a \\", "ends with a backslash"),
            ("  ", "empty command"),
        ] {
            let error = words(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}

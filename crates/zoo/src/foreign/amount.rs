//! Integer expressions of axes, such as `(n + 255) / 256`.

use calorimeter_case::Axes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Integer, or an expression of axes with `+ - * / %` and parentheses. Division rounds down.
///
/// ```
/// use calorimeter_zoo::foreign::AxisExpression;
///
/// let blocks: AxisExpression = "(n + 255) / 256".parse()?;
/// assert_eq!(blocks.evaluate(&[("n", 1000)].into()), Ok(4));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    text: String,
    formula: Formula,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Formula {
    Number(u64),
    Axis(String),
    Pair(Box<Formula>, char, Box<Formula>),
}

/// Maximum depth of parentheses; the parser is recursive.
const DEEPEST: usize = 64;

impl Amount {
    /// Evaluates the expression at a size; the error names an unknown axis or an overflow.
    pub fn at(&self, axes: &Axes) -> Result<u64, String> {
        self.formula.at(axes).map_err(|why| format!("{:?}: {why}", self.text))
    }
}

impl Formula {
    fn at(&self, axes: &Axes) -> Result<u64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Axis(name) => axes.get(name).ok_or_else(|| {
                let known: Vec<&str> = axes.iter().map(|(name, _)| name).collect();
                let known =
                    if known.is_empty() { "no axes".into() } else { format!("axes: {}", known.join(", ")) };
                format!("unknown axis {name:?}; {known}")
            }),
            Self::Pair(left, sign, right) => {
                let (left, right) = (left.at(axes)?, right.at(axes)?);
                let value = match sign {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    '/' => left.checked_div(right),
                    _ => left.checked_rem(right),
                };
                value.ok_or_else(|| format!("{left} {sign} {right} is not a 64-bit unsigned integer"))
            }
        }
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text.trim_start(), depth: 0 };
        let formula = reader.sum().and_then(|formula| match reader.rest {
            "" => Ok(formula),
            rest => Err(format!("unexpected {rest:?}")),
        });
        let example = "expected an integer or an expression of axes, e.g. (n + 255) / 256";
        let formula = formula.map_err(|why| format!("invalid expression {text:?}: {why}; {example}"))?;
        Ok(Self { text: text.trim().to_owned(), formula })
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<Formula, String> {
        self.pairs(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Formula, String> {
        self.pairs(&['*', '/', '%'], Self::single)
    }

    fn pairs(&mut self, signs: &[char], part: fn(&mut Self) -> Result<Formula, String>) -> Result<Formula, String> {
        let mut formula = part(self)?;
        while let Some(sign) = self.rest.chars().next().filter(|sign| signs.contains(sign)) {
            self.skip(1);
            formula = Formula::Pair(Box::new(formula), sign, Box::new(part(self)?));
        }
        Ok(formula)
    }

    fn single(&mut self) -> Result<Formula, String> {
        if self.rest.starts_with('(') {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(format!("more than {DEEPEST} nested parentheses"));
            }
            self.skip(1);
            let formula = self.sum()?;
            if !self.rest.starts_with(')') {
                return Err("missing closing parenthesis".into());
            }
            self.skip(1);
            return Ok(formula);
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.skip(end);
        match word.chars().next() {
            None => Err("missing number or axis".into()),
            Some(first) if first.is_ascii_digit() => {
                word.parse().map(Formula::Number).map_err(|_| format!("invalid integer {word:?}"))
            }
            Some(_) => Ok(Formula::Axis(word.to_owned())),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_bind_more_tightly_than_sums_and_both_go_from_left_to_right() {
        let axes = Axes::from([("n", 1000), ("head_dim", 64)]);
        for (text, value) in
            [("7", 7), ("n", 1000), ("2*n*head_dim", 128_000), ("(n + 255) / 256", 4), ("n - 10 - 5 % 3", 988)]
        {
            assert_eq!(text.parse::<Amount>().unwrap().at(&axes), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_says_why() {
        for (text, why) in [
            ("", "missing number or axis"),
            ("(n", "missing closing parenthesis"),
            ("2n", "invalid integer \"2n\""),
            ("n n", "unexpected \"n\""),
            ("-1", "missing number or axis"),
        ] {
            let error = text.parse::<Amount>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let deep = "(".repeat(100_000);
        assert!(deep.parse::<Amount>().unwrap_err().contains("more than 64 nested parentheses"));
        let at = |text: &str| text.parse::<Amount>().unwrap().at(&[("n", 3)].into()).unwrap_err();
        assert_eq!(at("m + 1"), "\"m + 1\": unknown axis \"m\"; axes: n");
        assert!(at("n - 4").contains("3 - 4 is not") && at("n / 0").contains("3 / 0"));
        assert!(at("n * 18446744073709551615").contains("64-bit"));
    }
}

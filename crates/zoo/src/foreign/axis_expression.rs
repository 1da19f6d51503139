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
pub struct AxisExpression {
    text: String,
    root: ExpressionNode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ExpressionNode {
    Number(u64),
    Axis(String),
    Binary(Box<ExpressionNode>, char, Box<ExpressionNode>),
}

/// Maximum depth of parentheses; the parser is recursive.
const MAX_DEPTH: usize = 64;

impl AxisExpression {
    /// Evaluates the expression at a size; the error names an unknown axis or an overflow.
    pub fn evaluate(&self, axes: &Axes) -> Result<u64, String> {
        self.root.evaluate(axes).map_err(|why| format!("{:?}: {why}", self.text))
    }
}

impl ExpressionNode {
    fn evaluate(&self, axes: &Axes) -> Result<u64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Axis(name) => axes.get(name).ok_or_else(|| {
                let known: Vec<&str> = axes.iter().map(|(name, _)| name).collect();
                let known = if known.is_empty() { "no axes".into() } else { format!("axes: {}", known.join(", ")) };
                format!("unknown axis {name:?}; {known}")
            }),
            Self::Binary(left, sign, right) => {
                let (left, right) = (left.evaluate(axes)?, right.evaluate(axes)?);
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

impl FromStr for AxisExpression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut reader = ExpressionParser { rest: text.trim_start(), depth: 0 };
        let formula = reader.parse_sum().and_then(|formula| match reader.rest {
            "" => Ok(formula),
            rest => Err(format!("unexpected {rest:?}")),
        });
        let example = "expected an integer or an expression of axes, e.g. (n + 255) / 256";
        let formula = formula.map_err(|why| format!("invalid expression {text:?}: {why}; {example}"))?;
        Ok(Self { text: text.trim().to_owned(), root: formula })
    }
}

struct ExpressionParser<'a> {
    rest: &'a str,
    depth: usize,
}

impl ExpressionParser<'_> {
    fn parse_sum(&mut self) -> Result<ExpressionNode, String> {
        self.parse_binary(&['+', '-'], Self::parse_product)
    }

    fn parse_product(&mut self) -> Result<ExpressionNode, String> {
        self.parse_binary(&['*', '/', '%'], Self::parse_operand)
    }

    fn parse_binary(
        &mut self,
        signs: &[char],
        part: fn(&mut Self) -> Result<ExpressionNode, String>,
    ) -> Result<ExpressionNode, String> {
        let mut formula = part(self)?;
        while let Some(sign) = self.rest.chars().next().filter(|sign| signs.contains(sign)) {
            self.skip(1);
            formula = ExpressionNode::Binary(Box::new(formula), sign, Box::new(part(self)?));
        }
        Ok(formula)
    }

    fn parse_operand(&mut self) -> Result<ExpressionNode, String> {
        if self.rest.starts_with('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} nested parentheses"));
            }
            self.skip(1);
            let formula = self.parse_sum()?;
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
                word.parse().map(ExpressionNode::Number).map_err(|_| format!("invalid integer {word:?}"))
            }
            Some(_) => Ok(ExpressionNode::Axis(word.to_owned())),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }
}

impl fmt::Display for AxisExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for AxisExpression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AxisExpression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_have_precedence_and_associate_left() {
        let axes = Axes::from([("n", 1000), ("head_dim", 64)]);
        for (text, value) in
            [("7", 7), ("n", 1000), ("2*n*head_dim", 128_000), ("(n + 255) / 256", 4), ("n - 10 - 5 % 3", 988)]
        {
            assert_eq!(text.parse::<AxisExpression>().unwrap().evaluate(&axes), Ok(value), "{text}");
        }
    }

    #[test]
    fn invalid_expressions_are_rejected() {
        let deep = "(".repeat(100_000);
        for (text, part) in [
            ("", "missing"),
            ("(n", "parenthesis"),
            ("2n", "\"2n\""),
            ("n n", "\"n\""),
            ("-1", "\"-1\""),
            (&deep, "64"),
        ] {
            let error = text.parse::<AxisExpression>().unwrap_err();
            assert!(error.contains(part), "{text:.10}: {error:.200}");
        }
        let at = |text: &str| text.parse::<AxisExpression>().unwrap().evaluate(&[("n", 3)].into()).unwrap_err();
        for (text, part) in
            [("m + 1", "\"m\""), ("n - 4", "3 - 4"), ("n / 0", "3 / 0"), ("n * 18446744073709551615", "64")]
        {
            assert!(at(text).contains(part), "{}", at(text));
        }
    }
}

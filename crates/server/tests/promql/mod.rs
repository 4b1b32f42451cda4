//! As much of PromQL as it takes to see which metrics an expression uses, with which labels, and how: not a parser of the
//! language, which is Prometheus's own, but strict about what it does not know.

use std::collections::BTreeSet;

/// A metric in an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Its name as it stands there.
    pub(crate) name: String,
    /// Labels that it is selected by.
    pub(crate) labels: BTreeSet<String>,
    /// Whether a range of it is taken: `[5m]`.
    pub(crate) is_range: bool,
    /// Functions around it, the outermost first.
    pub(crate) inside: Vec<String>,
}

/// What an expression uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) uses: Vec<Use>,
    /// Labels that are grouped or matched by.
    pub(crate) grouped: BTreeSet<String>,
}

/// Words with a list of labels behind them.
const GROUPINGS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 6] = ["and", "or", "unless", "bool", "offset", "atan2"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text,
    /// A number or a duration.
    Number,
    Sign(char),
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expression.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            '"' => {
                let mut is_escaped = false;
                for next in rest.by_ref() {
                    match next {
                        '"' if !is_escaped => break,
                        '\\' => is_escaped = !is_escaped,
                        _ => is_escaped = false,
                    }
                }
                tokens.push(Token::Text);
            }
            _ if first.is_ascii_alphabetic() || first == '_' || first == ':' => {
                let mut word = String::from(first);
                while let Some(next) = rest.next_if(|c| c.is_ascii_alphanumeric() || "_:".contains(*c)) {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
            _ if first.is_ascii_digit() => {
                while rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '.').is_some() {}
                tokens.push(Token::Number);
            }
            _ if first.is_whitespace() => {}
            _ => tokens.push(Token::Sign(first)),
        }
    }
    tokens
}

/// Reads an expression; panics at what it does not understand.
pub(crate) fn read(expression: &str) -> Expression {
    let tokens = tokens(expression);
    let mut found = Expression::default();
    // Functions whose parentheses are open; "" for parentheses of their own.
    let mut open: Vec<String> = Vec::new();
    let mut pending = String::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let next = tokens.get(at);
        match token {
            Token::Word(word) if GROUPINGS.contains(&word.as_str()) => {
                at = grouping(&tokens, at, &mut found.grouped, expression);
            }
            Token::Word(word) if OPERATORS.contains(&word.as_str()) => {}
            Token::Word(word) => match next {
                // `sum by (a) (...)`: the function's own parenthesis comes later.
                Some(Token::Word(next)) if GROUPINGS.contains(&next.as_str()) => pending = word.clone(),
                Some(Token::Sign('(')) => pending = word.clone(),
                _ => {
                    let mut used = Use {
                        name: word.clone(),
                        inside: open.iter().filter(|name| !name.is_empty()).cloned().collect(),
                        ..Use::default()
                    };
                    at = selector(&tokens, at, &mut used, expression);
                    found.uses.push(used);
                }
            },
            Token::Sign('(') => open.push(std::mem::take(&mut pending)),
            Token::Sign(')') => {
                open.pop()
                    .unwrap_or_else(|| panic!("one ) too many in {expression}"));
            }
            Token::Sign(sign) => assert!("+-*/%^<>=!,".contains(*sign), "{sign} in {expression}"),
            Token::Number | Token::Text => {}
        }
    }
    assert!(open.is_empty(), "a ( is not closed in {expression}");
    found
}

/// The labels in parentheses.
fn grouping(tokens: &[Token], mut at: usize, into: &mut BTreeSet<String>, expression: &str) -> usize {
    assert_eq!(tokens.get(at), Some(&Token::Sign('(')), "{expression}");
    loop {
        at += 1;
        match tokens.get(at) {
            Some(Token::Word(label)) => drop(into.insert(label.clone())),
            Some(Token::Sign(',')) => {}
            Some(Token::Sign(')')) => return at + 1,
            other => panic!("{other:?} in {expression}"),
        }
    }
}

/// What stands behind the name of a metric: `{label="value"}` and `[5m]`.
fn selector(tokens: &[Token], mut at: usize, used: &mut Use, expression: &str) -> usize {
    if tokens.get(at) == Some(&Token::Sign('{')) {
        loop {
            at += 1;
            match tokens.get(at) {
                Some(Token::Word(label)) => drop(used.labels.insert(label.clone())),
                Some(Token::Sign('=' | '!' | '~' | ',') | Token::Text) => {}
                Some(Token::Sign('}')) => break,
                other => panic!("{other:?} in {expression}"),
            }
        }
        at += 1;
    }
    if tokens.get(at) == Some(&Token::Sign('[')) {
        assert_eq!(tokens.get(at + 1), Some(&Token::Number), "{expression}");
        assert_eq!(tokens.get(at + 2), Some(&Token::Sign(']')), "{expression}");
        used.is_range = true;
        at += 3;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(labels: &[&str]) -> BTreeSet<String> {
        labels.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn uses_are_found_with_labels_ranges_and_functions() {
        let found = read(
            "histogram_quantile(0.9, sum by (le, api) (rate(a_bucket{api=~\"x|}\\\"\"}[5m]))) > 2 * b and on (c) d{e!=\"\"}",
        );
        assert_eq!(found.grouped, set(&["le", "api", "c"]));
        let names: Vec<&str> = found.uses.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a_bucket", "b", "d"]);
        assert_eq!(found.uses[0].labels, set(&["api"]));
        assert_eq!(found.uses[0].inside, ["histogram_quantile", "sum", "rate"]);
        assert!(found.uses[0].is_range && !found.uses[1].is_range);
        assert_eq!(found.uses[2].labels, set(&["e"]));
        assert!(found.uses[2].inside.is_empty());
    }

    #[test]
    #[should_panic(expected = "is not closed")]
    fn what_is_not_understood_is_no_silent_success() {
        read("sum(a");
    }
}

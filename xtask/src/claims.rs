//! `docs/patent-map.md` against the code: every claim has tests, every test named there exists, every path as well, and no
//! test that is named after a claim is missing from the page.

use std::collections::BTreeSet;

/// The page.
pub(crate) const PAGE: &str = "docs/patent-map.md";

/// The claims that stand; 2, 5 and 11 were deleted.
const CLAIMS: &[u32] = &[1, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15];

/// The faults of the page, given the tests of the code that are named after claims, and which paths exist.
pub(crate) fn faults(page: &str, tests: &BTreeSet<String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let named: BTreeSet<String> = quoted
        .iter()
        .filter(|word| claim_of(word).is_some())
        .map(|word| (*word).to_owned())
        .collect();
    for word in quoted.iter().filter(|word| word.contains('/')) {
        if !exists(word) {
            faults.push(format!("{PAGE}: there is no `{word}`"));
        }
    }
    for test in named.difference(tests) {
        faults.push(format!("{PAGE}: there is no test `{test}`"));
    }
    for test in tests.difference(&named) {
        faults.push(format!("{PAGE}: `{test}` is not on it"));
    }
    let shown: BTreeSet<u32> = named.iter().filter_map(|test| claim_of(test)).collect();
    for claim in CLAIMS.iter().filter(|claim| !shown.contains(claim)) {
        faults.push(format!("{PAGE}: claim {claim} has no test"));
    }
    faults
}

/// The tests in a file of code that are named after claims.
pub(crate) fn tests_in(text: &str) -> impl Iterator<Item = String> + '_ {
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")?.split('(').next()
    });
    names.filter(|name| claim_of(name).is_some()).map(str::to_owned)
}

/// The number in `claim_7_more_words`.
fn claim_of(name: &str) -> Option<u32> {
    let (number, rest) = name.strip_prefix("claim_")?.split_once('_')?;
    let is_name = rest
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    number.parse().ok().filter(|_| is_name && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(leave_out: u32) -> BTreeSet<String> {
        let claims = CLAIMS.iter().filter(|claim| **claim != leave_out);
        claims.map(|claim| format!("claim_{claim}_holds")).collect()
    }

    fn page(tests: &BTreeSet<String>) -> String {
        tests.iter().map(|test| format!("`{test}` ")).collect()
    }

    #[test]
    fn a_page_that_is_right_has_no_faults() {
        assert_eq!(faults(&page(&all(0)), &all(0), |_| true), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_on_either_side_is_said() {
        let found = |page: &str, tests: &BTreeSet<String>| faults(page, tests, |path| path == "crates/core");
        assert_eq!(found(&page(&all(7)), &all(0)).len(), 2, "not on it, and no test");
        assert_eq!(
            found(&page(&all(0)), &all(9)),
            [format!("{PAGE}: there is no test `claim_9_holds`")]
        );
        assert_eq!(
            found(&page(&all(15)), &all(15)),
            [format!("{PAGE}: claim 15 has no test")]
        );
        let with_path = format!("`crates/core` `crates/gone` {}", page(&all(0)));
        assert_eq!(
            found(&with_path, &all(0)),
            [format!("{PAGE}: there is no `crates/gone`")]
        );
    }

    #[test]
    fn tests_are_found_by_their_names() {
        let text = "    fn claim_4_ii_holds() {\nasync fn claim_15_runs() {\nfn claim_of(name: &str) {\n// claim_3_x";
        let found: Vec<String> = tests_in(text).collect();
        assert_eq!(found, ["claim_4_ii_holds", "claim_15_runs"]);
    }
}

//! Files that stand in documents: behind a line `<!-- include: PATH -->` a page shows a file as it is, in a block of code.
//!
//! The path is from the page's folder. `cargo xtask docs` writes the blocks anew; with `--check` a block that differs from its
//! file is a fault.

use anyhow::{Context, Result};

/// The page with every such block as its file is now; `read` gives the text of a path that stands in the page.
pub(crate) fn expand(page: &str, mut read: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(path) = included(line) else {
            continue;
        };
        let text = read(path).with_context(|| format!("`{line}`"))?;
        // What was there before: a block from its fence to the end of it.
        if lines.next_if(|next| next.starts_with("```")).is_some() {
            lines
                .by_ref()
                .find(|line| *line == "```")
                .with_context(|| format!("the block behind `{line}` has no end"))?;
        }
        out.push_str(&format!("```{}\n{}\n```\n", language(path), text.trim_end()));
    }
    Ok(out)
}

fn included(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- include: ")?.strip_suffix(" -->")
}

/// What a block is marked with, so that it is shown in colours.
fn language(path: &str) -> &str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "py" => "python",
        "rs" => "rust",
        "mjs" => "js",
        "txt" | "mod" => "text",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "# A\n<!-- include: a/b.py -->\n```python\none\ntwo\n```\nbehind\n";

    fn with(page: &str, file: &str) -> String {
        expand(page, |path| {
            assert_eq!(path, "a/b.py");
            Ok(file.to_owned())
        })
        .unwrap()
    }

    #[test]
    fn a_block_is_put_in_and_put_right() {
        assert_eq!(
            with("# A\n<!-- include: a/b.py -->\nbehind\n", "one\ntwo\n"),
            WRITTEN
        );
        assert_eq!(with(WRITTEN, "one\ntwo\n"), WRITTEN);
        assert_eq!(
            with(WRITTEN, "three\n"),
            "# A\n<!-- include: a/b.py -->\n```python\nthree\n```\nbehind\n"
        );
    }

    #[test]
    fn a_file_that_is_not_there_and_a_block_without_an_end_are_faults() {
        let gone = expand(WRITTEN, |_| anyhow::bail!("gone"));
        assert!(format!("{:#}", gone.unwrap_err()).contains("include: a/b.py"));
        assert!(
            expand(
                "<!-- include: a/b.py -->\n```python\none\n",
                |_| Ok(String::new())
            )
            .is_err()
        );
    }
}

//! `anabranch help`: the help of a command, or a page about a task; and the same for shells and `man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_server::settings;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome, reason};
use crate::output;

/// Pages about tasks: name, what it is about, text.
const TOPICS: [(&str, &str, &str); 7] = [
    (
        "start",
        "from nothing to a first record, and to a service",
        include_str!("help/start.txt"),
    ),
    (
        "lag",
        "who is behind, and what helps",
        include_str!("help/lag.txt"),
    ),
    (
        "elastic",
        "more consumers than partitions",
        include_str!("help/elastic.txt"),
    ),
    (
        "queues",
        "as many partitions as consumers",
        include_str!("help/queues.txt"),
    ),
    (
        "offsets",
        "read again, skip, set a group back",
        include_str!("help/offsets.txt"),
    ),
    (
        "trouble",
        "something is wrong: where to look",
        include_str!("help/trouble.txt"),
    ),
    (
        "kafka",
        "Kafka's tools, and what they are called here",
        include_str!("help/kafka.txt"),
    ),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A command, such as `topic create`, or a topic: start, lag, elastic, queues, offsets, trouble, kafka.
    #[arg(value_name = "COMMAND or TOPIC")]
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  anabranch completions bash > ~/.local/share/bash-completion/completions/anabranch
  anabranch completions zsh > \"${fpath[1]}/_anabranch\"
  anabranch completions fish > ~/.config/fish/completions/anabranch.fish")]
pub(crate) struct CompletionArgs {
    /// The shell.
    shell: Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  anabranch man | man -l -                     read the first page
  anabranch man ~/.local/share/man/man1        write all pages")]
pub(crate) struct ManArgs {
    /// The folder to write all pages into; without it, the first page is printed.
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    match args.words.as_slice() {
        [] => output::print(&overview()),
        [word] if page(word).is_some() => output::print(page(word).unwrap_or_default()),
        words => of_command(words),
    }
}

fn page(word: &str) -> Option<&'static str> {
    TOPICS
        .iter()
        .find(|(name, ..)| *name == word)
        .map(|(_, _, text)| *text)
}

fn overview() -> String {
    let mut text = Cli::command().render_help().to_string();
    text.push_str("\nTopics (`anabranch help TOPIC`):\n");
    for (name, about, _) in TOPICS {
        text.push_str(&format!("  {name:<8}  {about}\n"));
    }
    text
}

fn of_command(words: &[String]) -> Outcome {
    let mut root = Cli::command();
    root.build();
    let mut command = &mut root;
    for word in words {
        let known: Vec<String> = command
            .get_subcommands()
            .map(|child| child.get_name().to_owned())
            .collect();
        let Some(found) = command.find_subcommand_mut(word) else {
            return Err(unknown(words, word, &known));
        };
        command = found;
    }
    let help = command.render_help().to_string();
    output::print(&help)
}

fn unknown(words: &[String], word: &str, known: &[String]) -> Failure {
    let topics = TOPICS.iter().map(|(name, ..)| *name).filter(|_| words.len() == 1);
    let failure = Failure::not_found(format!(
        "there is no command and no help topic {:?}",
        words.join(" ")
    ));
    failure.hint(
        match settings::nearest(word, known.iter().map(String::as_str).chain(topics)) {
            Some(nearest) => format!("did you mean {nearest:?}?"),
            None => "`anabranch help` lists commands and topics".to_owned(),
        },
    )
}

/// Prints what a shell needs to complete the command line.
pub(crate) fn completions(args: &CompletionArgs) -> Outcome {
    let mut bytes = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "anabranch", &mut bytes);
    output::print(&String::from_utf8_lossy(&bytes))
}

/// Prints the first page of the manual, or writes all of them.
pub(crate) fn manual(args: &ManArgs) -> Outcome {
    let mut root = Cli::command().name("anabranch");
    root.build();
    let Some(folder) = &args.folder else {
        return output::print(&rendered(&root)?);
    };
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
    let mut count = 0;
    write_pages(&root, "anabranch", folder, &mut count)?;
    output::say(&format!(
        "wrote {} into {}",
        output::plural(count, "page"),
        folder.display()
    ));
    Ok(())
}

fn write_pages(command: &Command, name: &str, folder: &Path, count: &mut u64) -> Outcome {
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, rendered(command)?).map_err(|error| unwritten(&path, &error))?;
    *count += 1;
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        write_pages(child, &format!("{name}-{}", child.get_name()), folder, count)?;
    }
    Ok(())
}

fn rendered(command: &Command) -> Outcome<String> {
    let mut bytes = Vec::new();
    let done = Man::new(command.clone()).render(&mut bytes);
    done.map_err(|error| unwritten(Path::new("the page"), &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {}", path.display(), reason(error)))
        .hint("name a folder that you may write into")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command on a page is one that the program understands, flags included.
    #[test]
    fn every_example_of_the_pages_can_be_typed() {
        let mut seen = 0;
        for (name, about, text) in TOPICS {
            assert!(!about.ends_with('.') && text.lines().count() < 60, "{name}");
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
                let Some(typed) = line.strip_prefix("  anabranch ") else {
                    continue;
                };
                // What it means stands behind two spaces, what comes after a pipe is another program.
                let typed = typed.split("  ").next().unwrap_or_default();
                let typed = typed.split(['|', '>', '<', '&']).next().unwrap_or_default();
                let words = std::iter::once("anabranch").chain(typed.split_whitespace());
                let parsed = Cli::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{name}: {typed}: {}", parsed.unwrap_err());
                seen += 1;
            }
        }
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn the_flag_explains_all_topics() {
        let help = Cli::command()
            .find_subcommand("help")
            .unwrap()
            .clone()
            .render_help()
            .to_string();
        let help: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let names: Vec<&str> = TOPICS.iter().map(|(name, ..)| *name).collect();
        assert!(help.contains(&names.join(", ")), "{help}");
    }
}

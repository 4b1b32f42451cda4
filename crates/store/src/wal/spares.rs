//! Freed segment files that wait to be used again, and how many of them are worth keeping.
//!
//! Writing over blocks that were written before takes half the time of writing into blocks that are only reserved, so a busy
//! log should get its own files back. They do not come evenly: retention frees in one go what was written in minutes. So
//! as many files are kept as the log has used since files were last freed. A log that uses none gives them up by and by: each
//! round of maintenance that finds none used since the round before halves the number.

/// The freed files, by the number in their names.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    files: Vec<u64>,
    /// Segments that the log has used since some were last freed.
    used: usize,
    /// Whether it has used one since the last round of maintenance.
    is_busy: bool,
    /// How many the log is likely to use.
    demand: usize,
}

impl Spares {
    pub(crate) fn new(files: Vec<u64>) -> Self {
        Spares {
            files,
            ..Spares::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn add(&mut self, file: u64) {
        self.files.push(file);
    }

    pub(crate) fn take(&mut self) -> Option<u64> {
        self.files.pop()
    }

    /// The log has begun another segment, of a freed file or a new one.
    pub(crate) fn used_one(&mut self) {
        self.used += 1;
        self.is_busy = true;
    }

    /// A round of maintenance, which has freed segments or has not.
    pub(crate) fn round(&mut self, has_freed: bool) {
        if has_freed {
            self.demand = self.demand.max(std::mem::take(&mut self.used));
        } else if !self.is_busy {
            self.demand /= 2;
        }
        self.is_busy = false;
    }

    /// How many to keep: what the log needs, within bounds.
    pub(crate) fn wanted(&self, least: usize, most: usize) -> usize {
        self.demand.min(most).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(used: usize, has_freed: bool, spares: &mut Spares) -> usize {
        (0..used).for_each(|_| spares.used_one());
        spares.round(has_freed);
        spares.wanted(2, 50)
    }

    #[test]
    fn a_log_gets_back_as_many_as_it_used_since_the_last_were_freed() {
        let mut spares = Spares::default();
        assert_eq!(after(10, false, &mut spares), 2, "none was freed yet");
        assert_eq!(after(10, false, &mut spares), 2);
        assert_eq!(after(1, true, &mut spares), 21);
        assert_eq!(
            after(3, true, &mut spares),
            21,
            "more may come in the same minute"
        );
    }

    #[test]
    fn an_idle_log_gives_them_up() {
        let mut spares = Spares::default();
        after(40, true, &mut spares);
        let wanted: Vec<usize> = (0..6).map(|_| after(0, false, &mut spares)).collect();
        assert_eq!(wanted, [20, 10, 5, 2, 2, 2]);
        assert_eq!(after(1, false, &mut spares), 2);
    }

    #[test]
    fn the_bounds_hold() {
        let mut spares = Spares::default();
        assert_eq!(after(1000, true, &mut spares), 50);
        assert_eq!(spares.wanted(4, 1), 4, "the least goes before the most");
    }
}

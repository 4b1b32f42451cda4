//! How a broker process begins and ends.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use anabranch_core::limits::SCAN_CACHE_BYTES_MAX;
use anabranch_core::node::Options as NodeOptions;
use anabranch_engine::Recovery;
use anabranch_engine::slices::ScanCache;
use anabranch_store::{Options, Store};

use super::journal::Watched;
use super::planning::Planning;
use super::queueing::Queueing;
use super::{Broker, Process, Settings, listen_to};
use crate::disk::{End, FaultDisk, Kind};
use crate::oracle::Violation;
use crate::run::Ctx;
use crate::sights::Sight;
use crate::world::{Chore, Event};

/// Where the data is, on a disk that holds nothing else.
const FOLDER: &str = "/data";
/// The sentence about starts.
const STARTS: &str = "a broker that crashed can be started again";
/// How long a start may be put off, milliseconds.
const RESTART_MS_MAX: u64 = 3_000;

/// What every process is started with.
pub fn node_options(settings: &Settings, started: anabranch_core::ids::Now) -> NodeOptions {
    let session = (
        "group.consumer.session.timeout.ms",
        settings.session_ms.to_string(),
    );
    let elastic = settings.elastic.iter().chain(&settings.queues).cloned();
    let configs = elastic.chain([session]);
    NodeOptions {
        node_id: 1,
        cluster_id: "simulated".to_owned(),
        configs: configs.map(|(key, value)| (key.to_owned(), value)).collect(),
        started,
    }
}

impl Settings {
    fn store(&self, now_ms: i64) -> Options {
        Options {
            segment_bytes: self.segment_bytes,
            cache_bytes: self.cache_bytes,
            index_cache_bytes: 16 << 10,
            pack_live_percent: self.pack_live_percent,
            spare_segments: 2,
            now_ms,
            ..Options::default()
        }
    }
}

impl Broker {
    /// Starts a process. It may end during its recovery, if it is doomed.
    pub fn start(&mut self, ctx: &mut Ctx<'_>) {
        if self.process.is_some() {
            return;
        }
        self.life += 1;
        let disk = FaultDisk::new(Arc::clone(&self.sim));
        if let Some((operations, end)) = self.doom.take() {
            disk.end_in(operations, end);
        }
        let now = ctx.world.now();
        let options = node_options(&self.settings, now);
        let mut recovery = match Recovery::new(options) {
            Ok(recovery) => recovery,
            Err(refused) => return ctx.oracle.judge(Err(Violation::new(STARTS, refused.to_string()))),
        };
        let opened = Store::open_manual(
            Path::new(FOLDER),
            Arc::new(disk.clone()),
            self.settings.store(now.wall_ms),
            &mut recovery,
        );
        if let Some((kind, path)) = disk.ended() {
            ctx.world.trace(format_args!(
                "** ended during recovery: {kind:?} of {}",
                path.display()
            ));
            ctx.saw(Sight::CrashInRecovery);
            drop(opened);
            return self.after_end(ctx);
        }
        match opened {
            Ok(store) => self.recovered(ctx, store, recovery, disk),
            Err(error) => {
                ctx.world.trace(format_args!("** start failed: {error}"));
                let is_full = self.is_full();
                if is_full {
                    ctx.world.after_ms(500, Event::Start);
                } else {
                    ctx.oracle.judge(Err(Violation::new(STARTS, error.to_string())));
                }
            }
        }
    }

    fn recovered(&mut self, ctx: &mut Ctx<'_>, store: Store, recovery: Recovery, disk: FaultDisk) {
        let last = store.recovered().last;
        ctx.world
            .trace(format_args!("** started: {:?}", store.recovered()));
        ctx.net.broker_started();
        if store.recovered().snapshot.is_some() {
            ctx.saw(Sight::SnapshotUsed);
        }
        if store.recovered().clean && !store.recovered().created {
            ctx.saw(Sight::ShutDownInOrder);
        }
        let replay = &ctx.oracle.replay;
        let (known, waiting) = (replay.upto(), replay.waiting() as u64);
        if waiting > 0 && last.0 > known {
            ctx.saw(Sight::UnackedSurvived);
        }
        if waiting > 0 && last.0 < known + waiting {
            ctx.saw(Sight::UnackedLost);
        }
        ctx.oracle.story.add(ctx.world.step(), None, || {
            "the broker is started again".to_owned()
        });
        ctx.committed(last.0, true);
        see_restart(ctx);
        let verdict = ctx.oracle.replay.compare(recovery.node());
        ctx.oracle.judge(verdict);
        for log in recovery.node().logs() {
            let verdict = ctx
                .oracle
                .watermark
                .recovered((log.topic(), log.partition()), log.next_offset());
            ctx.oracle.judge(verdict);
            let verdict = ctx
                .oracle
                .log_start
                .recovered((log.topic(), log.partition()), log.start());
            ctx.oracle.judge(verdict);
        }
        let process = Process {
            told: listen_to(&store),
            engine: recovery.finish(ctx.world.now(), Watched::new(store)),
            scans: ScanCache::new(SCAN_CACHE_BYTES_MAX),
            disk,
            lanes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            connections: BTreeMap::new(),
            last_connection: 0,
            wakes: 0,
            planning: Planning::default(),
            queueing: Queueing::default(),
            fault: self.settings.fault,
            notices: Vec::new(),
            effects: VecDeque::new(),
            commit_scheduled: false,
            armed: None,
            snapshot: None,
            short_of_space: false,
            starved: false,
            started_at: last,
        };
        process.audit(ctx);
        let process = self.process.insert(process);
        #[cfg(feature = "planted-faults")]
        if let Some(fault) = self.settings.fault {
            process.engine.plant(fault);
        }
        for (chore, ms) in [
            (Chore::Maintain, 100),
            (Chore::Retention, super::chores::RETENTION_MS),
            (Chore::Plan, 0),
        ] {
            ctx.world.after_ms(ms, Event::Broker(self.life, chore));
        }
        let outcome = process.engine.note_retention_clock(ctx.world.now());
        process.pass_on(outcome);
        let outcome = process.engine.resume_slices(ctx.world.now());
        process.pass_on(outcome);
        process.follow_up(ctx, self.life, &self.settings);
        ctx.observe_topics();
    }

    /// If the process has ended (at a planned operation, or since its store is poisoned), buries it.
    pub(super) fn bury(&mut self, ctx: &mut Ctx<'_>, chore: Option<Chore>) {
        let Some(process) = &self.process else { return };
        if let Some((kind, path)) = process.disk.ended() {
            ctx.world
                .trace(format_args!("** ended at {kind:?} of {}", path.display()));
            see_end(ctx, chore, kind, &path);
            return self.end(ctx);
        }
        if process.store().poisoned().is_some() {
            match process.disk.failed() {
                Some(Kind::Write) => ctx.saw(Sight::WriteFailed),
                Some(Kind::Sync) => {
                    ctx.saw(Sight::SyncFailed);
                    if process.store().last().0 - process.store().committed().0 > 3 {
                        ctx.saw(Sight::SyncFailedFull);
                    }
                }
                _ => {}
            }
            ctx.world.trace(format_args!(
                "** poisoned: {}",
                process.store().poisoned().unwrap_or_default()
            ));
            self.end(ctx);
        }
    }

    /// Ends the process at once.
    pub fn kill(&mut self, ctx: &mut Ctx<'_>) {
        if self.process.is_some() {
            ctx.world.trace(format_args!("** killed"));
            self.end(ctx);
        }
    }

    /// Closes the process in good order, and starts it again later.
    pub fn shut_down(&mut self, ctx: &mut Ctx<'_>) {
        let Some(process) = self.process.take() else {
            return;
        };
        ctx.world.trace(format_args!("** shut down"));
        ctx.net.broker_gone(ctx.world);
        let store = process.store();
        while store.commit_once() == anabranch_store::Step::Committed {}
        let (lsn, snapshot) = process.engine.snapshot();
        if process.disk.ended().is_none() && store.committed() == lsn {
            let _ = store.write_snapshot(lsn, &snapshot);
        }
        process.engine.into_journal().into_store().close();
        self.after_end(ctx);
    }

    fn end(&mut self, ctx: &mut Ctx<'_>) {
        let Some(process) = self.process.take() else {
            return;
        };
        if process.store().last() > process.store().committed() {
            ctx.saw(Sight::CrashWithEntriesQueued);
        }
        let moving = process
            .node()
            .groups()
            .groups()
            .values()
            .filter_map(|group| group.consumer())
            .any(|group| {
                let stable = anabranch_core::group::state::Progress::Stable;
                group
                    .members
                    .values()
                    .any(|state| state.current.progress != stable)
            });
        if moving {
            ctx.saw(Sight::CrashInRebalance);
        }
        ctx.oracle
            .story
            .add(ctx.world.step(), None, || "the broker ends".to_owned());
        ctx.net.broker_gone(ctx.world);
        drop(process);
        self.after_end(ctx);
    }

    /// The process is gone; perhaps the power with it. The next start is not far.
    fn after_end(&mut self, ctx: &mut Ctx<'_>) {
        if self.sim.is_off() || ctx.world.rng.percent(60) {
            let seed = ctx.world.rng.bits();
            ctx.world.trace(format_args!("** power cut"));
            self.sim = Arc::new(self.sim.power_cycle(seed));
        }
        let pause_ms = ctx.world.rng.between(1, RESTART_MS_MAX);
        ctx.world.after_ms(pause_ms, Event::Start);
    }

    /// The next start ends after so many operations.
    pub fn doom(&mut self, operations: u64, end: End) {
        self.doom = Some((operations, end));
    }

    /// No start ends by itself any more.
    pub fn spare(&mut self) {
        self.doom = None;
    }

    /// Lets the disk be full, but for a little, or not.
    pub fn set_full(&self, full: bool, spare_bytes: u64) {
        let used = u64::MAX - self.free_bytes_if_unbounded();
        self.sim
            .set_capacity(if full { used + spare_bytes } else { u64::MAX });
    }

    fn free_bytes_if_unbounded(&self) -> u64 {
        use anabranch_store::Disk;
        self.sim.set_capacity(u64::MAX);
        self.sim.free_bytes(Path::new(FOLDER)).unwrap_or(u64::MAX)
    }

    fn is_full(&self) -> bool {
        use anabranch_store::Disk;
        self.sim
            .free_bytes(Path::new(FOLDER))
            .is_ok_and(|bytes| bytes < self.settings.segment_bytes * 2)
    }

    /// Checks at a quiet moment that the state in memory is what the journal says, and that all records are there.
    pub fn audit(&self, ctx: &mut Ctx<'_>) {
        let Some(process) = &self.process else { return };
        if process.store().last() == process.store().committed() && process.store().poisoned().is_none() {
            let verdict = ctx.oracle.replay.compare(process.node());
            ctx.oracle.judge(verdict);
            process.audit(ctx);
        }
    }
}

/// Notes what was under way in groups whose members share partitions.
fn see_restart(ctx: &mut Ctx<'_>) {
    use anabranch_core::cursor::{ChainState, Cursor};
    use anabranch_core::group::state::Sharing;
    use anabranch_core::queues::Phase;
    let (mut divided, mut moving, mut yielding) = (false, false, false);
    for group in ctx.oracle.replay.groups().groups().values() {
        for cursor in group.cursors.values() {
            let Cursor::Divided(cursor) = cursor else { continue };
            divided = true;
            moving |= !cursor.loose().is_empty()
                || cursor
                    .chains()
                    .any(|(_, chain)| chain.state() != ChainState::Held || !chain.transits().is_empty());
        }
        let shared = group
            .consumer()
            .into_iter()
            .flat_map(|group| group.shared.values());
        yielding |= shared.flatten().any(|(_, sharing)| *sharing == Sharing::Yields);
    }
    let queues = ctx.oracle.replay.node().state().queues();
    let counting = queues.values().any(|queues| queues.phase != Phase::Idle);
    for (is_so, sight) in [
        (counting, Sight::RestartInQueuePhase),
        (divided, Sight::RestartWhileDivided),
        (moving, Sight::RestartWhileSlotsMove),
        (yielding, Sight::RestartBeforeDivision),
    ] {
        if is_so {
            ctx.saw(sight);
        }
    }
}

/// Notes in what situation a process has ended.
fn see_end(ctx: &mut Ctx<'_>, chore: Option<Chore>, kind: Kind, path: &Path) {
    let unfinished = path.extension().is_some_and(|extension| extension == "tmp");
    match (chore, kind) {
        (Some(Chore::Snapshot), Kind::Name) if !unfinished => ctx.saw(Sight::CrashBeforeRename),
        (Some(Chore::Snapshot), _) => ctx.saw(Sight::CrashInSnapshot),
        (Some(Chore::Maintain), _) => ctx.saw(Sight::CrashInMaintenance),
        (Some(Chore::Commit), Kind::Name) => ctx.saw(Sight::CrashInRoll),
        (Some(Chore::Commit), _) if unfinished => ctx.saw(Sight::CrashInRoll),
        (Some(Chore::Commit), Kind::Write) => ctx.saw(Sight::CrashInWrite),
        (Some(Chore::Commit), Kind::Sync) => ctx.saw(Sight::CrashBeforeSync),
        _ => {}
    }
}

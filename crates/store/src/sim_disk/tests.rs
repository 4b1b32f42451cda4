use super::*;

const FOLDER: &str = "/d";

fn disk() -> SimDisk {
    let disk = SimDisk::new(1);
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    disk
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn write(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.create(&path(name), Access::Write).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

#[test]
fn what_was_synced_survives_with_its_name() {
    let disk = disk();
    write(&disk, "a", &[1; 2000]).sync_data().unwrap();
    disk.sync_dir(Path::new(FOLDER)).unwrap();
    for seed in 0..20 {
        assert_eq!(disk.power_cycle(seed).content(&path("a")), Some(vec![1; 2000]));
    }
}

#[test]
fn unsynced_sectors_survive_in_any_subset() {
    let disk = disk();
    write(&disk, "a", &[0; 2048]).sync_data().unwrap();
    disk.sync_dir(Path::new(FOLDER)).unwrap();
    write(&disk, "a", &[0; 2048]).sync_data().unwrap();
    disk.open(&path("a"), Access::Write)
        .unwrap()
        .write_at(&[7; 2048], 0)
        .unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let content = disk.power_cycle(seed).content(&path("a")).unwrap();
        for sector in content.chunks(512) {
            assert!(
                sector.iter().all(|byte| *byte == sector[0]),
                "a sector is never torn"
            );
        }
        seen.insert(
            content
                .chunks(512)
                .map(|sector| sector[0] == 7)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(seen.len(), 16, "all subsets of four sectors");
}

#[test]
fn an_unsynced_rename_happened_or_not_but_never_half() {
    let disk = disk();
    write(&disk, "a", b"new").sync_data().unwrap();
    write(&disk, "b", b"old").sync_data().unwrap();
    disk.sync_dir(Path::new(FOLDER)).unwrap();
    disk.rename(&path("a"), &path("b")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let after = disk.power_cycle(seed);
        seen.insert((after.content(&path("a")), after.content(&path("b"))));
    }
    let before = (Some(b"new".to_vec()), Some(b"old".to_vec()));
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [(None, Some(b"new".to_vec())), before]
    );
}

#[test]
fn a_failed_sync_loses_what_a_later_one_does_not_bring_back() {
    let mut lost = 0;
    for seed in 0..40 {
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let file = write(&disk, "a", &[3; 512]);
        disk.sync_dir(Path::new(FOLDER)).unwrap();
        disk.fault_at(disk.operations(), Fault::IoError);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(disk.content(&path("a")).unwrap(), [3; 512], "still visible");
        lost += usize::from(disk.power_cycle(0).content(&path("a")) != Some(vec![3; 512]));
    }
    assert!(lost > 0);
}

#[test]
fn after_the_power_cut_nothing_works() {
    let disk = disk();
    let file = write(&disk, "a", b"x");
    disk.fault_at(disk.operations(), Fault::PowerCut);
    assert!(file.sync_data().is_err() && disk.is_off());
    assert!(file.sync_data().is_err());
    assert!(disk.open(&path("a"), Access::Read).is_err());
    assert!(disk.list(Path::new(FOLDER)).is_err());
}

#[test]
fn the_disk_can_be_full() {
    let disk = disk();
    disk.set_capacity(1000);
    let file = write(&disk, "a", &[0; 900]);
    assert_eq!(
        file.write_at(&[0; 200], 900).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    assert_eq!(disk.free_bytes(Path::new(FOLDER)).unwrap(), 100);
    disk.remove(&path("a")).unwrap();
    assert_eq!(disk.free_bytes(Path::new(FOLDER)).unwrap(), 1000);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let image = |seed| {
        let disk = disk();
        for nth in 0..20u8 {
            write(&disk, &nth.to_string(), &[nth; 3000]);
        }
        let after = disk.power_cycle(seed);
        after
            .files()
            .iter()
            .map(|path| (path.clone(), after.content(path)))
            .collect::<Vec<_>>()
    };
    assert_eq!(image(5), image(5));
    assert_ne!(image(5), image(6));
}

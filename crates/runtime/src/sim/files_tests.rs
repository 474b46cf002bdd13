//! Names and bytes before and after power cuts.

use std::collections::BTreeSet;

use super::*;

fn path(name: &str) -> PathBuf {
    PathBuf::from(name)
}

fn add(files: &mut Files, name: &str) -> io::Result<Rc<Content>> {
    let content = Content::empty();
    files.create(path(name), Rc::clone(&content)).map(|()| content)
}

/// All names there are.
fn names(files: &Files) -> Vec<String> {
    files.names.keys().map(|path| path.display().to_string()).collect()
}

/// What the power cuts of many seeds leave of what `prepare` does, each as all names.
fn left(prepare: impl Fn(&mut Files)) -> BTreeSet<Vec<String>> {
    let outcome = |seed| {
        let mut files = Files::default();
        prepare(&mut files);
        files.assert_sound();
        files.lose_power(&mut Random::new(seed));
        files.assert_sound();
        names(&files)
    };
    (0..200).map(outcome).collect()
}

fn outcomes<const N: usize>(all: [&[&str]; N]) -> BTreeSet<Vec<String>> {
    all.into_iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect()
}

#[test]
fn a_name_is_kept_for_certain_once_its_folder_was_synced() {
    let create = |files: &mut Files| drop(add(files, "/a").unwrap());
    assert_eq!(left(create), outcomes([&[], &["/a"]]));
    let synced = |files: &mut Files| {
        create(files);
        files.sync_folder(Path::new("/")).unwrap();
    };
    assert_eq!(left(synced), outcomes([&["/a"]]));
    let removed = |files: &mut Files| {
        synced(files);
        files.remove(path("/a")).unwrap();
    };
    assert_eq!(left(removed), outcomes([&[], &["/a"]]));
}

#[test]
fn a_rename_within_a_folder_is_whole_or_not_at_all() {
    let rename = |files: &mut Files| {
        files.put(path("/a"), Vec::new());
        files.rename(path("/a"), path("/b")).unwrap();
    };
    assert_eq!(left(rename), outcomes([&["/a"], &["/b"]]));
    let further = |files: &mut Files| {
        rename(files);
        files.rename(path("/b"), path("/c")).unwrap();
    };
    assert_eq!(left(further), outcomes([&["/a"], &["/b"], &["/c"]]));
}

#[test]
fn a_rename_between_folders_loses_nothing_but_may_show_both() {
    let rename = |files: &mut Files| {
        files.put(path("/d/a"), Vec::new());
        files.put(path("/e/b"), Vec::new());
        files.rename(path("/d/a"), path("/e/a")).unwrap();
    };
    let (old, both, new): (&[&str], &[&str], &[&str]) =
        (&["/d", "/d/a", "/e", "/e/b"], &["/d", "/d/a", "/e", "/e/a", "/e/b"], &["/d", "/e", "/e/a", "/e/b"]);
    assert_eq!(left(rename), outcomes([old, both, new]));
    let synced = |folder: &'static str| {
        move |files: &mut Files| {
            rename(files);
            files.sync_folder(Path::new(folder)).unwrap();
        }
    };
    assert_eq!(left(synced("/e")), outcomes([both, new]));
    assert_eq!(left(synced("/d")), outcomes([new]));
}

#[test]
fn changes_of_one_name_are_kept_in_order() {
    let change = |files: &mut Files| {
        files.put(path("/a"), Vec::new());
        files.remove(path("/a")).unwrap();
        add(files, "/a").unwrap();
        files.rename(path("/a"), path("/b")).unwrap();
    };
    // Without the rename, "/b" is not there; with it, "/a" is not.
    assert_eq!(left(change), outcomes([&["/a"], &[], &["/b"]]));
}

#[test]
fn a_file_is_lost_with_its_folder() {
    let create = |files: &mut Files| {
        files.create_folders(Path::new("/d/e")).unwrap();
        add(files, "/d/e/a").unwrap();
        files.sync_folder(Path::new("/d/e")).unwrap();
    };
    assert_eq!(left(create), outcomes([&[], &["/d"], &["/d", "/d/e", "/d/e/a"]]));
    let synced = |files: &mut Files| {
        create(files);
        files.sync_folder(Path::new("/d")).unwrap();
        files.sync_folder(Path::new("/")).unwrap();
    };
    assert_eq!(left(synced), outcomes([&["/d", "/d/e", "/d/e/a"]]));
}

#[test]
fn nothing_comes_back_in_a_folder_of_the_same_name() {
    let again = |files: &mut Files| {
        files.put(path("/d/a"), Vec::new());
        files.remove(path("/d/a")).unwrap();
        files.remove_folder(path("/d")).unwrap();
        files.create_folders(Path::new("/d")).unwrap();
        files.sync_folder(Path::new("/")).unwrap();
    };
    assert_eq!(left(again), outcomes([&["/d"]]));
}

/// What may be left of 2000 bytes of which the first 700 were synced.
fn cut(seed: u64) -> Vec<u8> {
    let content = Content::empty();
    content.append(&[7; 700]);
    content.append(&[8; 1300]);
    content.sync(700);
    content.lose_power(&mut Random::new(seed));
    assert_eq!(content.synced.get() as u64, content.len());
    content.bytes().clone()
}

#[test]
fn synced_bytes_stay_and_of_the_others_a_part() {
    let left: Vec<Vec<u8>> = (0..500).map(cut).collect();
    assert!(left.iter().all(|bytes| bytes[..700] == [7; 700] && bytes.len() <= 2000));
    let among = |what: &dyn Fn(&[u8]) -> bool| left.iter().filter(|bytes| what(&bytes[700..])).count();
    let whole = |rest: &[u8]| rest.iter().all(|byte| *byte == 8);
    assert!(among(&|rest| rest.is_empty()) > 50);
    assert!(among(&|rest| rest.len() == 1300 && whole(rest)) > 50);
    assert!(among(&|rest| !rest.is_empty() && rest.len() < 1300 && whole(rest)) > 50);
    assert!(among(&|rest| rest.ends_with(&[0; 8])) > 20, "zeros");
    assert!(among(&|rest| rest.iter().any(|byte| ![0, 8].contains(byte))) > 20, "garbage");
    assert!(among(&|rest| rest.len() == 1300 && rest[0] == 0) > 0, "only the length is there");
    assert!(among(&|rest| rest.contains(&0) && rest.ends_with(&[8])) > 10, "holes");
    // What damages a sector damages it to its end.
    let damage =
        left.iter().filter_map(|bytes| bytes.iter().position(|byte| *byte == 0 && bytes.ends_with(&[0; 8])));
    assert!(damage.into_iter().all(|at| at == 700 || at % SECTOR == 0));
}

#[test]
fn any_changes_keep_the_invariants() {
    let paths = ["/d", "/d/a", "/d/b", "/d/e", "/d/e/a", "/e", "/e/a", "/a"];
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let mut files = Files::default();
        for _ in 0..60 {
            let any = path(paths[random.below(8) as usize]);
            let other = path(paths[random.below(8) as usize]);
            // Most are refused, which is to change nothing.
            match random.below(12) {
                0..3 => drop(files.create(any, Content::empty())),
                3..5 => drop(files.create_folders(&any)),
                5..7 => drop(files.rename(any, other)),
                7 => drop(files.remove(any)),
                8 => drop(files.remove_folder(any)),
                9 if files.file(&any).is_ok() => drop(files.put(any, vec![1])),
                10 => files.take_off(&any),
                _ => drop(files.sync_folder(&any)),
            }
            files.assert_sound();
        }
        files.lose_power(random);
        files.assert_sound();
        assert!(files.pending.is_empty());
    }
}

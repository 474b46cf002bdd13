//! Data compressed in every way, read in every way, and bent.

use std::io::Write as _;
use std::path::Path;

use runtime::{Cache, IoClass, Shard, SimOptions};

use super::*;
use crate::Version;
use crate::cache::cached_file::CachedFile;
use crate::parts::chunk_pages::ChunkPages;
use crate::parts::crc::CrcBuilder;
use crate::parts::crc_pages::CrcPages;

const CHUNK: usize = 1 << 10;
/// Chunks of this many bytes and more are kept raw, where they are at all.
const RAW_FROM: usize = 900;

const DATA: IoClass = IoClass::new(1);

const COMPRESSORS: [Compressor; 5] =
    [Compressor::Lz4, Compressor::Snappy, Compressor::Deflate, Compressor::Zstd, Compressor::Noop];

/// Text that compresses, then noise that does not, then a short end.
fn data() -> Vec<u8> {
    let mut noise = 1u32;
    let mut next = || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    };
    let text =
        b"silt settles in layers and is pressed into stone; ".iter().copied().cycle().take(3 * CHUNK - 100);
    text.collect::<Vec<u8>>().into_iter().chain((0..2 * CHUNK + 77).map(|_| next())).collect()
}

fn pack(compressor: Compressor, chunk: &[u8]) -> Vec<u8> {
    match compressor {
        Compressor::Lz4 => lz4_flex::block::compress_prepend_size(chunk),
        Compressor::Snappy => snap::raw::Encoder::new().compress_vec(chunk).unwrap(),
        Compressor::Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(chunk).unwrap();
            encoder.finish().unwrap()
        }
        Compressor::Zstd => zstd::bulk::compress(chunk, 3).unwrap(),
        Compressor::Noop => chunk.to_vec(),
    }
}

/// Data.db and CompressionInfo.db. Raw chunks are padded, as the last one of a file is.
fn file(compressor: Compressor, version: Version) -> (Vec<u8>, Vec<u8>) {
    let (data, mut bytes, mut offsets) = (data(), Vec::new(), Vec::new());
    for chunk in data.chunks(CHUNK) {
        offsets.push(bytes.len() as u64);
        let mut packed = pack(compressor, chunk);
        if version.has_max_compressed_length() && packed.len() >= RAW_FROM {
            packed = chunk.to_vec();
            packed.resize(chunk.len().max(RAW_FROM), 0);
        }
        bytes.extend_from_slice(&packed);
        bytes.extend_from_slice(&crc32fast::hash(&packed).to_be_bytes());
    }
    let name = compressor.class_name().as_bytes();
    let mut info = [&(name.len() as u16).to_be_bytes()[..], name, &0u32.to_be_bytes()].concat();
    info.extend_from_slice(&(CHUNK as u32).to_be_bytes());
    if version.has_max_compressed_length() {
        info.extend_from_slice(&(RAW_FROM as u32).to_be_bytes());
    }
    info.extend_from_slice(&(data.len() as u64).to_be_bytes());
    info.extend_from_slice(&(offsets.len() as u32).to_be_bytes());
    offsets.iter().for_each(|offset| info.extend_from_slice(&offset.to_be_bytes()));
    (bytes, info)
}

/// Once with all places of chunks in memory, and once with pages of them, without a cache.
async fn open(shard: &Shard, bytes: Vec<u8>, info: &[u8], version: Version) -> [DataFile; 2] {
    let [path, info_path] = ["Data", "CompressionInfo"].map(|name| format!("/me-1-big-{name}.db"));
    let len = bytes.len() as u64;
    let parsed = CompressionInfo::parse(Path::new(&info_path), info, version, len).unwrap();
    let disk = shard.disk().as_simulated().expect("the disk is simulated");
    disk.add_file(&path, bytes);
    disk.add_file(&info_path, info.to_vec());
    let opened = async |path: &str, class| shard.disk().open(Path::new(path), class).await.unwrap();
    let info_file = opened(&info_path, IoClass::new(2)).await;
    let pages = CachedFile::new(info_file, Cache::new(0));
    let paged = ChunkPages::open(pages, info, (version, len)).expect("it is whole");
    let places = [ChunkPlaces::Known(Rc::new(parsed)), ChunkPlaces::Paged(paged)];
    let file = opened(&path, DATA).await;
    places.map(|places| DataFile::in_chunks(file.clone(), places))
}

/// Reads a range. What stands before a damaged chunk comes first, the error after it.
async fn read(file: &DataFile, range: Range<u64>) -> Result<Vec<u8>> {
    let mut stretch = file.nothing_at(range.start);
    while stretch.end() < range.end {
        stretch = file.read(&stretch, stretch.end()..range.end, Care::Usual).await?;
        assert!(stretch.start == range.start && stretch.end() > range.start);
    }
    let bytes = &stretch.owner[stretch.bytes];
    Ok(bytes[..(range.end - range.start) as usize].to_vec())
}

#[test]
fn every_compressor_in_one_request_a_range() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let data = data();
        for (compressor, version) in
            COMPRESSORS.into_iter().flat_map(|c| [(c, Version::Me), (c, Version::Nb)])
        {
            let (bytes, info) = file(compressor, version);
            let files = open(&shard, bytes, &info, version).await;
            let ranges =
                [(0, 1), (0, data.len()), (CHUNK - 1, CHUNK + 1), (4000, 5000), (data.len() - 1, data.len())];
            for (file, (start, end)) in files.iter().flat_map(|file| ranges.map(|range| (file, range))) {
                assert_eq!(file.len(), data.len() as u64);
                let before = shard.disk().stats();
                let found = read(file, start as u64..end as u64).await.unwrap();
                assert!(found == data[start..end], "{compressor:?} {version} {start}..{end}");
                assert_eq!(shard.disk().stats().since(&before).class(DATA).requests, 1);
            }
        }
    })
    .unwrap();
}

#[test]
fn a_tail_is_carried_into_the_next_stretch() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let (bytes, info) = file(Compressor::Lz4, Version::Me);
        for file in open(&shard, bytes, &info, Version::Me).await {
            let first = file.read(&file.nothing_at(10), 10..20, Care::Usual).await.unwrap();
            assert_eq!((first.start, first.end()), (10, CHUNK as u64));
            let bytes = first.bytes.end - 5..first.bytes.end;
            let tail = Stretch { bytes, start: CHUNK as u64 - 5, ..first };
            let second = file.read(&tail, CHUNK as u64..CHUNK as u64 + 9, Care::Usual).await.unwrap();
            assert_eq!((second.start, second.end()), (CHUNK as u64 - 5, 2 * CHUNK as u64));
            assert!(second.owner[second.bytes] == data()[CHUNK - 5..2 * CHUNK]);
        }
    })
    .unwrap();
}

/// Tails that have room before the next request, and one that has not.
#[test]
fn a_tail_is_put_before_what_follows() {
    for alignment in [1, 512] {
        runtime::run_simulated(SimOptions { alignment, ..SimOptions::default() }, async |shard: Shard| {
            let data = data().repeat(100);
            shard.disk().as_simulated().unwrap().add_file("/t/data", data.clone());
            let opened = shard.disk().open(Path::new("/t/data"), IoClass::default()).await.unwrap();
            let file = DataFile::plain(opened, None);
            let middle = 2 * LONG + 7;
            for tail_len in [0, 1, 5, 700, ROOM, ROOM + 600, 3 * ROOM] {
                let first = file.read(&file.nothing_at(0), 0..middle as u64, Care::Usual).await.unwrap();
                let bytes = first.bytes.end - tail_len..first.bytes.end;
                let tail = Stretch { bytes, start: (middle - tail_len) as u64, ..first };
                for len in [1, LONG, 2 * LONG + 100] {
                    let range = middle as u64..(middle + len) as u64;
                    let second = file.read(&tail, range.clone(), Care::Usual).await.unwrap();
                    assert_eq!((second.start, second.end()), (tail.start, range.end));
                    assert!(second.owner[second.bytes] == data[middle - tail_len..middle + len]);
                }
            }
        })
        .unwrap();
    }
}

/// Where nothing behind the range is wanted, an LZ4 chunk is unpacked as far as that, and all others are whole.
#[test]
fn a_chunk_is_unpacked_as_far_as_it_is_wanted() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let data = data();
        for compressor in COMPRESSORS {
            let (bytes, info) = file(compressor, Version::Nb);
            let [_, file] = open(&shard, bytes, &info, Version::Nb).await;
            let ends = [1, 9, 500, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 700, data.len() - 1, data.len()];
            for (start, end) in [0, 5, CHUNK - 1].into_iter().flat_map(|start| ends.map(|end| (start, end))) {
                if start >= end {
                    continue;
                }
                let range = start as u64..end as u64;
                let stretch = file.read(&file.nothing_at(range.start), range, Care::NoMore).await.unwrap();
                let found = &stretch.owner[stretch.bytes.clone()];
                assert!(found[..end - start] == data[start..end], "{compressor:?} {start}..{end}");
                let whole = end.next_multiple_of(CHUNK).min(data.len());
                let expected = if compressor == Compressor::Lz4 { end } else { whole };
                assert_eq!(stretch.end(), expected as u64, "{compressor:?} {start}..{end}");
            }
        }
    })
    .unwrap();
}

/// A checksum covers every byte of a chunk, so no flip goes unnoticed.
#[test]
fn every_flip_is_an_error_that_names_the_chunk() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        for compressor in COMPRESSORS {
            let (bytes, info) = file(compressor, Version::Nb);
            for at in (0..bytes.len()).step_by(3) {
                let mut bent = bytes.clone();
                bent[at] ^= 0x10;
                let [_, file] = open(&shard, bent, &info, Version::Nb).await;
                let error = read(&file, 0..file.len()).await.expect_err("a byte is bent");
                let Error::Corrupt { offset, .. } = &error else { panic!("{error}") };
                let Form::Compressed(of) = &file.form else { panic!("the data is compressed") };
                let number = of.chunks().chunk_of(*offset);
                let chunk = of.of(number..number + 1, &mut PlacesAtHand::default()).await.unwrap().all();
                assert!(chunk.contains(&(at as u64)), "{error}: the byte is {at}");
            }
        }
    })
    .unwrap();
}

#[test]
fn checksums_that_are_right_do_not_make_a_chunk_right() {
    let mut to = vec![0; CHUNK];
    for compressor in COMPRESSORS {
        for (what, packed) in [
            ("nothing", Vec::new()),
            ("noise", (0..200).map(|i| (i * 37) as u8).collect()),
            ("too little", pack(compressor, &data()[..CHUNK - 1])),
            ("too much", pack(compressor, &data()[..CHUNK + 1])),
        ] {
            assert!(decompress(compressor, &packed, &mut to, CHUNK).is_err(), "{compressor:?} of {what}");
        }
    }
}

/// Whoever begins the next request before this one is unpacked goes by it.
#[test]
fn a_request_brings_what_it_says() {
    runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
        let (bytes, info) = file(Compressor::Lz4, Version::Me);
        let path = Path::new("/plain");
        shard.disk().as_simulated().unwrap().add_file(path, data());
        let mut crc = CrcBuilder::default();
        crc.update(&data());
        let mut plain = Vec::new();
        let crc_path = Path::new("/crc");
        shard.disk().as_simulated().unwrap().add_file(crc_path, crc.finish().0.encode());
        let crc = shard.disk().open(crc_path, IoClass::new(1)).await.unwrap();
        let crc = CrcPages::new(crc, Cache::new(0), data().len() as u64);
        for crc in [None, Some(crc)] {
            let file = shard.disk().open(path, IoClass::new(1)).await.unwrap();
            plain.push(DataFile::plain(file, crc));
        }
        for file in open(&shard, bytes, &info, Version::Me).await.into_iter().chain(plain) {
            let len = file.len();
            let ranges = [(0, 1), (7, 1024), (7, 1025), (2048, 4000), (0, len - 1), (len - 1, len)];
            for ((start, end), care) in
                ranges.iter().flat_map(|&range| [(range, Care::Usual), (range, Care::Checked)])
            {
                let mut at_hand = AtHand::default();
                file.prepare(care, &mut at_hand).await.unwrap();
                let mut request = file.request(start..end, care, &mut at_hand).await.unwrap();
                let said = file.end_of(&request);
                let window = file.wait(&mut request, &mut at_hand).await.unwrap();
                let stretch = file.finish(&file.nothing_at(start), request, window).unwrap();
                assert_eq!((stretch.start, stretch.end()), (start, said), "{start}..{end}");
            }
        }
    })
    .unwrap();
}

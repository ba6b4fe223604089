use super::*;
use crate::layer::Linear;
use crate::loss::{LossFunction, Targets};
use crate::optimise::{Optimiser, Rule, Schedule};
use crate::train::{Learner, Parts, Tuning};
use crate::{Count, Draft, LearnError, NoiseSource, Owners, Rows};
use std::os::unix::fs::MetadataExt;
use whit_core::{Change, Kind, Ladder, Unit, unit::Caps};
use whit_noise::{Entropy, Replay};

const WIDTH: usize = 3;
const ROWS: usize = 50;

fn keep(memory: u64) -> Keep {
    Keep { memory, ..Keep::default() }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Rows in another order than theirs, with some twice, some together and some left out.
fn some() -> Vec<u32> {
    let mut entropy = Replay::new(4);
    let scattered = (0..60).map(|_| entropy.bits(20) as u32 % ROWS as u32);
    scattered.chain(20..40).chain([49, 0, 0]).collect()
}

/// A row takes 12 bytes, or 3: limits of nothing, of less than a row, in the middle of a block, at its end, and of all.
const LIMITS: [u64; 8] = [0, 2, 20, 75, 84, 300, 400, 1 << 20];

#[test]
fn memory_and_file_give_the_same_bits() {
    let mut entropy = Replay::new(1);
    let floats: Vec<f32> = (0..ROWS * WIDTH).map(|_| entropy.bits(24) as f32 * 1e-5 - 70.0).collect();
    let bytes: Vec<u8> = (0..ROWS * WIDTH).map(|_| entropy.bits(8) as u8).collect();
    for (scale, offset) in [(1.0, 0.0), (1.0 / 255.0, -0.5), (-3.7, 1e-3)] {
        let scaled = |value: f32| if (scale, offset) == (1.0, 0.0) { value } else { value.mul_add(scale, offset) };
        let expected = |of: &dyn Fn(usize) -> f32| -> Vec<u32> {
            let numbers = some().into_iter().flat_map(|row| (0..WIDTH).map(move |i| row as usize * WIDTH + i));
            numbers.map(|at| scaled(of(at)).to_bits()).collect()
        };
        for memory in LIMITS {
            let builder = || Builder::new(WIDTH, keep(memory)).unwrap().scaled(scale, offset);
            let (mut of_floats, mut of_bytes) = (builder(), builder());
            // Blocks of 7 rows, and one of 1.
            for (floats, bytes) in floats.chunks(7 * WIDTH).zip(bytes.chunks(7 * WIDTH)) {
                of_floats.push_floats(floats).unwrap();
                of_bytes.push_bytes(bytes).unwrap();
            }
            let (of_floats, of_bytes) = (of_floats.finish(), of_bytes.finish());
            assert_eq!(bits(&of_floats.pick(&some()).unwrap()), expected(&|at| floats[at]), "{memory}");
            assert_eq!(bits(&of_bytes.pick(&some()).unwrap()), expected(&|at| f32::from(bytes[at])), "{memory}");
            assert_eq!((of_floats.len(), of_floats.width(), of_bytes.len()), (ROWS, WIDTH, ROWS));
            // As many rows lie in memory as fit, and the file has the others to the byte.
            for (store, row) in [(&of_floats, 12), (&of_bytes, 3)] {
                let here = (memory / row).min(ROWS as u64);
                assert_eq!(store.memory(), here * row);
                let there = store.file.as_ref().map_or(0, |file| file.metadata().unwrap().len());
                assert_eq!(there, (ROWS as u64 - here) * row);
            }
        }
    }
}

#[test]
fn rows_longer_and_shorter_than_a_block_come_back() {
    for width in [1, BLOCK / 8, BLOCK / 4 + 3] {
        let rows = (3 * BLOCK / 4).div_ceil(width).max(4);
        let values: Vec<f32> = (0..rows * width).map(|i| (i % 65_521) as f32).collect();
        for memory in [0, 4 * (values.len() / 2) as u64, u64::MAX] {
            let mut builder = Builder::new(width, keep(memory)).unwrap();
            builder.push_floats(&values).unwrap();
            let all: Vec<u32> = (0..rows as u32).collect();
            assert!(builder.finish().pick(&all).unwrap() == values, "{width} {memory}");
        }
    }
}

#[test]
fn what_cannot_be_kept_is_refused_and_takes_nothing() {
    let mut builder = Builder::new(WIDTH, keep(12)).unwrap();
    builder.push_floats(&[1.0, 2.0, 3.0]).unwrap();
    for bad in [f32::NAN, f32::INFINITY] {
        let refused = builder.push_floats(&[4.0, 5.0, 6.0, 7.0, bad, 9.0]);
        assert!(matches!(refused, Err(StoreError::NotFinite)));
    }
    assert!(matches!(builder.push_floats(&[1.0]), Err(StoreError::Ragged { numbers: 1, width: 3 })));
    assert!(matches!(builder.push_bytes(&[1, 2, 3]), Err(StoreError::Mixed)));
    builder.push_floats(&[4.0, 5.0, 6.0]).unwrap();
    let store = builder.finish();
    assert_eq!(store.pick(&[1, 0]).unwrap(), [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    assert!(matches!(store.pick(&[0, 2]), Err(StoreError::Absent { row: 2, rows: 2 })));
    // What is finite as it comes and not once it is scaled.
    let scaled = || Builder::new(1, keep(0)).unwrap().scaled(1e38, 0.0);
    let mut refused = scaled();
    assert!(matches!(refused.push_bytes(&[1]), Err(StoreError::NotFinite)));
    assert!(refused.push_floats(&[3.0]).is_ok(), "nothing was taken that these would not go with");
    assert!(matches!(scaled().push_floats(&[4.0]), Err(StoreError::NotFinite)));
    assert!(scaled().push_floats(&[3.0]).is_ok());
    assert!(matches!(Builder::new(0, keep(0)), Err(StoreError::Ragged { .. })));
    assert!(matches!(Store::of(vec![f32::NAN], 1), Err(StoreError::NotFinite)));
    assert!(matches!(Store::of(vec![1.0], 2), Err(StoreError::Ragged { .. })));
    let nowhere = Keep { memory: 0, folder: PathBuf::from("/no/such/folder") };
    let error = Builder::new(1, nowhere).unwrap().push_floats(&[1.0]).unwrap_err();
    assert!(error.is_of_the_disk() && error.to_string().contains("/no/such/folder"), "{error}");
    assert!(!format!("{store:?}").contains("4.0"));
}

#[test]
fn the_file_has_no_name_and_is_ours_alone() {
    let folder = std::env::temp_dir().join(format!("whit-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for file in [nameless(&folder).unwrap(), unnamed(&folder).unwrap()] {
        let found = file.metadata().unwrap();
        assert_eq!((found.nlink(), found.mode() & 0o777), (0, 0o600));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        write_at(&file, &[1, 2, 3], 5).unwrap();
        let mut read = [0; 2];
        read_at(&file, &mut read, 6).unwrap();
        assert_eq!(read, [2, 3]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A disk that gives back less than was written ends a step, and nothing of it is seen.
#[test]
fn a_file_that_was_cut_refuses_the_step() {
    let mut builder = Builder::new(1, keep(8)).unwrap();
    builder.push_floats(&(0..20_u8).map(|i| f32::from(i) / 20.0).collect::<Vec<_>>()).unwrap();
    let store = builder.finish();
    let ladder = Ladder::new(vec![Unit::event(Change::AddRemove)], Caps::default(), Kind::Event).unwrap();
    let draft = Draft::new(ladder, "1".parse().unwrap(), Count::Declared(20), 1.0, 9);
    let targets = Targets::Numbers { values: vec![1.0; 20], width: 1 };
    let mut learner = Learner::new(Parts {
        model: Linear::at_zero(1, 1, false),
        plan: draft.with_noise(1.0).unwrap().drawing(NoiseSource::Replay { seed: 1 }),
        loss: LossFunction::Squared,
        rows: Rows::new(store.clone(), targets, Kind::Event, Owners::default()).unwrap(),
        optimiser: Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.1 }, None, 1).unwrap(),
        average: None,
        tuning: Tuning::default(),
    })
    .unwrap();
    learner.step().unwrap();
    let (theta, taken) = (learner.theta().to_vec(), learner.taken());
    store.file.as_ref().unwrap().set_len(4 * 17).unwrap();
    let error = learner.step().unwrap_err();
    assert!(matches!(error, LearnError::Store(StoreError::Read(_))), "{error}");
    assert_eq!((learner.theta(), learner.taken()), (&theta[..], taken));
}

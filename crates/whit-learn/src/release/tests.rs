use super::*;
use crate::bound::Seen;
use crate::checkpoint::{CheckpointFile, Standing};
use crate::plan::{Count, Draft, NoiseSource, PlanError};
use crate::train::Learner;
use whit_core::release::{CommitError, LedgerFailure, ReleaseError, Reservation};
use whit_core::unit::Caps;
use whit_core::{Change, Charge, Cost, Kind, Ladder, Ledger, Mechanism, Progress, Refusal, Unit};
use whit_noise::Os;

fn recipe(outputs: usize) -> Recipe {
    Recipe {
        dataset: "visits".to_owned(),
        features: vec!["a".into(), "b".into()],
        widths: BTreeMap::new(),
        bits: false,
        scale: 1.0,
        offset: 0.0,
        target: "y".to_owned(),
        classes: None,
        model: Named::Linear { bias: true },
        loss: LossFunction::Logistic,
        projection: None,
        inputs: 2,
        outputs,
    }
}

fn card() -> Card {
    let units = vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)];
    let caps = Caps { elements_per_user: Some(1000), rows_per_element: None };
    let ladder = Ladder::new(units, caps, Kind::Element).unwrap();
    let plan = Draft::new(ladder, "1/100".parse().unwrap(), Count::Declared(10_000), 1.0, 100).with_noise(1.0).unwrap();
    Card::of(&plan, 1e-6, &recipe(1), 3).unwrap()
}

fn sample() -> Trained {
    let model = recipe(1).model.build(2, 1, &mut Os).unwrap();
    let (layout, theta) = crate::params::Layout::of(&model);
    let theta = (1..=theta.len()).map(|i| 0.1 * i as f32).collect();
    Trained { card: card(), recipe: recipe(1), projection: None, shapes: shapes_of(&layout), theta }
}

#[test]
fn a_model_comes_back_from_its_file() {
    let trained = sample();
    let back = Trained::of_file(&trained.to_file()).unwrap();
    assert_eq!(back, trained);
    let model = back.fill(recipe(1).model.build(2, 1, &mut Os).unwrap()).unwrap();
    assert_eq!(crate::params::Layout::of(&model).1, trained.theta);
}

#[test]
fn a_model_comes_back_from_the_layout_of_pytorch() {
    let trained = sample();
    let bytes = trained.to_file_as(Arrangement::Torch);
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("0.weight").unwrap().shape(), [1, 2]);
    assert_eq!(tensors.tensor("0.bias").unwrap().shape(), [1]);
    assert_eq!(Trained::of_file_checked(&bytes).unwrap(), (trained, true));
    let damaged = |old: &[u8], new: &[u8]| {
        let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
        let mut other = bytes.clone();
        other[at..at + old.len()].copy_from_slice(new);
        Trained::of_file(&other).unwrap_err().to_string()
    };
    assert!(damaged(b"\"torch\"", b"\"tooth\"").contains("laid out in a way that is not known"));
    assert!(damaged(b"\"0.bias\"", b"\"1.bias\"").contains("its checksum is another"));
}

/// A file that was written before headers were read by the crate `safetensors`: it is read, and written the same, byte by byte.
#[test]
fn a_file_of_format_3_is_read_and_written_as_it_was() {
    let bytes = include_bytes!("model_3.safetensors");
    let (trained, checked) = Trained::of_file_checked(bytes).unwrap();
    assert!(checked && trained.projection.is_some() && !trained.theta().is_empty());
    assert_eq!(trained.to_file(), bytes);
}

/// Headers that promise more than there is, or the same twice, or what no memory holds, are refused before a number is read.
#[test]
fn a_hostile_header_is_refused() {
    let whole = sample().to_file();
    let end = 8 + usize::try_from(u64::from_le_bytes(whole[..8].try_into().unwrap())).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&whole[8..end]).unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut header = header.clone();
        change(&mut header);
        let header = header.to_string().into_bytes();
        let file = [&(header.len() as u64).to_le_bytes()[..], &header, &whole[end..]].concat();
        Trained::of_file(&file).unwrap_err().to_string()
    };
    let far = u64::MAX / 8;
    let tensor = |shape: &[u64], from: u64, to: u64| serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, to] });
    for (from, to) in [(0, u64::MAX), (12, u64::MAX), (12, 12 + far), (4, 12), (16, 12)] {
        let sides = [to.wrapping_sub(from) / 4];
        let what = refused(&|header| header["more"] = tensor(&sides, from, to));
        assert!(what.contains("no model of whit"), "{from}, {to}: {what}");
    }
    // Many of them add up to more than an index holds.
    let what = refused(&|header| {
        for i in 0..9 {
            let (from, to) = (12 + i * (far / 4 * 4), 12_u64.saturating_add((i + 1).saturating_mul(far / 4 * 4)));
            header[format!("more{i}")] = tensor(&[far / 4], from, to);
        }
    });
    assert!(what.contains("no model of whit"), "{what}");
    for shape in [&[u64::MAX, 2][..], &[1 << 40, 1 << 40], &[2, 2]] {
        let what = refused(&|header| header["more"] = tensor(shape, 12, 20));
        assert!(what.contains("no model of whit"), "{shape:?}: {what}");
    }
    let other = refused(&|header| {
        header["more"] = serde_json::json!({ "dtype": "F64", "shape": [0], "data_offsets": [12, 12] });
    });
    assert!(other.contains("32-bit"), "{other}");
    let long = [&u64::MAX.to_le_bytes()[..], &whole[8..]].concat();
    assert!(Trained::of_file(&long).is_err());
}

#[test]
fn what_is_no_model_is_refused_and_another_is_named() {
    let bytes = sample().to_file();
    for cut in 0..bytes.len() {
        assert!(Trained::of_file(&bytes[..cut]).is_err(), "{cut}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(Trained::of_file(&longer).unwrap_err().to_string().contains("belong to no tensor"));
    let other = sample().fill(recipe(1).model.build(5, 1, &mut Os).unwrap()).unwrap_err().to_string();
    assert!(other.contains("another model") && other.contains("weight"), "{other}");
    let deeper = Named::Perceptron { hidden: vec![3], activation: crate::layer::Activation::Relu, dropout: 0.0 };
    assert!(sample().fill(deeper.build(2, 1, &mut Os).unwrap()).is_err());
}

#[test]
fn a_card_says_what_is_lost_on_each_rung_and_infinity_survives() {
    let mut card = card();
    assert_eq!(card.rungs.len(), 2);
    assert!(card.rungs[1].epsilon > card.rungs[0].epsilon);
    card.rungs[1].epsilon = f64::INFINITY;
    let text = serde_json::to_string(&card).unwrap();
    assert!(text.contains("\"Infinity\""), "{text}");
    assert_eq!(serde_json::from_str::<Card>(&text).unwrap(), card);
    let words = card.words();
    assert!(words.contains("element (user, topic), replace: ε = ") && words.contains("ε = ∞ at δ"), "{words}");
    assert!(!words.contains("non-private"));
    card.reproducible = true;
    assert!(card.words().contains("non-private"));
}

#[test]
fn a_projection_travels_with_its_model() {
    let mut trained = sample();
    let inputs = trained.recipe.inputs;
    let asked = Projecting { components: 2, radius: 1.0, noise: 5.0 };
    trained.recipe.projection = Some(asked);
    let directions: Vec<f32> = (0..2 * inputs).map(|i| i as f32).collect();
    trained.projection = Some(Projection::of_numbers(&[2, inputs], directions).unwrap());
    let bytes = trained.to_file();
    assert_eq!(Trained::of_file(&bytes).unwrap(), trained);
    // One that is promised and is not there, or of other sides, is refused.
    let missing = Trained { projection: None, ..trained.clone() };
    assert!(Trained::of_file(&missing.to_file()).is_err());
    trained.recipe.projection = Some(Projecting { components: 3, radius: 1.0, noise: 5.0 });
    assert!(Trained::of_file(&trained.to_file()).is_err());
}

/// Cards of version 1 had a hash of the data, from which one who knows all values but one could find it.
#[test]
fn a_hash_of_the_data_is_neither_written_nor_kept() {
    let trained = sample();
    assert!(!String::from_utf8_lossy(&trained.to_file()).contains("fingerprint"));
    let mut card = serde_json::to_value(&trained.card).unwrap();
    card["fingerprint"] = "f00d".into();
    card["version"] = 1.into();
    let (old, new) = (card.to_string(), serde_json::to_string(&trained.card).unwrap());
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let bytes = trained.to_file();
    let end = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header = String::from_utf8(bytes[8..end].to_vec()).unwrap();
    let header = header.replace(&quoted(&new), &quoted(&old)).replace("whit model 3", "whit model 1");
    let header = header.replace("\"checksum\"", "\"unread\"");
    assert!(header.contains("f00d"));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.extend(&bytes[end..]);
    // An earlier format has no checksum, and that is known.
    assert_eq!(Trained::of_file_checked(&file).unwrap(), (trained, false));
}

/// A flipped bit of a parameter made another model, without a word.
#[test]
fn a_model_that_is_not_as_it_was_written_is_refused() {
    let trained = sample();
    let bytes = trained.to_file();
    assert_eq!(Trained::of_file_checked(&bytes).unwrap(), (trained, true));
    let end = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    assert!(end < bytes.len());
    for at in 0..bytes.len() {
        // All bits of the numbers, and one of each letter before them.
        let bits: Vec<usize> = if at < end { vec![at % 8] } else { (0..8).collect() };
        for bit in bits {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let read = Trained::of_file(&changed);
            assert!(read.is_err(), "bit {bit} of byte {at}");
            if at >= end {
                assert!(read.unwrap_err().to_string().contains("its checksum is another"));
            }
        }
    }
    // Nor does it pass by saying that it has none.
    let header = String::from_utf8(bytes[8..end].to_vec()).unwrap();
    let header = header.replace("\"checksum\"", "\"checksam\"");
    let file = [&bytes[..8], header.as_bytes(), &bytes[end..]].concat();
    let error = Trained::of_file(&file).unwrap_err();
    assert!(error.to_string().contains("no checksum"));
    assert_eq!(error.hint(), "`Session::train` writes it again, from the ledger and at no cost");
}

#[test]
fn noise_from_a_seed_promises_nothing() {
    let units = vec![Unit::event(Change::Replace)];
    let ladder = Ladder::new(units, Caps::default(), Kind::Event).unwrap();
    let plan = Draft::new(ladder, "1/100".parse().unwrap(), Count::Declared(10_000), 1.0, 100).with_noise(1.0).unwrap();
    for source in [NoiseSource::Replay { seed: 5 }, NoiseSource::Off] {
        let open = plan.clone().drawing(source);
        let card = Card::of(&open, 1e-6, &recipe(1), 3).unwrap();
        assert!(card.reproducible && card.rungs[0].epsilon == f64::INFINITY && card.words().contains("ε = ∞"));
        assert_eq!(open.cost(open.ladder().protected()), Cost::Everything);
        assert!(open.charge().iter().all(|(_, cost)| *cost == Cost::Everything));
        assert_eq!(open.loss_after(1, 1e-6).unwrap()[0].1.upper, f64::INFINITY);
    }
    assert!(RungLoss::of(&plan, 1e-6).unwrap()[0].epsilon.is_finite());
}

mod order {
    use super::*;
    use crate::loss::Targets;
    use crate::model::Network;
    use crate::optimise::{Optimiser, Rule, Schedule};
    use crate::pca::Principal;
    use crate::scatter::Scatter;
    use crate::source::{Owners, Rows};
    use crate::store::Store;
    use crate::train::{Parts, Tuning, Way};
    use std::cell::RefCell;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("whit-run-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes down what happens, and may say no.
    struct Recorder<'a> {
        events: &'a RefCell<Vec<String>>,
        willing: bool,
        /// Says no to the note of this step.
        stops_at: Option<u64>,
    }

    impl Ledger for Recorder<'_> {
        fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
            if !self.willing {
                let [asked, left, unit] = ["much", "little", "event"].map(str::to_owned);
                return Err(Refusal::new(asked, left, unit));
            }
            let everything = charge.iter().all(|(_, cost)| *cost == Cost::Everything);
            self.events.borrow_mut().push(if everything { "reserve everything" } else { "reserve" }.to_owned());
            Ok(Reservation::new(3))
        }

        fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
            self.events.borrow_mut().push("commit".to_owned());
            Ok(())
        }

        fn progress(&mut self, _: &Reservation, progress: &Progress) -> Result<(), LedgerFailure> {
            if self.stops_at == Some(progress.step) {
                return Err(LedgerFailure { sentence: "somebody else went on".to_owned(), hint: None });
            }
            self.events.borrow_mut().push(format!("note {}", progress.step));
            Ok(())
        }
    }

    fn learner(plan: &Plan) -> Learner<Network> {
        let rows = Rows::new(
            Store::of(vec![0.5; 40], 2).unwrap(),
            Targets::Numbers { values: vec![1.0; 20], width: 1 },
            Kind::Event,
            Owners::default(),
        );
        let model = recipe(1).model.build(2, 1, &mut Os).unwrap();
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.1 }, None, 3).unwrap();
        let tuning = Tuning::default();
        let rows = rows.unwrap();
        let parts =
            Parts { model, plan: plan.clone(), loss: LossFunction::Logistic, rows, optimiser, average: None, tuning };
        Learner::new(parts).unwrap()
    }

    fn run(name: &str, noise: NoiseSource, (willing, stops_at): (bool, Option<u64>), from: Option<Standing>) -> Ran {
        let plan = plan().drawing(noise);
        run_of(name, &plan, &plan, (willing, stops_at), from).unwrap()
    }

    fn plan() -> Plan {
        let ladder = Ladder::new(vec![Unit::event(Change::Replace)], Caps::default(), Kind::Event).unwrap();
        Draft::new(ladder, "1/4".parse().unwrap(), Count::Declared(20), 1.0, 5).with_noise(1.0).unwrap()
    }

    type Ran = (Result<Trained, ReleaseError>, Vec<String>, Option<Standing>, Option<Standing>);

    /// Pays for one plan, and learns by another, or by the same.
    fn run_of(
        name: &str,
        paid: &Plan,
        learned: &Plan,
        (willing, stops_at): (bool, Option<u64>),
        from: Option<Standing>,
    ) -> Result<Ran, PlanError> {
        let folder = folder(name);
        let file = CheckpointFile::take(&folder.join("m.checkpoint")).unwrap();
        let events = RefCell::new(Vec::new());
        let make = |_: &Reservation| {
            events.borrow_mut().push("read".to_owned());
            Ok(learner(learned))
        };
        let card = Card::of(paid, 1e-6, &recipe(1), 3).unwrap();
        let task = Task { plan: paid.clone(), card, recipe: recipe(1), make: Box::new(make) };
        let keeping = Keeping { run: "run".to_owned(), file: &file, every: 2, from, unnoted: false };
        let mut watch = |_: &Learner<Network>, _: &Seen| Ok(());
        let run = TrainingRun::new(task, keeping, &mut watch)?;
        let trained = train(&run, &mut Recorder { events: &events, willing, stops_at });
        drop(run);
        let (last, next) = (file.find("run").unwrap(), file.find_next("run"));
        std::fs::remove_dir_all(folder).unwrap();
        Ok((trained, events.into_inner(), last, next))
    }

    const SECRET: NoiseSource = NoiseSource::Secret { threads: 1 };

    #[test]
    fn rows_are_read_after_the_reservation() {
        let (trained, events, last, next) = run("order", SECRET, (true, None), None);
        assert_eq!(trained.unwrap().card.entry, Some(3));
        assert_eq!(events, ["reserve", "read", "note 0", "note 2", "note 4", "note 5", "commit"]);
        let last = last.unwrap().checkpoint;
        assert_eq!((last.taken, last.entry, next), (5, 3, None));
        // A budget that says no is asked before anything is read.
        let (refused, events, last, _) = run("refused", SECRET, (false, None), None);
        assert!(matches!(refused, Err(ReleaseError::Refused(_))) && events.is_empty() && last.is_none());
        let (_, events, ..) = run("seeded", NoiseSource::Replay { seed: 1 }, (true, None), None);
        assert_eq!(events[..2], ["reserve everything", "read"]);
    }

    /// Neither as it is, nor under a plan that has noise, and neither does a card say more than the plan keeps.
    #[test]
    fn a_learner_without_noise_is_not_released() {
        let (secret, open) = (plan(), plan().drawing(NoiseSource::Off));
        assert_eq!(run_of("open", &open, &open, (true, None), None).err(), Some(PlanError::NoNoise));
        for learned in [open, plan().drawing(NoiseSource::Replay { seed: 3 }), plan().stepping(Way::Sum).unwrap()] {
            let (refused, events, last, next) = run_of("forged", &secret, &learned, (true, None), None).unwrap();
            assert!(refused.unwrap_err().to_string().contains("another plan than was paid for"));
            assert_eq!(events, ["reserve", "read"], "no step is taken, nothing is noted and nothing committed");
            assert!(last.is_none() && next.is_none());
        }
        let file = CheckpointFile::take(&folder("card").join("m.checkpoint")).unwrap();
        let new = |plan: &Plan, card: Card| {
            let make = |_: &Reservation| Err(LearnError::Data("no rows are read here".to_owned()));
            let task = Task::<Network> { plan: plan.clone(), card, recipe: recipe(1), make: Box::new(make) };
            let keeping = Keeping { run: "run".to_owned(), file: &file, every: 2, from: None, unnoted: false };
            TrainingRun::new(task, keeping, &mut |_: &Learner<Network>, _: &Seen| Ok(())).err()
        };
        let of = |plan: &Plan| Card::of(plan, 1e-6, &recipe(1), 3).unwrap();
        let seeded = plan().drawing(NoiseSource::Replay { seed: 3 });
        assert_eq!(new(&secret, of(&secret)), None);
        assert_eq!(new(&seeded, of(&seeded)), None);
        let hopeful = Card { reproducible: true, ..of(&secret) };
        let cards = [of(&secret), hopeful, Card { reproducible: false, ..of(&seeded) }];
        for card in cards {
            assert_eq!(new(&seeded, card), Some(PlanError::OtherCard), "a seed promises nothing");
        }
        assert_eq!(new(&secret, Card { noise: 2.0, ..of(&secret) }), Some(PlanError::OtherCard));
        std::fs::remove_dir_all(folder("card")).unwrap();
    }

    /// Directions leave with the model: a plan that does not promise their second moments, or promises ones with more noise, does not release it.
    #[test]
    fn a_projection_that_is_not_promised_is_not_released() {
        let ladder = plan().ladder().clone();
        let scatter = |noise: &str| Scatter::new(2, 1.0, noise.parse().unwrap()).unwrap().on(&ladder);
        let draft = |accompanying: Charge| {
            let draft = Draft::new(ladder.clone(), "1/4".parse().unwrap(), Count::Declared(20), 1.0, 5);
            Draft { accompanying, ..draft }.with_noise(1.0).unwrap()
        };
        let charge = |noise: &str| -> Charge {
            ladder.rungs().iter().map(|rung| (rung.clone(), scatter(noise).cost(rung))).collect()
        };
        let both =
            vec![(ladder.protected().clone(), Cost::Series(vec![charge("3")[0].1.clone(), charge("5")[0].1.clone()]))];
        let plans = [(Charge::new(), false), (charge("30"), false), (charge("5"), true), (both, true)];
        for (accompanying, released) in plans {
            let plan = draft(accompanying);
            let (folder, events) = (folder("projected"), RefCell::new(Vec::new()));
            let file = CheckpointFile::take(&folder.join("m.checkpoint")).unwrap();
            let make = |_: &Reservation| {
                let mut learner = learner(&plan);
                learner.project(&Principal::of(&scatter("5"), &[9, 1, 4], 2).unwrap())?;
                Ok(learner)
            };
            let card = Card::of(&plan, 1e-6, &recipe(1), 3).unwrap();
            let task = Task { plan: plan.clone(), card, recipe: recipe(1), make: Box::new(make) };
            let keeping = Keeping { run: "run".to_owned(), file: &file, every: 2, from: None, unnoted: false };
            let mut watch = |_: &Learner<Network>, _: &Seen| Ok(());
            let run = TrainingRun::new(task, keeping, &mut watch).unwrap();
            let trained = train(&run, &mut Recorder { events: &events, willing: true, stops_at: None });
            match trained {
                Ok(_) => assert!(released),
                Err(error) => assert!(!released && error.to_string().contains("second moments"), "{error}"),
            }
            std::fs::remove_dir_all(folder).unwrap();
        }
    }

    /// Nor does a card that says less than the labels cost pass for one of their plan.
    #[test]
    fn a_card_that_leaves_out_its_labels_is_refused() {
        let ladder = Ladder::new(vec![Unit::label(&[], "y")], Caps::default(), Kind::Label).unwrap();
        let draft = Draft::new(ladder, "1/4".parse().unwrap(), Count::Counted(20), 1.0, 5);
        let reporting = crate::train::LabelReporting { epsilon: "1".parse().unwrap(), classes: 2, first: 0.5 };
        let plan = draft.after_labels(reporting, 20, None).unwrap();
        for delta in [0.0, 1e-6] {
            let card = Card::of(&plan, delta, &recipe(1), 3).unwrap();
            assert!(card.is_of(&plan) && (card.rungs[0].epsilon - 1.0).abs() < 1e-9);
            let mut free = card.clone();
            free.rungs[0].epsilon = 0.0;
            assert!(!free.is_of(&plan));
        }
    }

    /// What the ledger does not note goes no further: the last checkpoint stays, the next stands next to it and says what it follows from.
    #[test]
    fn a_run_that_is_not_noted_ends_where_it_stood() {
        let (stopped, events, last, next) = run("stopped", SECRET, (true, Some(4)), None);
        assert!(stopped.unwrap_err().to_string().contains("somebody else went on"));
        assert_eq!(events, ["reserve", "read", "note 0", "note 2"]);
        let (last, next) = (last.unwrap(), next.unwrap());
        assert_eq!((last.checkpoint.taken, next.checkpoint.taken), (2, 4));
        assert_eq!(next.checkpoint.after.as_ref(), Some(&last.hash));
        // From where it stood it takes the steps that are left, and no others.
        let (trained, events, ..) = run("resumed", SECRET, (true, None), Some(last));
        assert!(trained.is_ok());
        assert_eq!(events, ["reserve", "read", "note 4", "note 5", "commit"]);
    }
}

use super::*;
use crate::plan::{Count, Draft};
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};

fn recipe(outputs: usize) -> Recipe {
    Recipe {
        dataset: "visits".to_owned(),
        features: vec!["a".to_owned(), "b".to_owned()],
        widths: BTreeMap::new(),
        bits: false,
        scale: 1.0,
        offset: 0.0,
        target: "y".to_owned(),
        classes: None,
        model: Named::Linear { bias: true },
        loss: Loss::Logistic,
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
    Card::of(&plan, 1e-6, &recipe(1), 3, Noise::Secret { threads: 1 }).unwrap()
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
    assert!(!words.contains("nobody"));
    card.reproducible = true;
    assert!(card.words().contains("protects nobody"));
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

use super::histogram::{BlockBound, Histogram, Radius, Spread};
use super::hitters::{Hitters, PresenceBound};
use super::tokens::{Items, Token, Tokens};
use super::{Calibration, Touch};
use crate::source::scratch::golden;
use std::fmt::Write as _;
use std::sync::Arc;
use whit_account::filter::{Currency, Filter};
use whit_account::ledger::Memory;
use whit_core::release::release_reproducibly_without_privacy;
use whit_core::{Change, Mechanism, Persist, Rung, Unit};
use whit_noise::Replay;

/// What a mechanism costs these units, how far off it is, and what a seed draws.
fn line<M: Mechanism>(what: &str, mechanism: &M, exact: &M::Exact) -> String
where
    M::Noisy: Persist,
{
    let rung = |unit: Unit| Rung { unit, holds: 1, disjoint: false, slices: None };
    let element = Unit::element("user", "item");
    let mut text = format!("{what}: within {}\n", mechanism.accuracy(0.95).within);
    for unit in [
        Unit::event(Change::AddRemove),
        Unit::event(Change::Replace),
        element.clone(),
        Unit::user("user", Change::AddRemove),
        Unit::user("user", Change::Replace),
        Unit::label(&["user"], "item"),
        Unit::user("author", Change::Replace),
    ] {
        writeln!(text, "  {unit}: {:?}", mechanism.cost(&rung(unit.clone()))).unwrap();
    }
    let mut ledger = Memory::new().with_budget(element.clone(), Filter::new(1e6, 1e-6, Currency::Gaussian).unwrap());
    let coins = &mut Replay::new(12);
    let drawn =
        release_reproducibly_without_privacy(mechanism, |_| Ok(exact), &[rung(element)], &mut ledger, coins).unwrap();
    writeln!(text, "  {}", blake3::hash(&drawn.value.to_bytes())).unwrap();
    text
}

/// Golden: written before noise, price and reach became one value, and the same since. Another text is another price or another answer.
#[test]
fn estimators_cost_and_draw_what_they_always_did() {
    let promise = Calibration { epsilon: 1.0, delta: 1e-5 };
    let protected = [Unit::element("user", "item"), Unit::user("user", Change::Replace)];
    let mut text = String::new();
    for (cap, touch) in
        [(None, Touch::Most(1)), (Some(2), Touch::Most(1)), (Some(2), Touch::Most(3)), (Some(3), Touch::Any)]
    {
        let bound = PresenceBound::new(7, cap, touch, "user").unwrap();
        let pairs = (0..40_u64).flat_map(|user| (0..=user % 5).map(move |i| (user, ((user + i * i) % 7) as u32)));
        let exact = bound.gather(pairs.collect()).unwrap();
        for unit in &protected {
            let hitters = Hitters::for_promise(bound.clone(), unit, promise).unwrap();
            text += &line(&format!("hitters, cap {cap:?}, {touch:?}, for {unit}"), &hitters, &exact);
        }
    }
    let items = Arc::new(Items::new(&[0, 0, 1, 2, 2, 2, 3]).unwrap());
    let token = |user: u64, i: u64| Token { user: user as u32, item: ((user + i * i) % 7) as u32, weight: 1 + i };
    let tokens = (0..40_u64).flat_map(|user| (0..=user % 5).map(move |i| token(user, i)));
    let marks = (0..40_u64).map(|user| user.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let tokens = Tokens::gather(Arc::clone(&items), tokens.collect(), marks).unwrap();
    for (cap, touch, spread) in [
        (None, Touch::Most(1), Spread::PerCluster),
        (Some(2), Touch::Most(2), Spread::PerCluster),
        (Some(2), Touch::Any, Spread::Even),
    ] {
        for radius in [
            Radius::Given(2.5),
            Radius::TwoStage { share: 0.2, quantile: 0.9 },
            Radius::Split { users: 0.3, quantile: 0.9 },
        ] {
            for unit in &protected {
                let bound = BlockBound::new(Arc::clone(&items), cap, touch, "user", spread).unwrap();
                let bound = if cap.is_some() { bound.weighted(0.25, 3).unwrap() } else { bound };
                let histogram = Histogram::for_promise(bound, radius, unit, promise).unwrap();
                let what = format!("histogram, cap {cap:?}, {touch:?}, {spread:?}, {radius:?}, for {unit}");
                text += &line(&what, &histogram, &tokens);
            }
        }
    }
    golden("estimators.txt", &text);
}

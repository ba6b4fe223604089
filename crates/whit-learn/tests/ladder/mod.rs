//! A ladder of one rung, of every kind.

use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};

pub(crate) fn ladder(kind: Kind) -> Ladder {
    let caps = Caps { elements_per_user: Some(8), rows_per_element: Some(64) };
    let unit = match kind {
        Kind::Event => Unit::event(Change::AddRemove),
        Kind::Element => Unit::element("user", "topic"),
        Kind::User => Unit::user("user", Change::AddRemove),
        Kind::Feature => Unit::feature(&[], &["a", "y"]),
        Kind::Label => Unit::label(&[], "y"),
    };
    Ladder::new(vec![unit], caps, kind).expect("one rung of any kind is a ladder")
}

//! From a declared unit to units, caps and the ladder.

use super::{CapsDeclaration, UnitDeclaration, UserKey};
use crate::unit::{Caps, Change, Kind, Ladder, LadderError, Unit};

impl UnitDeclaration {
    /// How neighbours differ on the event and user rungs.
    pub fn change(&self) -> Change {
        self.change.unwrap_or(Change::Replace)
    }

    /// The units that are declared, fine to coarse: event, element and user; or the feature or label unit alone, of
    /// one user's rows where a user is declared and else of one row.
    ///
    /// ```
    /// use whit_core::declare::Declaration;
    /// let text = "[dataset.ads]\nsource = 'ads.csv'\nunit.label = 'clicked'\nunit.protect = 'label'";
    /// let units = Declaration::parse(text)?.datasets["ads"].unit.as_ref().unwrap().units();
    /// assert_eq!(units[0].to_string(), "label of clicked, replace");
    /// # Ok::<(), whit_core::declare::DeclareError>(())
    /// ```
    pub fn units(&self) -> Vec<Unit> {
        let user = self.user.as_ref().map(UserKey::column);
        let key: Vec<&str> = user.into_iter().collect();
        match self.protect {
            Kind::Feature => {
                let public: Vec<&str> = self.public.iter().map(String::as_str).collect();
                vec![Unit::feature(&key, &public)]
            }
            Kind::Label => self.label.iter().map(|label| Unit::label(&key, label)).collect(),
            Kind::Event | Kind::Element | Kind::User => {
                let element = user.zip(self.element.as_ref());
                let element = element.map(|(user, element)| Unit::element(user, &element.to_string()));
                let user = user.map(|user| Unit::user(user, self.change()));
                [Some(Unit::event(self.change())), element, user].into_iter().flatten().collect()
            }
        }
    }

    /// The caps that link the rungs. Without an element the whole user is one.
    pub fn caps(&self) -> Caps {
        let CapsDeclaration { elements_per_user, rows_per_element, rows_per_user, .. } = self.caps;
        match (&self.element, rows_per_user) {
            (Some(_), _) => Caps { elements_per_user, rows_per_element },
            (None, Some(rows)) => Caps::one_element(rows),
            (None, None) => Caps::default(),
        }
    }

    /// The ladder from the protected rung up. A coarser rung whose caps are missing is left out, since nothing bounds
    /// its loss; that no budget names such a rung was seen to when the declaration was read.
    pub fn ladder(&self) -> Result<Ladder, LadderError> {
        let (caps, units) = (self.caps(), self.units());
        let start = units.iter().position(|unit| unit.kind() == self.protect);
        let start = start.ok_or(LadderError::NotThere(self.protect))?;
        let mut kept = vec![units[start].clone()];
        for unit in &units[start + 1..] {
            match Ladder::new(vec![units[start].clone(), unit.clone()], caps, self.protect) {
                Ok(_) => kept.push(unit.clone()),
                Err(LadderError::NoCap { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ladder::new(kept, caps, self.protect)
    }

    /// Why a rung is not on the ladder, where it is not.
    pub fn missing(&self, kind: Kind) -> Option<LadderError> {
        let units = self.units();
        let protected = units.iter().find(|unit| unit.kind() == self.protect);
        let asked = units.iter().find(|unit| unit.kind() == kind);
        match (protected, asked) {
            (Some(_), None) => Some(LadderError::NotThere(kind)),
            (None, _) => Some(LadderError::NotThere(self.protect)),
            (Some(protected), Some(asked)) if protected == asked => None,
            (Some(protected), Some(asked)) => {
                Ladder::new(vec![protected.clone(), asked.clone()], self.caps(), self.protect).err()
            }
        }
    }
}

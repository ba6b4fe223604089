//! From a declared unit to units, caps and the ladder.

use super::{CapsDeclaration, ElementSource, UnitDeclaration, UserKey};
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

    /// Whether all rows in which neighbours at this unit differ have one value in a column, the same in both: then each unit lies in one slice of that column.
    ///
    /// | unit | lies in one slice |
    /// |---|---|
    /// | event, add-remove | always: it is one row, which is there or not |
    /// | event, replace | never: a row may go from one value to another |
    /// | element | where the element *is* the column: it keeps its identity, whatever becomes of its rows |
    /// | feature, label, of one row | where the column is public, since then neighbours agree on it row by row |
    /// | feature, label, of one user | never: the user's rows may lie anywhere |
    /// | user | never |
    ///
    /// That the element is looked up for the column, in a dictionary or a file, is not enough: an element may then hold several values.
    ///
    /// ```
    /// use whit_core::declare::Declaration;
    /// let text = "[dataset.v]\nsource = 'v.csv'\nunit.user = 'id'\nunit.element = 'day'\nunit.protect = 'element'\nunit.caps.elements_per_user = 9";
    /// let declaration = Declaration::parse(text)?;
    /// let unit = declaration.datasets["v"].unit.as_ref().unwrap();
    /// let lies: Vec<bool> = unit.units().iter().map(|rung| unit.lies_in_one_slice(rung, "day")).collect();
    /// assert_eq!(lies, [false, true, false]); // event (replace), element, user
    /// # Ok::<(), whit_core::declare::DeclareError>(())
    /// ```
    pub fn lies_in_one_slice(&self, unit: &Unit, column: &str) -> bool {
        match unit.kind() {
            Kind::Event => unit.change() == Change::AddRemove,
            Kind::Element => match &self.element {
                Some(ElementSource::Expression(text)) => text == column || *text == format!("\"{column}\""),
                Some(ElementSource::Dictionary { .. } | ElementSource::PartitionFile { .. }) | None => false,
            },
            Kind::Feature | Kind::Label => unit.key().is_empty() && unit.is_public(column),
            Kind::User => false,
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

#[cfg(test)]
mod tests {
    use super::super::Declaration;

    fn slice(unit: &str) -> Result<Option<String>, String> {
        let text = format!("[dataset.t]\nsource = 't.csv'\nslice = 'day'\n{unit}\n");
        let declared = Declaration::parse(&text).map_err(|error| format!("{error} | {}", error.hint()))?;
        Ok(declared.datasets["t"].slice.clone())
    }

    #[test]
    fn slices_are_declared_where_some_unit_lies_in_one() {
        let element = "unit.user = 'u'\nunit.protect = 'element'\nunit.caps.elements_per_user = 3";
        for unit in [
            format!("{element}\nunit.element = 'day'"),
            format!("{element}\nunit.element = '\"day\"'"),
            "unit.protect = 'event'\nunit.change = 'add-remove'".to_owned(),
            "unit.protect = 'feature'\nunit.public = ['day']".to_owned(),
            "unit.protect = 'label'\nunit.label = 'clicked'".to_owned(),
            // Events are replaced, and have no rung that is charged.
            format!("{element}\nunit.element = 'day'\nunit.change = 'replace'"),
        ] {
            assert_eq!(slice(&unit), Ok(Some("day".to_owned())), "{unit}");
        }
    }

    #[test]
    fn slices_of_which_one_unit_has_several_are_refused_with_the_next_step() {
        let element = "unit.user = 'u'\nunit.protect = 'element'\nunit.caps.elements_per_user = 3";
        for (unit, expected) in [
            (
                "unit.user = 'u'\nunit.protect = 'user'".to_owned(),
                "line 3: `dataset.t.slice` is `day`, but `unit.protect` is `user`",
            ),
            (
                "unit.user = 'u'\nunit.protect = 'user'".to_owned(),
                "make the column the element, unit.element = \"day\"",
            ),
            ("unit.protect = 'event'".to_owned(), "unit.change = \"add-remove\""),
            (format!("{element}\nunit.element = 'week'"), "make the column itself the element"),
            (format!("{element}\nunit.element = \"date_trunc('day', day)\""), "make the column itself the element"),
            (
                format!("{element}\nunit.element = {{ column = 'day', dictionary = {{ a = 'x' }}, unknown = 'y' }}"),
                "make the column itself the element",
            ),
            (
                format!("{element}\nunit.element = {{ column = 'day', file = 'p' }}"),
                "make the column itself the element",
            ),
            ("unit.protect = 'feature'\nunit.public = ['age']".to_owned(), "unit.public = [\"day\"]"),
            ("unit.protect = 'label'\nunit.label = 'day'".to_owned(), "its column is private"),
            ("unit.user = 'u'\nunit.protect = 'label'\nunit.label = 'clicked'".to_owned(), "leave out unit.user"),
            ("public = true".to_owned(), "nothing of it is charged"),
        ] {
            let message = slice(&unit).unwrap_err();
            assert!(message.contains(expected), "{unit}: {message}");
        }
    }
}

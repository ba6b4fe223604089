//! What a training reads, of what its file says: features with what holds for all of them, rows of a condition and of a part, and how much classes count.

use super::features::{AskedFeature, ChosenRows, ClassWeights, Missing, ScaleSpec, SplitOwner, SplitSpec};
use super::spec::{Spec, asked};
use crate::Error;
use whit_core::Kind;
use whit_core::declare::nearest;
use whit_core::feature::{Feature, FeatureEncoding};
use whit_query::source::learn::{SplitBy, SplitPart};

impl Spec {
    /// The features as they are read, and what every number of them is multiplied with and added to.
    pub(crate) fn read(&self) -> Result<(Vec<Feature>, f32, f32), Error> {
        let indicator = |asked: &AskedFeature| asked.missing.unwrap_or(self.missing) == Missing::Indicator;
        let made = |asked: &AskedFeature| Feature { indicator: indicator(asked), ..asked.feature.clone() };
        let mut features: Vec<Feature> = self.features.iter().map(made).collect();
        let all_plain = features.iter().all(Feature::is_plain);
        let by = match self.scale {
            ScaleSpec::By(scale) if all_plain => return Ok((features, scale as f32, self.offset)),
            ScaleSpec::Bounds if self.offset != 0.0 => {
                return Err(asked(
                    "scale = \"bounds\" makes −1 to 1 of declared bounds, and `offset` would move that",
                    "leave `offset` out, or write a scale that is a number",
                ));
            }
            ScaleSpec::By(scale) if scale == 1.0 && self.offset == 0.0 => FeatureEncoding::Plain,
            ScaleSpec::By(scale) => FeatureEncoding::Scaled { scale, offset: f64::from(self.offset) },
            ScaleSpec::Bounds => FeatureEncoding::BoundedWhereDeclared,
        };
        // Ones stay ones: what holds for all numbers is done to those that say nothing of their own.
        for feature in features.iter_mut().filter(|feature| feature.encoding == FeatureEncoding::Plain) {
            feature.encoding = by.clone();
        }
        Ok((features, 1.0, 0.0))
    }

    /// How much the loss of a row of each of these classes counts; nothing where all count the same.
    pub(crate) fn class_weights(&self, classes: Option<&[String]>, kind: Kind) -> Result<Vec<f32>, Error> {
        let Some(weights) = &self.weights else { return Ok(Vec::new()) };
        let each = match weights {
            ClassWeights::Each(each) => each,
            ClassWeights::Word(word) => {
                return Err(asked(
                    format!("weights = \"{word}\" would be found by counting rows, which are private"),
                    "state them as you know them without looking: weights = { yes = 3.0, no = 1.0 }; a private count by class is a question of its own",
                ));
            }
        };
        let Some(classes) = classes else {
            return Err(asked(
                "`weights` are of classes, and a number is predicted",
                "name the classes, or leave `weights` out",
            ));
        };
        if matches!(kind, Kind::Feature | Kind::Label) {
            return Err(asked(
                format!(
                    "where the unit is a {kind}, a part of the loss is public, and a weight by class would make that depend on more than is public"
                ),
                "leave `weights` out, or protect another unit",
            ));
        }
        if self.intervals.is_some() {
            return Err(asked(
                "intervals are for losses that count the same for all rows",
                "leave `weights` or `intervals` out",
            ));
        }
        if let Some(odd) = each.keys().find(|name| !classes.contains(name)) {
            let near = nearest(odd, classes.iter().map(String::as_str));
            return Err(asked(
                format!("`weights` names `{odd}`, which is no class"),
                near.map_or_else(
                    || format!("classes are: {}", classes.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                ),
            ));
        }
        if let Some((name, weight)) = each.iter().find(|(_, weight)| !(1e-3..=1e3).contains(*weight)) {
            return Err(asked(
                format!("the weight of `{name}` is {weight}, and it must be between 0.001 and 1000"),
                "weights count against one another: 3.0 and 1.0 are usual",
            ));
        }
        Ok(classes.iter().map(|class| each.get(class).copied().unwrap_or(1.0) as f32).collect())
    }

    /// What features are called, one after the other.
    pub(crate) fn feature_names(&self) -> String {
        self.features.iter().map(|asked| asked.feature.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Which rows are learned from.
    pub(crate) fn learned_from(&self) -> ChosenRows<'_> {
        ChosenRows { filter: self.learned.as_deref(), part: self.part(false) }
    }

    /// Which rows a model is tried on; none where nothing says so.
    pub(crate) fn tried_on(&self) -> Option<ChosenRows<'_>> {
        match self.part(true) {
            None => self.evaluate_where.as_deref().map(|filter| ChosenRows { filter: Some(filter), part: None }),
            part => Some(ChosenRows { filter: self.learned.as_deref(), part }),
        }
    }

    fn part(&self, aside: bool) -> Option<SplitPart> {
        let SplitSpec { by, test, seed } = self.split?;
        let by = match by {
            SplitOwner::User => SplitBy::User,
            SplitOwner::Row => SplitBy::Row,
        };
        Some(SplitPart { by, test, seed, aside })
    }

    /// Refuses a split that sets nobody aside, and one beside a condition that does it too.
    pub(crate) fn check_split(&self) -> Result<(), Error> {
        let Some(split) = &self.split else { return Ok(()) };
        if self.evaluate_where.is_some() {
            return Err(asked(
                "`split` and `evaluate_where` both say which rows the model is tried on",
                "leave one of them out; `where` chooses among the rows of both parts of a split",
            ));
        }
        if !(split.test > 0.0 && split.test < 1.0) {
            return Err(asked(
                format!("split.test is {}, and a share of the rows is between 0 and 1", split.test),
                "write test = 0.2 to set a fifth aside",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<Feature>, f32, f32), String> {
        let file = format!(
            "dataset = 'v'\ntarget = 'y'\n{text}\n[privacy]\nclip = 1.0\nsteps = 1\n[output]\nmodel = 'm.safetensors'\n"
        );
        let table: toml::Table = toml::from_str(&file).map_err(|error| error.message().to_owned())?;
        let spec = Spec::of_table(table).map_err(|error| error.to_string())?;
        spec.read().map_err(|error| error.to_string())
    }

    #[test]
    fn names_alone_are_read_as_they_always_were() {
        let (features, scale, offset) = read("features = ['x', 'minutes / 60']\nscale = 0.5\noffset = 1").unwrap();
        assert_eq!(features, [Feature::from("x"), Feature::from("minutes / 60")]);
        assert_eq!((scale, offset), (0.5, 1.0));
    }

    /// One-hot places stay 0 and 1, whatever other numbers are multiplied with.
    #[test]
    fn a_scale_for_all_is_done_to_numbers_that_have_none_of_their_own() {
        let (features, scale, _) = read(
            "features = ['x', { column = 'c', as = 'one-hot', keys = ['a', 7, true] }, { column = 'z', scale = 2 }]\nscale = 0.5",
        )
        .unwrap();
        let keys = Some(vec!["a".to_owned(), "7".to_owned(), "true".to_owned()]);
        let encodings: Vec<FeatureEncoding> = features.into_iter().map(|feature| feature.encoding).collect();
        assert_eq!(
            encodings,
            [
                FeatureEncoding::Scaled { scale: 0.5, offset: 0.0 },
                FeatureEncoding::OneHot { keys, other: false },
                FeatureEncoding::Scaled { scale: 2.0, offset: 0.0 }
            ]
        );
        assert_eq!(scale, 1.0);
    }

    #[test]
    fn what_is_missing_is_said_for_all_or_for_one() {
        let (features, ..) =
            read("features = ['x', { column = 'z', missing = 'drop' }]\nmissing = 'indicator'\nscale = 'bounds'")
                .unwrap();
        let said: Vec<_> = features.iter().map(|feature| (feature.indicator, feature.encoding.clone())).collect();
        assert_eq!(
            said,
            [(true, FeatureEncoding::BoundedWhereDeclared), (false, FeatureEncoding::BoundedWhereDeclared)]
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_its_feature() {
        for (text, said) in [
            ("features = [{ column = 'x', keys = ['a'] }]", "`x` has `keys`, which is for as = \"one-hot\""),
            ("features = [{ column = 'x', as = 'hashed' }]", "`width` says not into how many places"),
            ("features = [{ column = 'x', as = 'one-hot', scale = 2 }]", "has `scale`, which is for numbers"),
            ("features = [{ column = 'x', bounds = [0, 1] }]", "has `bounds`, which is for scale = \"bounds\""),
            ("features = [{ column = 'x', scale = 'bounds', offset = 1 }]", "has `offset`"),
            ("features = [{ colum = 'x' }]", "unknown field `colum`"),
            ("features = [{ column = 'x', as = 'onehot' }]", "unknown variant `onehot`"),
            ("features = [3]", "has to be a column, SQL over one row, or a table with `column`"),
            ("features = ['x']\nscale = 'bound'", "has to be a number, or \"bounds\""),
            ("features = ['x']\nscale = 'bounds'\noffset = 1", "`offset` would move that"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}

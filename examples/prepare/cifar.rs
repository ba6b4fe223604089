//! Users who have images of a few elements each: section 4.4 of Asi, Duchi and Javidbakht, and a small one of coloured patches.

use super::dice::Dice;
use super::{Fallible, table};
use std::io::Cursor;
use std::path::Path;
use whit_query::partition::kmeans::{Points, Settings, cluster};

const SIDE: usize = 32;
/// Into how many elements the images are parted, how many users there are at most, and how many images each has.
const ELEMENTS: usize = 100;
const USERS: usize = 8000;
const IMAGES: usize = 100;
/// The first so many users are the smaller experiment.
const FEW: usize = 2000;
/// So many users are written at once.
const AT_ONCE: usize = 50;

/// Images with their labels.
struct Images {
    pixels: Vec<u8>,
    labels: Vec<u8>,
    width: usize,
}

impl Images {
    fn new(width: usize) -> Self {
        Self { pixels: Vec::new(), labels: Vec::new(), width }
    }

    fn of(&self, image: usize) -> &[u8] {
        &self.pixels[image * self.width..(image + 1) * self.width]
    }
}

/// Parts CIFAR-10 into elements by public embeddings, and gives images to users.
pub(crate) fn assign(data: &Path, to: &Path, known: usize) -> Fallible<()> {
    if !(1..=ELEMENTS).contains(&known) {
        return Err(format!("a user has images of 1 to {ELEMENTS} elements, and not of {known}").into());
    }
    let (train, test) = decode(&data.join("cifar10.parquet"))?;
    let element_of = elements(&data.join("cifar10_effnet_lite0_embeddings.parquet"), train.labels.len())?;
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); ELEMENTS];
    for (image, &element) in element_of.iter().enumerate() {
        within[element].push(image);
    }
    let given = Given { users: USERS, few: FEW, known, images: IMAGES, caps: IMAGES };
    write(to, &train, &test, &within, &given)
}

/// The images of both splits, channel by channel.
fn decode(file: &Path) -> Fallible<(Images, Images)> {
    let (mut train, mut test) = (Images::new(3 * SIDE * SIDE), Images::new(3 * SIDE * SIDE));
    let mut interleaved = vec![0; 3 * SIDE * SIDE];
    for batch in table::read(file)? {
        let batch = batch?;
        let (splits, labels) = (table::text_column(&batch, "split")?, table::label_column(&batch, "label")?);
        for ((split, label), webp) in splits.iter().zip(labels).zip(table::byte_column(&batch, "image_webp")?) {
            let mut decoder = image_webp::WebPDecoder::new(Cursor::new(webp))?;
            decoder.read_image(&mut interleaved)?;
            let images = if split == "train" { &mut train } else { &mut test };
            for channel in 0..3 {
                images.pixels.extend(interleaved.iter().skip(channel).step_by(3));
            }
            images.labels.push(label);
        }
    }
    Ok((train, test))
}

/// The element of each training image. The embeddings come of public weights alone, so the partition tells of no image of ours but the image's own place in it.
fn elements(file: &Path, images: usize) -> Fallible<Vec<usize>> {
    let (mut coordinates, mut dimension) = (Vec::new(), 0);
    for batch in table::read(file)? {
        let batch = batch?;
        let (vectors, width) = table::vector_column(&batch, "fcsvd96")?;
        dimension = width;
        for (split, vector) in table::text_column(&batch, "split")?.iter().zip(vectors.chunks_exact(width)) {
            if split == "train" {
                coordinates.extend_from_slice(vector);
            }
        }
    }
    if coordinates.len() != images * dimension {
        return Err("images and embeddings are not of the same number".into());
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let settings = Settings { clusters: u32::try_from(ELEMENTS)?, iterations: 50, seed: 7, threads };
    let found = cluster(Points::new(coordinates, dimension)?, settings, &mut |_| ())?;
    Ok(found.cluster_of.into_iter().map(|element| element as usize).collect())
}

/// Makes patches: the colour of an image is that of its element, and what is drawn in it is its class.
pub(crate) fn make(to: &Path) -> Fallible<()> {
    const SMALL: usize = 12;
    const CLASSES: usize = 5;
    const COLOURS: usize = 4;
    let dice = &mut Dice::new(0xc1fa);
    let mut patches = |many: usize| {
        let mut images = Images::new(3 * SMALL * SMALL);
        let mut within = vec![Vec::new(); CLASSES * COLOURS];
        for image in 0..many {
            let (class, colour) = (dice.below(CLASSES), dice.below(COLOURS));
            let (x0, y0) = (3.0 + 5.0 * dice.uniform(), 3.0 + 5.0 * dice.uniform());
            for channel in 0..3 {
                let ground = [[60, 60, 180], [180, 60, 60], [60, 150, 60], [120, 120, 40]][colour][channel];
                for y in 0..SMALL {
                    for x in 0..SMALL {
                        let (dx, dy) = (x as f64 - x0, y as f64 - y0);
                        let inside = match class {
                            0 => dx.abs() < 1.5,
                            1 => dy.abs() < 1.5,
                            2 => (dx - dy).abs() < 2.0,
                            3 => (dx + dy).abs() < 2.0,
                            _ => dx.hypot(dy) < 3.5,
                        };
                        let light = f64::from(ground) + if inside { 60.0 } else { 0.0 } + 25.0 * dice.normal();
                        images.pixels.push(light.clamp(0.0, 255.0) as u8);
                    }
                }
            }
            images.labels.push(class as u8);
            within[class * COLOURS + colour].push(image);
        }
        (images, within)
    };
    let (train, within) = patches(3000);
    let (test, _) = patches(1000);
    let given = Given { users: 400, few: 100, known: 6, images: 20, caps: 20 };
    write(to, &train, &test, &within, &given)
}

/// Who gets what.
struct Given {
    users: usize,
    /// The first so many users are the smaller experiment.
    few: usize,
    /// Of how many elements a user has images.
    known: usize,
    images: usize,
    /// The most rows that an element of a user may have.
    caps: usize,
}

fn write(to: &Path, train: &Images, test: &Images, within: &[Vec<usize>], given: &Given) -> Fallible<()> {
    let dice = &mut Dice::new(0x05e5);
    let width = train.width;
    // An element without images can be nobody's.
    let filled: Vec<usize> = (0..within.len()).filter(|&element| !within[element].is_empty()).collect();
    let path = to.join("images.parquet");
    let mut writer: Option<table::Writer> = None;
    let mut put = |columns: table::Columns<'_>| -> Fallible<()> {
        match &mut writer {
            Some(writer) => writer.add(columns),
            none => {
                *none = Some(table::Writer::new(&path, columns)?);
                Ok(())
            }
        }
    };
    for start in (0..given.users).step_by(AT_ONCE) {
        let mut rows = Rows::default();
        for user in start..(start + AT_ONCE).min(given.users) {
            let own = dice.choose(given.known.min(filled.len()), filled.len());
            for _ in 0..given.images {
                let element = filled[own[dice.below(own.len())]];
                let image = within[element][dice.below(within[element].len())];
                let n = if user < given.few { given.few } else { given.users };
                rows.add(user, element, ("train", n), train.labels[image], train.of(image))?;
            }
        }
        put(rows.columns(width)?)?;
    }
    // Test images are nobody's: each stands for a user of its own, and none is learned from.
    let all: Vec<usize> = (0..test.labels.len()).collect();
    for some in all.chunks(2000) {
        let mut rows = Rows::default();
        for &image in some {
            rows.add(given.users + image, 0, ("test", 0), test.labels[image], test.of(image))?;
        }
        put(rows.columns(width)?)?;
    }
    writer.ok_or("there are no users")?.close()?;
    let Given { users, few, known, images, caps } = given;
    let declared = format!(
        r#"# {users} users with {images} images each, of {known} elements; images come again. `n` is {few} for the first {few} users and {users} for the others, so
# that `n <= {few}` has the smaller experiment. One file is declared twice: once what a user has of one element is protected, and once all that a user has.
[dataset.images_element]
source = "images.parquet"
unit.user = "user"
unit.element = "element"
unit.public = ["split", "n"]
unit.protect = "element"
unit.caps = {{ elements_per_user = {known}, rows_per_element = {caps} }}
budget.element = {{ epsilon = 8.0, delta = 1e-5, currency = "renyi" }}

[dataset.images_user]
source = "images.parquet"
unit.user = "user"
unit.public = ["split", "n"]
unit.protect = "user"
budget.user = {{ epsilon = 8.0, delta = 1e-5, currency = "renyi" }}
"#
    );
    Ok(std::fs::write(to.join("whit.toml"), declared)?)
}

#[derive(Default)]
struct Rows {
    users: Vec<i32>,
    elements: Vec<i32>,
    splits: Vec<&'static str>,
    ns: Vec<i32>,
    labels: Vec<u8>,
    pixels: Vec<u8>,
}

impl Rows {
    fn add(
        &mut self,
        user: usize,
        element: usize,
        (split, n): (&'static str, usize),
        label: u8,
        pixels: &[u8],
    ) -> Fallible<()> {
        self.users.push(i32::try_from(user)?);
        self.elements.push(i32::try_from(element)?);
        self.splits.push(split);
        self.ns.push(i32::try_from(n)?);
        self.labels.push(label);
        self.pixels.extend_from_slice(pixels);
        Ok(())
    }

    fn columns(self, width: usize) -> Fallible<table::Columns<'static>> {
        Ok(vec![
            ("user", table::whole(self.users)),
            ("element", table::whole(self.elements)),
            ("split", table::texts(&self.splits)),
            ("n", table::whole(self.ns)),
            ("label", table::labels(self.labels)),
            ("pixels", table::images(self.pixels, width)?),
        ])
    }
}

//! The demonstration: a working folder, what is asked in it, and the story that is made of the answers.

mod figures;
mod folder;
pub(crate) mod page;
pub(crate) mod story;

pub(crate) use figures::DemoFigures;
pub(crate) use folder::DemoFolder;

//! Questions over real files, answered through the public interface. One binary, because each links the engine.

mod ask;
mod audit;
mod brute;
mod neighbours;
mod room;
mod small;

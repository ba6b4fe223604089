//! Questions over real files, answered through the public interface. One binary, because each links the engine.

mod ask;
mod room;

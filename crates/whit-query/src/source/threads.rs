//! The engine's own threads, which can be waited for from anywhere: also from inside somebody else's runtime.

use super::Tuning;
use crate::error::QueryError;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// The threads on which the engine runs.
///
/// To wait for them blocks the thread that waits. Where that thread belongs to a runtime of the caller's, nothing panics, but nothing else of the caller's runs on it in the meantime.
pub struct Threads {
    /// Taken when it is dropped, and never before.
    runtime: Option<Runtime>,
}

impl Threads {
    /// Starts as many threads.
    pub fn start(threads: Option<usize>) -> Result<Self, QueryError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(Tuning { memory: None, threads }.threads())
            .thread_name("whit")
            // Plans of deep expressions recurse deeply, and a stack that overflows takes the process with it.
            .thread_stack_size(16 << 20)
            // The words of a panic may hold values of a row.
            .on_thread_start(crate::evaluate::attempt::quiet_thread)
            .enable_all()
            .build()
            .map_err(|error| QueryError::failed(format!("the threads of the engine could not be started: {error}")))?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a future to its end, on the thread of the caller; what it spawns runs on these threads.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let runtime = self.runtime();
        if Handle::try_current().is_err() {
            return runtime.block_on(future);
        }
        // A runtime does not start inside another one, so the future is polled here.
        let _spawning = runtime.enter();
        poll_to_end(tokio::task::unconstrained(future))
    }

    /// Runs a future on one of these threads.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime().spawn(future)
    }

    /// How many there are.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.runtime().metrics().num_workers()
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when this is dropped")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_ok() {
            // To wait for them would stop a thread of somebody's runtime, which panics. Each ends with what it is at.
            runtime.shutdown_background();
        }
    }
}

/// Wakes a thread that waits. The flag outlives a wake-up that whatever is polled takes for its own.
struct Waiting {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The longest that a wake-up is waited for.
const PAUSE: Duration = Duration::from_millis(1);

fn poll_to_end<F: Future>(future: F) -> F::Output {
    let waiting = Arc::new(Waiting { thread: std::thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&waiting));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
        // A wake-up that was left to the scheduler of this thread does not come while it is held up here: it is polled again after a while all the same.
        if !waiting.woken.swap(false, Ordering::Acquire) {
            std::thread::park_timeout(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spawns, waits for others and yields: more often than a runtime lets a task of its own do at once.
    async fn busy() -> u64 {
        let mut sum = 0;
        for i in 0..300 {
            sum += tokio::spawn(async move { i }).await.unwrap();
            tokio::task::yield_now().await;
        }
        sum
    }

    #[test]
    fn there_are_as_many_as_were_asked_for() {
        assert_eq!(Threads::start(Some(3)).unwrap().count(), 3);
        assert_eq!(Threads::start(Some(0)).unwrap().count(), 1);
        assert!(Threads::start(None).unwrap().block_on(async { true }));
    }

    #[test]
    fn they_are_waited_for_and_dropped_inside_of_any_runtime() {
        let expected = 44_850;
        assert_eq!(Threads::start(Some(1)).unwrap().block_on(busy()), expected);
        for mut somebodys in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let somebodys = somebodys.build().unwrap();
            let inside = async {
                let threads = Threads::start(Some(1)).unwrap();
                threads.block_on(busy())
            };
            assert_eq!(somebodys.block_on(inside), expected);
            let spawned = somebodys.spawn(async { Threads::start(Some(2)).unwrap().block_on(busy()) });
            assert_eq!(somebodys.block_on(spawned).unwrap(), expected);
            let blocking = somebodys.spawn_blocking(|| Threads::start(Some(1)).unwrap().block_on(busy()));
            assert_eq!(somebodys.block_on(blocking).unwrap(), expected);
        }
    }
}

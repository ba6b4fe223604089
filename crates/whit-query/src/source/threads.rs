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
use tokio::task::{JoinError, JoinHandle};

/// By which whoever waits for an answer stops the question, from another thread or a handler of signals.
///
/// What is stopped while rows are read ends soon, and nothing of it is released; its charge stays spent, and asking the same again goes on under it. From when all rows are read a question
/// is answered all the same: little is left to do.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Stops what is asked now, and whatever is asked until [`reset`](Self::reset).
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Lets questions be asked again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Whether it was stopped.
    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The threads on which the engine runs.
///
/// To wait for them blocks the thread that waits. Where that thread belongs to a runtime of the caller's, nothing panics, but nothing else of the caller's runs on it in the meantime.
pub struct Threads {
    /// Taken when it is dropped, and never before.
    runtime: Option<Runtime>,
    interrupt: Interrupt,
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
        Ok(Self { runtime: Some(runtime), interrupt: Interrupt::default() })
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

    /// What stops a question that these threads work at.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Whether whoever asks has stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.interrupt.is_stopped()
    }

    /// Runs a future on one of these threads, and waits for it; nothing comes of it where it is stopped before its end.
    pub(crate) fn run<F>(&self, future: F) -> Option<Result<F::Output, JoinError>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        /// Between two looks.
        const PAUSE: Duration = Duration::from_millis(20);
        if self.is_stopped() {
            return None;
        }
        let task = self.spawn(future);
        // Nobody else has the handle, so nobody can stop it.
        if Arc::strong_count(&self.interrupt.0) == 1 {
            return Some(self.block_on(task));
        }
        let (stop, done) = (task.abort_handle(), AtomicBool::new(false));
        let ended = std::thread::scope(|scope| {
            let watch = || {
                while !done.load(Ordering::Acquire) && !self.is_stopped() {
                    std::thread::park_timeout(PAUSE);
                }
                // What has ended is not stopped by this.
                if !done.load(Ordering::Acquire) {
                    stop.abort();
                }
            };
            // Without a thread to watch it, it goes on to its end.
            let watcher = std::thread::Builder::new().spawn_scoped(scope, watch);
            let ended = self.block_on(task);
            done.store(true, Ordering::Release);
            if let Ok(watcher) = watcher {
                watcher.thread().unpark();
            }
            ended
        });
        match ended {
            Err(error) if error.is_cancelled() && self.is_stopped() => None,
            ended => Some(ended),
        }
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
        // A task that was stopped may be at one more block of rows, which nobody waits for.
        if Handle::try_current().is_ok() || self.interrupt.is_stopped() {
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
    fn what_is_stopped_ends_soon_and_nothing_comes_of_it() {
        let threads = Threads::start(Some(2)).unwrap();
        assert_eq!(threads.run(busy()).unwrap().unwrap(), 44_850);
        let interrupt = threads.interrupt().clone();
        assert_eq!(threads.run(busy()).unwrap().unwrap(), 44_850);
        let stopper = std::thread::spawn({
            let interrupt = interrupt.clone();
            move || {
                std::thread::sleep(Duration::from_millis(60));
                interrupt.stop();
            }
        });
        assert!(threads.run(std::future::pending::<u64>()).is_none());
        assert!(threads.run(busy()).is_none(), "it stays stopped");
        stopper.join().unwrap();
        interrupt.reset();
        assert_eq!(threads.run(busy()).unwrap().unwrap(), 44_850);
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

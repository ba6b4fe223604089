//! Ctrl-C while a question is asked: it stops the question, and not the program.

use std::sync::OnceLock;
use whit::query::source::Interrupt;
use whit::session::Session;

/// What a signal stops.
static ASKED: OnceLock<Interrupt> = OnceLock::new();

/// Asks, and lets the first Ctrl-C, or SIGTERM, stop the question. The second ends the program as it does elsewhere, and the question with it, whatever became of that.
pub(crate) fn stoppable<T>(session: &mut Session, ask: impl FnOnce(&mut Session) -> T) -> T {
    let asked = ASKED.get_or_init(|| session.interrupt()); // a process has one session
    asked.reset();
    signals::heed();
    let answer = ask(session);
    signals::leave();
    answer
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library has no signals")]
mod signals {
    use super::ASKED;
    use std::{mem, ptr};

    const STOPPING: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

    extern "C" fn stop(_: libc::c_int) {
        // A cell that was filled before, and an atomic flag: neither locks or allocates, so a handler may touch them.
        if let Some(asked) = ASKED.get() {
            asked.stop();
        }
    }

    /// From now on these signals are heeded, each once.
    pub(super) fn heed() {
        change(stop as *const () as libc::sighandler_t, libc::SA_RESTART | libc::SA_RESETHAND);
    }

    /// They end the program again.
    pub(super) fn leave() {
        change(libc::SIG_DFL, 0);
    }

    fn change(to: libc::sighandler_t, flags: libc::c_int) {
        for signal in STOPPING {
            // SAFETY: `sigaction` is a plain structure, valid as zeros, and both pointers lead to one that lives; the handler does nothing but what handlers may.
            unsafe {
                let mut before: libc::sigaction = mem::zeroed();
                // What whoever started this wants ignored stays so.
                if libc::sigaction(signal, ptr::null(), &raw mut before) != 0 || before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut action: libc::sigaction = mem::zeroed();
                (action.sa_sigaction, action.sa_flags) = (to, flags);
                libc::sigemptyset(&raw mut action.sa_mask);
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

#[cfg(not(unix))]
mod signals {
    pub(super) fn heed() {}

    pub(super) fn leave() {}
}

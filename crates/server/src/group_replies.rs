//! Group requests whose answer comes later: a token for the coordinator, a future for the connection.

use std::collections::HashMap;

use anabranch_core::group::{Answer, Reply, Token};
use anabranch_core::ids::Lsn;
use anabranch_wire::ErrorCode;
use tokio::sync::oneshot;

/// An answer, and the log entry that it depends on.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) answer: Answer,
    pub(crate) after: Lsn,
}

impl Due {
    /// The error in the answer.
    pub(crate) fn error(&self) -> ErrorCode {
        match &self.answer {
            Answer::Join(answer) => answer.error,
            Answer::Sync(answer) => answer.error,
        }
    }
}

/// Requests that wait, by token.
#[derive(Debug, Default)]
pub(crate) struct GroupReplies {
    waiting: HashMap<Token, oneshot::Sender<Due>>,
}

/// The other end of a token.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) token: Token,
    receiver: oneshot::Receiver<Due>,
}

impl GroupReplies {
    /// Where the answer to a token will be.
    pub(crate) fn wait(&mut self, token: Token) -> Waiting {
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(token, sender);
        Waiting { token, receiver }
    }

    /// Hands out answers that depend on `after`.
    pub(crate) fn deliver(&mut self, replies: Vec<Reply>, after: Lsn) {
        for Reply { token, answer } in replies {
            if let Some(sender) = self.waiting.remove(&token) {
                // A client that has gone meanwhile is no loss.
                let _ = sender.send(Due { answer, after });
            }
        }
    }

    /// Forgets a token; whether it was still waited for.
    pub(crate) fn forget(&mut self, token: Token) -> bool {
        self.waiting.remove(&token).is_some()
    }

    /// Lets all that wait go without an answer.
    pub(crate) fn abandon(&mut self) {
        self.waiting.clear();
    }
}

impl Waiting {
    /// The answer, if it is there already.
    pub(crate) fn ready(mut self) -> Result<Due, Self> {
        self.receiver.try_recv().map_err(|_| self)
    }

    /// The answer when it comes; `None` if the server ends before.
    pub(crate) async fn due(self) -> Option<Due> {
        self.receiver.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::group::SyncAnswer;

    #[tokio::test]
    async fn each_token_gets_its_answer_at_once_later_or_never() {
        let mut replies = GroupReplies::default();
        let [first, second, third] = [0, 1, 2].map(Token);
        let (at_once, later) = (replies.wait(first), replies.wait(second));
        let never = replies.wait(third);
        let answer = |token| Reply {
            token,
            answer: Answer::Sync(SyncAnswer::default()),
        };
        replies.deliver(vec![answer(first)], Lsn(4));
        assert_eq!(at_once.ready().unwrap().after, Lsn(4));
        let later = later.ready().unwrap_err();
        replies.deliver(vec![answer(second)], Lsn(5));
        assert_eq!(later.due().await.unwrap().after, Lsn(5));
        replies.abandon();
        assert!(never.due().await.is_none());
        assert!(replies.waiting.is_empty());
    }
}

//! A script in the interpreter: the loop that passes answers to it, and its end.

use rquickjs::{Ctx, Function, Object, Promise, Value, promise::PromiseState};

use super::{
    complaint::{self, Explained},
    conversation::Conversation,
    engine::{Rejections, options},
    source::{FILE, Source},
};
use crate::{
    code::Answer,
    protocol::{Answered, Code, Failed},
};

/// A script in its interpreter.
pub(super) struct Script<'js, 'c> {
    pub(super) ctx: Ctx<'js>,
    /// The object that the prelude returned.
    pub(super) prelude: Object<'js>,
    pub(super) source: Source,
    pub(super) conversation: &'c Conversation,
    pub(super) rejections: Rejections,
}

impl<'js> Script<'js, '_> {
    /// Runs it, and sends its value.
    pub(super) fn run(self, code: &Code) -> Result<(), Failed> {
        self.begin(code)?;
        let promise = self.start()?;
        loop {
            while self.ctx.execute_pending_job() {
                self.conversation.stopped().map_or(Ok(()), Err)?;
            }
            self.conversation.stopped().map_or(Ok(()), Err)?;
            let is_idle = self.conversation.is_idle();
            match promise.state() {
                PromiseState::Rejected => return Err(self.rejection(&promise)),
                PromiseState::Pending if is_idle => {
                    return Err(self.unseen().unwrap_or(Failed::NeverEnds));
                }
                PromiseState::Resolved if is_idle => return self.finish(&promise),
                // A script that has returned still waits for its calls.
                _ => self.settle(self.conversation.next_answer()?)?,
            }
        }
    }

    /// Gives the script its input, the time and the random seed.
    fn begin(&self, code: &Code) -> Result<(), Failed> {
        let begun = || -> rquickjs::Result<()> {
            let input = match &code.input[..] {
                [] => Value::new_undefined(self.ctx.clone()),
                json => self.ctx.json_parse(json)?,
            };
            let [low, high] = [code.seed & 0xffff_ffff, code.seed >> 32].map(|half| u32::try_from(half).ok());
            #[expect(clippy::cast_precision_loss, reason = "a time of JavaScript is no larger")]
            self.ours("begin")?.call((code.now as f64, low, high, input))
        };
        begun().map_err(|_| self.failure(&self.ctx.catch()))
    }

    /// A function of the prelude.
    fn ours(&self, name: &str) -> rquickjs::Result<Function<'js>> {
        self.prelude.get(name)
    }

    /// Compiles and calls the script.
    fn start(&self) -> Result<Promise<'js>, Failed> {
        let compiled = self.ctx.eval_with_options(self.source.compiled.as_str(), options(FILE));
        let function: Function<'js> = compiled.map_err(|_| {
            let explained = self.explained(&self.ctx.catch());
            complaint::of_compiling(explained.as_ref(), &self.source)
        })?;
        function.call(()).map_err(|_| self.failure(&self.ctx.catch()))
    }

    /// Gives the script an answer.
    fn settle(&self, answered: Answered) -> Result<(), Failed> {
        let Answered { number, answer } = answered;
        let undefined = || Value::new_undefined(self.ctx.clone());
        let parsed = |json: &[u8]| self.ctx.json_parse(json);
        let settled = || -> rquickjs::Result<()> {
            if answer == Answer::Unknown {
                return self.ours("settleUnknown")?.call((number,));
            }
            let settle = self.ours("settle")?;
            match &answer {
                Answer::Result { raw, read } => settle.call((number, false, parsed(raw)?, *read as u32)),
                Answer::Value(value) => settle.call((number, false, parsed(value)?)),
                Answer::Error { message, code, result } => {
                    let result = result.as_deref().map_or_else(|| Ok(undefined()), parsed)?;
                    settle.call((number, true, message.as_str(), code.as_str(), result))
                }
                Answer::Unknown => Ok(()),
            }
        };
        settled().map_err(|_| self.failure(&self.ctx.catch()))
    }

    /// The failure of a promise that nobody handles.
    fn unseen(&self) -> Option<Failed> {
        let reason = self.rejections.borrow().first().map(|(_, reason)| reason.clone())?;
        let reason = reason.restore(&self.ctx).ok()?;
        Some(complaint::of_nobody(self.failure(&reason)))
    }

    /// Sends the value of the script.
    fn finish(&self, promise: &Promise<'js>) -> Result<(), Failed> {
        self.unseen().map_or(Ok(()), Err)?;
        let written = || -> rquickjs::Result<Value<'js>> {
            let value: Value<'js> =
                promise.result().unwrap_or_else(|| Ok(Value::new_undefined(self.ctx.clone())))?;
            self.ours("finish")?.call((value,))
        };
        let written = written().map_err(|_| self.failure(&self.ctx.catch()))?;
        if let Some(lost) = written.as_object() {
            return Err(complaint::of_value(lost.get("what").unwrap_or_default()));
        }
        let text = written.get::<String>().map_err(|_| self.failure(&self.ctx.catch()))?;
        // The value may have been computed by getters.
        self.conversation.stopped().map_or(Ok(()), Err)?;
        self.conversation.finish(&text)
    }

    fn rejection(&self, promise: &Promise<'js>) -> Failed {
        // This throws the reason.
        _ = promise.result::<Value<'js>>();
        self.failure(&self.ctx.catch())
    }

    fn failure(&self, exception: &Value<'js>) -> Failed {
        // Without enough memory for an exception, the engine throws this instead. No author would.
        if exception.is_null() {
            return Failed::OutOfMemory;
        }
        complaint::of_running(self.explained(exception), &self.source)
    }

    fn explained(&self, exception: &Value<'js>) -> Option<Explained> {
        let explained = || -> rquickjs::Result<Explained> {
            let object: Object<'js> = self.ours("explain")?.call((exception.clone(),))?;
            Ok(Explained {
                message: object.get("message")?,
                stack: object.get("stack")?,
                call: u32::try_from(object.get::<_, i64>("call")?).ok(),
                is_dry: object.get("isDry")?,
            })
        };
        let explained = explained();
        // An exception that cannot be shown leaves another one behind.
        if explained.is_err() {
            _ = self.ctx.catch();
        }
        explained.ok()
    }
}

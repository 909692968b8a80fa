//! The interpreter: `QuickJS` with our prelude and limits.

use std::{
    cell::{OnceCell, RefCell},
    mem::ManuallyDrop,
    rc::Rc,
    time::Duration,
};

use rquickjs::{Context, Ctx, Exception, Function, Object, Persistent, Runtime, Value, context::EvalOptions};

use super::{
    conversation::{Conversation, Refused},
    script::Script,
    source::Source,
};
use crate::{
    child::STACK,
    protocol::{Asked, Code, Failed},
};

/// The functions for scripts. Its stack lines are left out of messages.
const PRELUDE: &str = concat!(
    "(function (hostCall, hostText) {\n\"use strict\";\n",
    include_str!("prelude/references.js"),
    include_str!("prelude/json.js"),
    include_str!("prelude/placeholder.js"),
    include_str!("prelude/tools.js"),
    include_str!("prelude/globals.js"),
    include_str!("prelude/end.js"),
    "})"
);

/// An interpreter without a script. It is never dropped: the process ends instead.
pub(in crate::child) struct Engine {
    runtime: ManuallyDrop<Runtime>,
    context: ManuallyDrop<Context>,
    prelude: ManuallyDrop<Persistent<Object<'static>>>,
    /// Empty until there is a script.
    conversation: Rc<OnceCell<Conversation>>,
    rejections: Rejections,
}

/// Rejected promises that nobody handles, with the reasons.
pub(super) type Rejections = Rc<RefCell<Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>>>;

impl Engine {
    pub(in crate::child) fn new() -> Result<Self, Failed> {
        Self::made().map_err(|error| Failed::Internal(format!("the interpreter does not start: {error}")))
    }

    fn made() -> rquickjs::Result<Self> {
        let runtime = ManuallyDrop::new(Runtime::new()?);
        // The rest is for functions that do not check the stack.
        runtime.set_max_stack_size(STACK / 4);
        let conversation = Rc::<OnceCell<Conversation>>::default();
        let asked = Rc::clone(&conversation);
        runtime
            .set_interrupt_handler(Some(Box::new(move || asked.get().is_some_and(Conversation::must_stop))));
        let rejections = Rejections::default();
        let list = Rc::clone(&rejections);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                track(&list, &ctx, promise, reason, is_handled);
            },
        )));
        let context = ManuallyDrop::new(Context::full(&runtime)?);
        let prelude = context.with(|ctx| prelude(&ctx, &conversation))?;
        Ok(Self { runtime, context, prelude: ManuallyDrop::new(prelude), conversation, rejections })
    }

    /// Runs a script to its end. Then its value was sent; `Err` is the failure to send.
    pub(in crate::child) fn run(self, code: &Code, memory: u64, output: u64) -> Result<(), Failed> {
        let output = usize::try_from(output).unwrap_or(usize::MAX);
        let compute = Duration::from_millis(code.compute);
        self.runtime.set_memory_limit(usize::try_from(memory).unwrap_or(usize::MAX));
        let conversation = self.conversation.get_or_init(|| Conversation::new(output, code.calls, compute));
        let source = Source::parse(&code.code).map_err(Failed::Syntax)?;
        let ended = self.context.with(|ctx| {
            let prelude = ManuallyDrop::into_inner(self.prelude);
            let prelude = prelude.restore(&ctx).map_err(|error| Failed::Internal(error.to_string()))?;
            Script { ctx, prelude, source, conversation, rejections: self.rejections }.run(code)
        });
        ended.map_err(|failed| {
            conversation.flush();
            // A limit counts, whatever the script caught or broke before it.
            conversation.stopped().unwrap_or(failed)
        })
    }
}

/// Calls the prelude. Only we have access to the object that it returns.
fn prelude<'js>(
    ctx: &Ctx<'js>,
    conversation: &Rc<OnceCell<Conversation>>,
) -> rquickjs::Result<Persistent<Object<'static>>> {
    let asked = Rc::clone(conversation);
    let call = Function::new(ctx.clone(), move |ctx: Ctx<'js>, code, server, tool, arguments: String| {
        let conversation = asked.get().ok_or_else(|| thrown(&ctx, &Refused::Stopped))?;
        let asked = Asked { code, server, tool };
        conversation.call(asked, &arguments).map_err(|refused| thrown(&ctx, &refused))
    })?;
    let told = Rc::clone(conversation);
    let text = Function::new(ctx.clone(), move |ctx: Ctx<'js>, piece: String| {
        let conversation = told.get().ok_or_else(|| thrown(&ctx, &Refused::Stopped))?;
        conversation.text(&piece).map_err(|refused| thrown(&ctx, &refused))
    })?;
    let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options("prelude"))?;
    let prelude: Object<'js> = prelude.call((call, text))?;
    Ok(Persistent::save(ctx, prelude))
}

fn track<'js>(list: &Rejections, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
    let mut list = list.borrow_mut();
    if is_handled {
        list.retain(|(other, _)| other.clone().restore(ctx).is_ok_and(|other| other != promise));
    } else {
        list.push((Persistent::save(ctx, promise), Persistent::save(ctx, reason)));
    }
}

/// The exception for a call that cannot be made.
fn thrown(ctx: &Ctx<'_>, refused: &Refused) -> rquickjs::Error {
    match refused {
        Refused::Stopped => Exception::throw_internal(ctx, "the run has ended"),
        Refused::LongName => Exception::throw_type(ctx, "no name of a server or tool is so long"),
        Refused::LargeArguments(limit) => {
            Exception::throw_range(ctx, &format!("the arguments of a call have more than {limit} bytes"))
        }
    }
}

pub(super) fn options(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(file.to_owned());
    options
}

//! An agent run whose modern host has been asked something: nothing goes on until its next request.

use bytes::Bytes;

use super::{
    Course,
    host::{Place, Question, Returned},
};
use crate::{context::RequestContext, suspended::PausedRun};

pub(super) struct Paused {
    pub(super) question: Question,
    pub(super) course: Course,
}

/// Answers the host's request with the question, and keeps the run for its next one.
pub(super) fn pause(context: RequestContext<'_>, paused: Paused) {
    let (method, params) = (paused.question.method, paused.question.params.clone());
    context.gateway().suspended.pause(context, method, &params, Box::new(paused));
}

impl PausedRun for Paused {
    fn resume(self: Box<Self>, context: RequestContext<'_>, answer: Option<Bytes>) {
        let Some(answer) = answer else { return pause(context, *self) };
        let Self { question, course } = *self;
        let _ = question.answer.send(Returned { place: Place::of(context), answer });
        course.follow(context);
    }
}

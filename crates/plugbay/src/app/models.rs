//! The language models in the settings.

use std::sync::Arc;

use plugbay_downstream::{
    agent::Terms,
    ranking::{Choice, Chosen},
};
use plugbay_model::RemoteModel;

use crate::config::{ModelSource, NaturalLanguage, SearchModel, Settings};

/// The model that ranks search hits.
pub fn choice(settings: &Settings) -> Option<Choice> {
    let SearchModel { source, deadline } = settings.search.model.clone()?;
    Some(Choice { model: chosen(source), deadline })
}

/// The model for `natural_language`, with its limits.
pub(super) fn terms(settings: &Settings) -> Option<Terms> {
    let NaturalLanguage { model, limits, instructions, .. } = settings.natural_language.clone()?;
    Some(Terms { model: chosen(model), limits, unasked: settings.unasked, instructions })
}

fn chosen(source: ModelSource) -> Chosen {
    match source {
        ModelSource::Remote(endpoint) => Chosen::Model(Arc::new(RemoteModel::new(endpoint))),
        ModelSource::Host => Chosen::Host,
    }
}

//! A model behind a URL: one request, and its response as a body or as a stream of events.

#[cfg(test)]
mod tests;

use std::{sync::OnceLock, time::Duration};

use plugbay_core::{
    model::{Model, ModelError, Prompt, Reply, ReplyFuture, TextListener},
    wire::{Incoming, SseDecoder, SseItem},
};
use reqwest::{
    Client, Response, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::time::timeout;

use crate::{
    anthropic::Anthropic,
    assembly::Assembly,
    client::{self, unreachable},
    endpoint::{Endpoint, Provider},
    failure,
    gemini::Gemini,
    key::{Key, KeyCache},
    openai::OpenAi,
};

/// The longest response that is read, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;
/// The longest error response that is read, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// The wire format of one provider.
pub(crate) trait WireFormat: Sync {
    /// The path below the base address.
    fn path(&self, model: &str, streamed: bool) -> String;

    /// The header that carries the key.
    fn key_header(&self, secret: &str) -> (&'static str, String);

    fn other_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn body(&self, request: &ModelRequest<'_>) -> Vec<u8>;

    /// Reads a whole response.
    fn read_body(&self, body: &[u8], reply: &mut Assembly) -> Result<(), ModelError>;

    /// Reads the data of one event.
    fn read_event(&self, data: &[u8], reply: &mut Assembly) -> Result<(), ModelError>;
}

/// One request to a model.
pub(crate) struct ModelRequest<'a> {
    pub(crate) model: &'a str,
    pub(crate) prompt: &'a Prompt,
    pub(crate) streamed: bool,
    /// Whether the request goes to the provider itself, not to a compatible service.
    pub(crate) original: bool,
}

#[derive(Debug)]
pub struct RemoteModel {
    endpoint: Endpoint,
    key_cache: KeyCache,
    /// Built for the first request, because most sessions send none.
    client: OnceLock<Client>,
}

impl RemoteModel {
    pub fn new(endpoint: Endpoint) -> Self {
        let key_cache = KeyCache::new(endpoint.key.clone());
        Self { endpoint, key_cache, client: OnceLock::new() }
    }

    async fn fetch(
        &self,
        prompt: Prompt,
        heard: Option<TextListener>,
        key: Option<&Key>,
    ) -> Result<Reply, ModelError> {
        let format = format(self.endpoint.provider);
        let response = self.send(format, &prompt, heard.is_some(), key).await?;
        let mut reply = Assembly::default();
        let mut heard = heard.unwrap_or_else(|| Box::new(|_| {}));
        // Some providers always stream, and some never do, whatever the request says.
        if is_stream(&response) {
            self.listen(format, response, &mut reply, heard).await?;
        } else {
            format.read_body(&self.read(response, LONGEST).await?, &mut reply)?;
            heard(&reply.text);
        }
        reply.finish()
    }

    /// Sends the request and returns a response with a success status.
    async fn send(
        &self,
        format: &dyn WireFormat,
        prompt: &Prompt,
        streamed: bool,
        key: Option<&Key>,
    ) -> Result<Response, ModelError> {
        let (model, base) = (&self.endpoint.model, self.endpoint.address());
        let url = Url::parse(&format!("{base}{}", format.path(model, streamed)))
            .map_err(|error| ModelError::Unreachable(format!("its address is not a URL: {error}")))?;
        let request = ModelRequest { model, prompt, streamed, original: self.endpoint.is_original() };
        let client = self.client(&url)?.post(url).headers(headers(format, key)?).body(format.body(&request));
        let response = self.with_timeout(client.send()).await?.map_err(|error| unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = self.read(response, LONGEST_ERROR).await.unwrap_or_default();
        Err(failure::of_status(status, &headers, &body, key))
    }

    fn client(&self, url: &Url) -> Result<&Client, ModelError> {
        if self.client.get().is_none() {
            let _ = self.client.set(client::build(url)?);
        }
        self.client.get().ok_or_else(|| ModelError::Unreachable("there is no HTTP client".to_owned()))
    }

    async fn read(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) =
            self.with_timeout(response.chunk()).await?.map_err(|error| unreachable(&error))?
        {
            if body.len() + chunk.len() > limit {
                return Err(ModelError::Malformed(format!("it is longer than {limit} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    async fn listen(
        &self,
        format: &dyn WireFormat,
        mut response: Response,
        reply: &mut Assembly,
        mut heard: TextListener,
    ) -> Result<(), ModelError> {
        let mut events = SseDecoder::new(LONGEST);
        while !reply.done {
            let data = match events.take() {
                Some(SseItem::Event { data: Incoming::Message(data), .. }) => data,
                Some(SseItem::Event { .. }) => {
                    return Err(ModelError::Malformed("an event is too long, or no text".to_owned()));
                }
                Some(SseItem::Retry(_)) => continue,
                None => match self.with_timeout(response.chunk()).await? {
                    Ok(Some(chunk)) => {
                        events.push(&chunk);
                        continue;
                    }
                    Ok(None) | Err(_) if reply.is_finished() => break,
                    Ok(None) | Err(_) => return Err(ModelError::BrokenOff),
                },
            };
            let known = reply.text.len();
            format.read_event(&data, reply)?;
            if reply.text.len() > LONGEST {
                return Err(ModelError::Malformed(format!("it is longer than {LONGEST} bytes")));
            }
            if reply.text.len() > known {
                heard(&reply.text[known..]);
            }
        }
        Ok(())
    }

    async fn with_timeout<T>(&self, wait: impl Future<Output = T>) -> Result<T, ModelError> {
        let after: Duration = self.endpoint.patience;
        timeout(after, wait).await.map_err(|_| ModelError::Timeout { after })
    }
}

impl Model for RemoteModel {
    fn ask(&self, prompt: Prompt, heard: Option<TextListener>) -> ReplyFuture<'_> {
        Box::pin(async move {
            let key = self.key_cache.key().await.map_err(|trouble| failure::redacted(trouble, None))?;
            let reply = self.fetch(prompt, heard, key.as_ref()).await;
            if let Err(ModelError::Unauthorised { .. }) = &reply {
                self.key_cache.forget();
            }
            reply.map_err(|trouble| failure::redacted(trouble, key.as_ref()))
        })
    }
}

fn headers(format: &dyn WireFormat, key: Option<&Key>) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in format.other_headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = key {
        let (name, value) = format.key_header(key.secret());
        let mut value = HeaderValue::from_str(&value).map_err(|_| ModelError::Unauthorised {
            key: key.from().to_owned(),
            message: "it holds characters that no header can carry".to_owned(),
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

fn format(provider: Provider) -> &'static dyn WireFormat {
    match provider {
        Provider::Anthropic => &Anthropic,
        Provider::OpenAi => &OpenAi,
        Provider::Gemini => &Gemini,
    }
}

/// Parses the JSON of a provider.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelError> {
    serde_json::from_slice(json).map_err(|error| ModelError::Malformed(error.to_string()))
}

/// Writes the JSON of a request. Our own structs can always be serialized.
pub(crate) fn render(body: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

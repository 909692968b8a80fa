//! The answers of a scripted site if nothing else is programmed.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hyper::HeaderMap;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, jwk::Jwk};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Answer, Place, Received, Script,
    grants::{Code, Form, Issued},
};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

impl Place {
    pub(super) fn route(&self, received: &Received, headers: &HeaderMap) -> Answer {
        let now = self.time.load(Ordering::SeqCst);
        let script = &mut *self.script.lock().unwrap();
        match (received.method.as_str(), received.path.as_str()) {
            (_, "/mcp") => self.mcp(script, headers, now),
            ("GET", "/.well-known/oauth-protected-resource/mcp") => {
                let document = json!({
                    "resource": format!("{}/mcp", self.origin), "authorization_servers": [self.origin],
                });
                Answer::json(200, &patched(document, &script.resource))
            }
            ("GET", "/.well-known/oauth-authorization-server") => {
                Answer::json(200, &patched(self.metadata(), &script.server))
            }
            ("GET", "/authorize") => authorize(script, &form(&received.query)),
            ("POST", "/register") => register(script, &received.body),
            ("POST", "/token") => self.token(script, &form(&received.body), headers, now),
            ("POST", "/revoke") => {
                script.grants.revoke(&form(&received.body)["token"]);
                Answer::json(200, &json!({}))
            }
            _ => Answer::text(404, "text/plain", "not here"),
        }
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.origin);
        json!({
            "issuer": self.origin, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"), "revocation_endpoint": at("/revoke"),
            "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
        })
    }

    fn mcp(&self, script: &Script, headers: &HeaderMap, now: u64) -> Answer {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
        let usual = || format!("Bearer resource_metadata=\"{metadata}\"");
        let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
        let token = authorization.and_then(|value| value.split_once(' ')).map(|(_, token)| token);
        let challenge = |status: u16, challenge: String| {
            let mut answer = Answer::json(status, &json!({}));
            answer.headers.push(("www-authenticate", challenge));
            answer
        };
        let access = token.and_then(|token| script.grants.check(token, now)).filter(|_| !script.rejects_all);
        let Some(access) = access else {
            return challenge(401, script.challenge.clone().unwrap_or_else(usual));
        };
        if let Some(bound) = &access.key {
            let proof = prove(headers, "POST", &format!("{}/mcp", self.origin), token);
            let nonce = script.grants.nonce.as_deref();
            match proof {
                Ok(proof) if nonce.is_some() && proof.nonce.as_deref() != nonce => {
                    let mut answer = challenge(401, "DPoP error=\"use_dpop_nonce\"".to_owned());
                    answer.headers.push(("dpop-nonce", nonce.unwrap_or_default().to_owned()));
                    return answer;
                }
                Ok(proof)
                    if proof.key == *bound && authorization.unwrap_or_default().starts_with("DPoP ") => {}
                _ => return challenge(401, "DPoP error=\"invalid_dpop_proof\"".to_owned()),
            }
        }
        let has = |needed: &String| access.scopes.split(' ').any(|scope| scope == needed);
        if script.needs.iter().all(has) {
            return Answer::json(200, &json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
        }
        challenge(403, format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", script.needs.join(" ")))
    }

    fn token(&self, script: &mut Script, form: &Form, headers: &HeaderMap, now: u64) -> Answer {
        let rejected = |code: &str| Answer::json(400, &json!({ "error": code }));
        let Some(client) = authenticated(script, form, headers) else {
            return Answer::json(401, &json!({"error": "invalid_client"}));
        };
        let mut key = None;
        if headers.contains_key("dpop") {
            let Ok(proof) = prove(headers, "POST", &format!("{}/token", self.origin), None) else {
                return rejected("invalid_dpop_proof");
            };
            if script.grants.nonce != proof.nonce && script.grants.nonce.is_some() {
                let mut answer = rejected("use_dpop_nonce");
                answer.headers.push(("dpop-nonce", script.grants.nonce.clone().unwrap_or_default()));
                return answer;
            }
            key = Some(proof.key);
        }
        let grants = &mut script.grants;
        let issued = match form.get("grant_type").map(String::as_str) {
            Some("authorization_code") => {
                let verifier = form.get("code_verifier").cloned().unwrap_or_default();
                let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
                grants.redeem(&client, form, &challenge, now, key)
            }
            Some("refresh_token") => grants.refresh(&client, form, now, key),
            Some("client_credentials" | JWT_BEARER | TOKEN_EXCHANGE) => {
                Ok(grants.machine(&client, form, now, key))
            }
            _ => Err("unsupported_grant_type"),
        };
        match issued {
            Ok(issued) => Answer::json(200, &tokens(&issued, grants.life)),
            Err(code) => rejected(code),
        }
    }
}

fn tokens(issued: &Issued, life: u64) -> Value {
    let kind = if issued.key.is_some() { "DPoP" } else { "Bearer" };
    let mut body = json!({ "access_token": issued.access, "token_type": kind, "expires_in": life });
    if let Some(refresh) = &issued.refresh {
        body["refresh_token"] = refresh.as_str().into();
    }
    if !issued.scopes.is_empty() {
        body["scope"] = issued.scopes.as_str().into();
    }
    body
}

/// The id of the client, if the request proves it.
fn authenticated(script: &Script, form: &Form, headers: &HeaderMap) -> Option<String> {
    let basic = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let (id, secret) = match basic {
        Some(basic) => {
            let pair = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
            let (id, secret) = pair.split_once(':')?;
            (id.to_owned(), Some(secret.to_owned()))
        }
        None => (form.get("client_id")?.clone(), form.get("client_secret").cloned()),
    };
    let expected = script.grants.clients.get(&id)?;
    let proved = *expected == secret || (expected.is_none() && form.contains_key("client_assertion"));
    proved.then_some(id)
}

fn authorize(script: &mut Script, form: &Form) -> Answer {
    let get = |name: &str| form.get(name).cloned().unwrap_or_default();
    if !script.grants.clients.contains_key(&get("client_id")) {
        return Answer::text(400, "text/plain", "no such client");
    }
    let (redirect_uri, challenge) = (get("redirect_uri"), get("code_challenge"));
    let code = Code { client: get("client_id"), redirect_uri, challenge, scopes: get("scope") };
    let code = script.grants.code(code);
    Answer::redirect(302, &format!("{}?code={code}&state={}", get("redirect_uri"), get("state")))
}

fn register(script: &mut Script, body: &str) -> Answer {
    let mut client: Value = serde_json::from_str(body).unwrap();
    let (id, secret) = script.grants.register();
    client["client_id"] = id.into();
    if let Some(secret) = secret {
        client["client_secret"] = secret.into();
        client["token_endpoint_auth_method"] = "client_secret_post".into();
    }
    Answer::json(201, &client)
}

/// A proof of possession with a valid signature.
struct Proved {
    key: String,
    nonce: Option<String>,
}

fn prove(headers: &HeaderMap, method: &str, url: &str, token: Option<&str>) -> Result<Proved, ()> {
    let proof = headers.get("dpop").and_then(|value| value.to_str().ok()).ok_or(())?;
    let part = proof.split('.').next().ok_or(())?;
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).map_err(|_| ())?).map_err(|_| ())?;
    let key: Jwk = serde_json::from_value(header["jwk"].clone()).map_err(|_| ())?;
    let mut validation = Validation::new(Algorithm::ES256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    let decoding = DecodingKey::from_jwk(&key).map_err(|_| ())?;
    let claims = jsonwebtoken::decode::<Value>(proof, &decoding, &validation).map_err(|_| ())?.claims;
    let ath = token.map(|token| URL_SAFE_NO_PAD.encode(Sha256::digest(token)));
    let fits = claims["htm"] == method && claims["htu"] == url && claims["ath"].as_str() == ath.as_deref();
    let nonce = claims["nonce"].as_str().map(str::to_owned);
    fits.then(|| Proved { key: header["jwk"].to_string(), nonce }).ok_or(())
}

fn form(text: &str) -> Form {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect::<BTreeMap<_, _>>()
}

/// The document with other fields; `null` removes one.
fn patched(mut document: Value, patch: &Value) -> Value {
    let fields = document.as_object_mut().expect("documents are objects");
    for (name, value) in patch.as_object().expect("a patch is an object") {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    document
}

//! Tokens, with the answer to each.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::issuer::{Issuer, Private, RESOURCE, Recipe, Signature, now};

/// One request: its `Authorization` headers, and the expected answer.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) authorizations: Vec<String>,
    /// The query after `/mcp`.
    pub(super) query: String,
    pub(super) status: u16,
    /// The error code in the challenge, and a part of its description; empty if there is none.
    pub(super) error: (&'static str, &'static str),
}

/// The keys that the issuer of the table publishes.
pub(super) fn keys() -> Vec<Value> {
    let none = json!({});
    vec![
        Private::RsaOne.public("rsa-1", &none),
        Private::RsaTwo.public("rsa-2", &none),
        Private::Ec.public("ec-1", &none),
        Private::Ed.public("ed-1", &json!({ "alg": "EdDSA", "use": "sig", "key_ops": ["verify"] })),
        Private::RsaOne.public("enc-1", &json!({ "use": "enc" })),
        Private::RsaOne.public("ps-only", &json!({ "alg": "PS256" })),
        Private::RsaOne.public("wrap-1", &json!({ "key_ops": ["wrapKey"] })),
        Private::RsaShort.public("short-1", &none),
        json!({ "kty": "oct", "kid": "oct-1", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "HS256" }),
        json!({ "kty": "RSA", "kid": "broken-1" }),
        json!("no key at all"),
    ]
}

const INVALID: &str = "invalid_token";
const MALFORMED: &str = "no valid JWT";
const NO_ALGORITHM: &str = "algorithm is not allowed";
const FORGED: &str = "signature of the token is wrong";
const NO_KEY: &str = "no such key";
const EXPIRED: &str = "has expired";
const EARLY: &str = "not valid yet";
const AUDIENCE: &str = "another audience";
const ISSUER: &str = "another issuer";
const KIND: &str = "no access token";
const TIME: &str = "a time in the token is wrong";
const CALLER: &str = "does not name its caller";

struct Table<'i> {
    issuer: &'i Issuer,
    rows: Vec<Row>,
}

impl Table<'_> {
    fn add(
        &mut self,
        name: &'static str,
        authorization: &str,
        status: u16,
        error: (&'static str, &'static str),
    ) {
        let authorizations = vec![authorization.to_owned()];
        self.rows.push(Row { name, authorizations, query: String::new(), status, error });
    }

    fn good(&mut self, name: &'static str, token: &Recipe) {
        self.add(name, &format!("Bearer {}", token.token()), 200, ("", ""));
    }

    fn bad(&mut self, name: &'static str, token: &Recipe, why: &'static str) {
        self.bad_text(name, &token.token(), why);
    }

    fn bad_text(&mut self, name: &'static str, token: &str, why: &'static str) {
        self.add(name, &format!("Bearer {token}"), 401, (INVALID, why));
    }

    /// A valid token with these claims.
    fn with(&self, claims: &Value) -> Recipe {
        self.issuer.good().claims(claims)
    }
}

pub(super) fn rows(issuer: &Issuer) -> Vec<Row> {
    let mut table = Table { issuer, rows: Vec::new() };
    transport(&mut table);
    times(&mut table);
    audiences_and_issuers(&mut table);
    algorithms(&mut table);
    keys_of_tokens(&mut table);
    forms(&mut table);
    kinds_and_callers(&mut table);
    table.rows
}

fn transport(table: &mut Table<'_>) {
    let token = table.issuer.good().token();
    table.good("good token", &table.issuer.good());
    table.add("lower-case scheme", &format!("bearer {token}"), 200, ("", ""));
    table.add("upper-case scheme, spaces", &format!("BEARER   {token}"), 200, ("", ""));
    table.add("no token", "", 401, ("", ""));
    table.add("scheme alone", "Bearer", 401, ("", ""));
    table.add("other scheme", &format!("DPoP {token}"), 401, ("", ""));
    table.add("scheme missing", &token, 401, ("", ""));
    table.add("two tokens in one header", &format!("Bearer {token}, Bearer {token}"), 401, (INVALID, ""));
    table.add("not ASCII", "Bearer é", 401, ("invalid_request", "one Authorization header"));
    let twice = vec![format!("Bearer {token}"), format!("Bearer {token}")];
    let error = ("invalid_request", "one Authorization header");
    table.rows.push(Row {
        name: "two headers",
        authorizations: twice,
        query: String::new(),
        status: 401,
        error,
    });
    let query = format!("?access_token={token}");
    let none = Vec::new();
    table.rows.push(Row {
        name: "token in the query",
        authorizations: none,
        query,
        status: 401,
        error: ("", ""),
    });
}

fn times(table: &mut Table<'_>) {
    let now = now();
    table.bad("expired", &table.with(&json!({ "exp": now - 3600 })), EXPIRED);
    table.good("expired within the leeway", &table.with(&json!({ "exp": now - 30 })));
    table.bad("expired beyond the leeway", &table.with(&json!({ "exp": now - 61 })), EXPIRED);
    table.bad("not valid yet", &table.with(&json!({ "nbf": now + 3600 })), EARLY);
    table.good("not valid yet, within the leeway", &table.with(&json!({ "nbf": now + 30 })));
    table.bad("issued in the future", &table.with(&json!({ "iat": now + 3600 })), EARLY);
    table.good("issued in the future, within the leeway", &table.with(&json!({ "iat": now + 30 })));
    table.bad("no expiry", &table.with(&json!({ "exp": null })), "no expiry");
    table.good("expiry with a fraction", &table.with(&json!({ "exp": 2e9 + 0.5 })));
    table.bad("expiry as text", &table.with(&json!({ "exp": (now + 600).to_string() })), TIME);
    table.bad("negative expiry", &table.with(&json!({ "exp": -1 })), TIME);
    table.bad("expiry beyond all clocks", &table.with(&json!({ "exp": u64::MAX })), TIME);
    table.bad("nbf as text", &table.with(&json!({ "nbf": "0" })), TIME);
    table.bad("iat as a list", &table.with(&json!({ "iat": [now] })), TIME);
    table.good("neither nbf nor iat", &table.with(&json!({ "nbf": null, "iat": null })));
}

fn audiences_and_issuers(table: &mut Table<'_>) {
    let url = table.issuer.url();
    table.bad("other audience", &table.with(&json!({ "aud": "https://other.example/mcp" })), AUDIENCE);
    table.good("list with our audience", &table.with(&json!({ "aud": ["https://other.example", RESOURCE] })));
    table.bad("list without our audience", &table.with(&json!({ "aud": ["a", "b"] })), AUDIENCE);
    table.bad("empty list of audiences", &table.with(&json!({ "aud": [] })), AUDIENCE);
    table.bad("list with a number", &table.with(&json!({ "aud": [RESOURCE, 7] })), AUDIENCE);
    table.bad("no audience", &table.with(&json!({ "aud": null })), AUDIENCE);
    table.bad("audience as a number", &table.with(&json!({ "aud": 7 })), AUDIENCE);
    table.bad("audience with a slash", &table.with(&json!({ "aud": format!("{RESOURCE}/") })), AUDIENCE);
    table.bad(
        "audience that begins as ours",
        &table.with(&json!({ "aud": format!("{RESOURCE}.evil") })),
        AUDIENCE,
    );
    table.bad("other issuer", &table.with(&json!({ "iss": "https://CANARY.example" })), ISSUER);
    table.bad("issuer with a slash", &table.with(&json!({ "iss": format!("{url}/") })), ISSUER);
    table.bad("issuer in other case", &table.with(&json!({ "iss": url.to_uppercase() })), ISSUER);
    table.bad("no issuer", &table.with(&json!({ "iss": null })), ISSUER);
    table.bad("issuer as a list", &table.with(&json!({ "iss": [url] })), ISSUER);
    let foreign = json!({ "aud": "https://mail.example", "client_id": "mail", "scope": "read write" });
    table.bad("token of another client for another resource", &table.with(&foreign), AUDIENCE);
}

fn algorithms(table: &mut Table<'_>) {
    let good = table.issuer.good();
    for (name, spelling) in [
        ("alg none", "none"),
        ("alg None", "None"),
        ("alg NONE", "NONE"),
        ("alg nOnE", "nOnE"),
        ("alg empty", ""),
    ] {
        let token =
            Recipe { signature: Signature::Written(""), ..good.clone().header(&json!({ "alg": spelling })) };
        table.bad(name, &token, NO_ALGORITHM);
    }
    let public = BASE64.decode(keys()[0]["n"].as_str().unwrap()).unwrap();
    let pem = include_bytes!("rsa_one_public.pem").to_vec();
    for (name, secret) in [("HS256 with the public modulus", public), ("HS256 with the public PEM", pem)] {
        let token = Recipe {
            signature: Signature::Secret(secret),
            ..good.clone().header(&json!({ "alg": "HS256" }))
        };
        table.bad(name, &token, NO_ALGORITHM);
    }
    let oct = Recipe {
        signature: Signature::Secret(b"secretsecretsecretsecretsecret".to_vec()),
        ..good.clone().header(&json!({ "alg": "HS256", "kid": "oct-1" }))
    };
    table.bad("HS256 with a published secret", &oct, NO_ALGORITHM);
    let rs512 = good.clone().header(&json!({ "alg": "RS512" })).signed(Private::RsaOne, Algorithm::RS512);
    table.bad("RS512, which is not configured", &rs512, NO_ALGORITHM);
    table.bad("alg in lower case", &good.clone().header(&json!({ "alg": "rs256" })), NO_ALGORITHM);
    table.bad("alg missing", &good.clone().header(&json!({ "alg": null })), MALFORMED);
    table.bad("alg as a number", &good.clone().header(&json!({ "alg": 256 })), MALFORMED);
    let ps = good.clone().header(&json!({ "alg": "PS256" })).signed(Private::RsaOne, Algorithm::PS256);
    table.good("PS256", &ps);
    let es =
        good.clone().header(&json!({ "alg": "ES256", "kid": "ec-1" })).signed(Private::Ec, Algorithm::ES256);
    table.good("ES256", &es);
    let ed =
        good.clone().header(&json!({ "alg": "EdDSA", "kid": "ed-1" })).signed(Private::Ed, Algorithm::EdDSA);
    table.good("EdDSA", &ed);
    table.bad("RS256 with the id of an EC key", &good.clone().header(&json!({ "kid": "ec-1" })), NO_KEY);
    table.bad("ES256 with the id of an RSA key", &es.clone().header(&json!({ "kid": "rsa-1" })), NO_KEY);
    table.bad("RS256 with a key for PS256", &good.clone().header(&json!({ "kid": "ps-only" })), NO_KEY);
    table.bad("PS256 header with an RS256 signature", &good.header(&json!({ "alg": "PS256" })), FORGED);
}

fn keys_of_tokens(table: &mut Table<'_>) {
    let good = table.issuer.good();
    table.bad("unknown key", &good.clone().header(&json!({ "kid": "CANARY-kid" })), NO_KEY);
    table.bad("id of another key", &good.clone().header(&json!({ "kid": "rsa-2" })), FORGED);
    table.bad("id as a number", &good.clone().header(&json!({ "kid": 1 })), MALFORMED);
    table.bad("id that is a path", &good.clone().header(&json!({ "kid": "../../etc/passwd" })), NO_KEY);
    table.bad("key for encryption", &good.clone().header(&json!({ "kid": "enc-1" })), NO_KEY);
    table.bad("key for wrapping", &good.clone().header(&json!({ "kid": "wrap-1" })), NO_KEY);
    let short = good.clone().header(&json!({ "kid": "short-1" })).signed(Private::RsaShort, Algorithm::RS256);
    table.bad("key of 1024 bits", &short, NO_KEY);
    let ed = json!({ "alg": "EdDSA", "kid": null });
    let one = good.clone().header(&ed).signed(Private::Ed, Algorithm::EdDSA);
    table.good("no id, one key for the algorithm", &one);
    table.bad(
        "no id, two keys for the algorithm",
        &good.clone().header(&json!({ "kid": null })),
        "several keys",
    );
    let own = Private::RsaTwo.public("own", &json!({}));
    let forged = good.clone().signed(Private::RsaTwo, Algorithm::RS256);
    for (name, header) in [
        ("key in the header (jwk)", json!({ "jwk": own })),
        (
            "address of keys in the header (jku)",
            json!({ "jku": format!("{}/other-jwks", table.issuer.url()) }),
        ),
        ("address of a certificate (x5u)", json!({ "x5u": format!("{}/other-jwks", table.issuer.url()) })),
        ("certificate in the header (x5c)", json!({ "x5c": ["MIIB"] })),
    ] {
        table.bad(name, &forged.clone().header(&header), FORGED);
    }
    table.good("key in the header that is not needed", &good.clone().header(&json!({ "jwk": own })));
    let critical = json!({ "crit": ["exp"], "exp": 1 });
    table.bad("critical extension", &good.clone().header(&critical), "an extension");
    table.bad(
        "empty list of critical extensions",
        &good.clone().header(&json!({ "crit": [] })),
        "an extension",
    );
    table.bad(
        "unencoded payload (b64)",
        &good.header(&json!({ "b64": false, "crit": ["b64"] })),
        "an extension",
    );
}

fn forms(table: &mut Table<'_>) {
    let good = table.issuer.good();
    let token = good.token();
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("three parts") };
    table.bad_text("a word", "CANARY", MALFORMED);
    table.bad_text("two parts", &format!("{header}.{claims}"), MALFORMED);
    table.bad_text("empty signature", &format!("{header}.{claims}."), FORGED);
    table.bad_text("four parts", &format!("{token}.x"), MALFORMED);
    table.bad_text("dot at the end", &format!("{token}."), MALFORMED);
    table.bad_text("dot at the beginning", &format!(".{token}"), MALFORMED);
    table.bad_text("five parts, as if encrypted", &format!("{token}.x.y"), "encrypted");
    table.bad_text("many dots", &".".repeat(5000), MALFORMED);
    table.bad_text("truncated", &token[..header.len() + 1 + claims.len() / 2], MALFORMED);
    table.bad_text("signature without its last letters", &token[..token.len() - 4], FORGED);
    table.bad_text("signature with letters behind it", &format!("{token}AAAA"), FORGED);
    table.bad_text("padding", &format!("{header}.{claims}.{signature}=="), FORGED);
    table.bad_text("standard Base64", &format!("{header}.{claims}+/.{signature}"), MALFORMED);
    table.bad_text("bad Base64", &format!("{header}.%%%%.{signature}"), MALFORMED);
    let other = good.clone().claims(&json!({ "sub": "eve" })).token();
    let spliced = format!("{header}.{}.{signature}", other.split('.').nth(1).unwrap());
    table.bad_text("claims of another token", &spliced, FORGED);
    table.bad("too long", &good.clone().claims(&json!({ "x": "y".repeat(16_000) })), "too long");
    let es =
        good.clone().header(&json!({ "alg": "ES256", "kid": "ec-1" })).signed(Private::Ec, Algorithm::ES256);
    // ECDSA allows both signatures; nothing depends on the bytes of a token.
    table.add("ES256 with the other s", &format!("Bearer {}", mirrored(&es.token())), 200, ("", ""));
    let doubled = |key: &str, value: Value| {
        let claims = good.claims.replacen('{', &format!("{{\"{key}\":{value},"), 1);
        Recipe { claims, ..good.clone() }
    };
    table.bad("claim twice (aud)", &doubled("aud", json!("x")), MALFORMED);
    table.bad("claim twice (exp)", &doubled("exp", json!(1)), MALFORMED);
    table.bad("claim twice (sub)", &doubled("sub", json!("eve")), MALFORMED);
    let header = good.header.replacen('{', "{\"alg\":\"none\",", 1);
    table.bad("header member twice", &Recipe { header, ..good.clone() }, MALFORMED);
    table.bad("claims that are a list", &Recipe { claims: "[]".to_owned(), ..good.clone() }, MALFORMED);
    table.bad("claims that are no JSON", &Recipe { claims: "CANARY".to_owned(), ..good.clone() }, MALFORMED);
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(4000), "]".repeat(4000));
    table.bad("claims nested deeply", &Recipe { claims: deep, ..good }, MALFORMED);
}

fn kinds_and_callers(table: &mut Table<'_>) {
    let good = table.issuer.good();
    let untyped = good.clone().header(&json!({ "typ": null }));
    for (name, typ) in
        [("typ JWT", "JWT"), ("typ jwt", "jwt"), ("typ application/at+jwt", "application/AT+JWT")]
    {
        table.good(name, &good.clone().header(&json!({ "typ": typ })));
    }
    table.good("no typ", &untyped);
    for (name, typ) in [("logout token", json!("logout+jwt")), ("DPoP proof", json!("dpop+jwt"))] {
        table.bad(name, &good.clone().header(&json!({ "typ": typ })), KIND);
    }
    table.bad("typ as a number", &good.clone().header(&json!({ "typ": 1 })), MALFORMED);
    let id = json!({ "nonce": "n", "at_hash": "h", "scope": null });
    table.bad("ID token", &untyped.clone().claims(&id), KIND);
    table.bad(
        "ID token with a nonce alone",
        &untyped.clone().claims(&json!({ "nonce": "n", "scope": null })),
        KIND,
    );
    table.good("access token with a nonce", &untyped.clone().claims(&json!({ "nonce": "n" })));
    table.bad("ID token of Keycloak", &untyped.clone().claims(&json!({ "typ": "ID" })), KIND);
    table.bad("refresh token of Keycloak", &untyped.clone().claims(&json!({ "typ": "Refresh" })), KIND);
    table.good("access token of Keycloak", &untyped.clone().claims(&json!({ "typ": "Bearer" })));
    table.bad("ID token of Cognito", &untyped.claims(&json!({ "token_use": "id" })), KIND);
    table.bad("bound to a key", &table.with(&json!({ "cnf": { "jkt": "x" } })), "bound to a key");
    for (name, sub) in [
        ("empty sub", json!("")),
        ("blank sub", json!(" ")),
        ("no sub", Value::Null),
        ("sub as a number", json!(7)),
        ("sub with a line break", json!("ada\nbob")),
        ("sub too long", json!("a".repeat(2000))),
    ] {
        table.bad(name, &table.with(&json!({ "sub": sub })), CALLER);
    }
    table.good("no scope", &table.with(&json!({ "scope": null })));
    table.good("scp as a list", &table.with(&json!({ "scope": null, "scp": ["read"] })));
    table.good("scp as a text", &table.with(&json!({ "scope": null, "scp": "read write" })));
    table.bad("scope as a number", &table.with(&json!({ "scope": 1 })), "scopes of the token");
    table.bad("scp with a number", &table.with(&json!({ "scp": ["read", 1] })), "scopes of the token");
}

/// The same token with the other signature that ECDSA allows: `s` becomes `n - s`.
fn mirrored(token: &str) -> String {
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc,
        0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let mut signature = BASE64.decode(signature).unwrap();
    let mut borrow = 0;
    for (byte, order) in signature[32..].iter_mut().zip(ORDER).rev() {
        let difference = i16::from(order) - i16::from(*byte) - borrow;
        borrow = i16::from(difference < 0);
        *byte = u8::try_from(difference.rem_euclid(256)).unwrap();
    }
    format!("{signed}.{}", BASE64.encode(signature))
}

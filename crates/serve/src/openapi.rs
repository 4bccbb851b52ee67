//! The OpenAPI 3.1 document, generated from the types of the routes.

use aide::openapi::{Info, OpenApi, ReferenceOr, SecurityScheme};
use aide::transform::TransformOpenApi;

use crate::routes;

/// The document as indented JSON, ending with a line feed.
pub fn document() -> String {
    // Schemas come only from the descriptions of our types; nothing else is inferred.
    aide::generate::extract_schemas(true);
    let mut document = OpenApi {
        info: Info {
            title: "pubmark".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            description: Some("The interface of `pubmark serve` (docs/how-to/serve.md).".to_owned()),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let _: axum::Router<_> = routes::api().finish_api_with(&mut document, described);
    if let Some(paths) = &mut document.paths {
        // The router's syntax for a parameter that may contain slashes.
        paths.paths =
            std::mem::take(&mut paths.paths).into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    }
    let mut text = serde_json::to_string_pretty(&document).expect("a description is plain JSON");
    text.push('\n');
    text
}

fn described(api: TransformOpenApi<'_>) -> TransformOpenApi<'_> {
    let bearer = SecurityScheme::Http {
        scheme: "bearer".to_owned(),
        bearer_format: None,
        description: Some("The token that the server showed at its first start.".to_owned()),
        extensions: Default::default(),
    };
    let mut api = api.security_requirement("token");
    api.inner_mut()
        .components
        .get_or_insert_default()
        .security_schemes
        .insert("token".to_owned(), ReferenceOr::Item(bearer));
    api
}

//! The console: one page with its scripts and styles, in the binary.
//!
//! The files are those of the folder `console/page`, as they are; nothing is built. They may load nothing from
//! elsewhere, and nobody may put the page into a frame: the policy that is sent with each of them says so. All data comes
//! from [`crate::admin`].

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// What a browser lets the page do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// A file of the page.
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal $kind:ident $name:literal;)*) => {
        &[$(File {
            path: $path,
            kind: $kind,
            text: include_str!(concat!("../../../console/page/", $name)),
        },)*]
    };
}

static FILES: &[File] = files! {
    "/" HTML "index.html";
    "/console/app.js" SCRIPT "app.js";
    "/console/base.css" STYLE "base.css";
    "/console/icon.svg" IMAGE "icon.svg";
    "/console/parts.css" STYLE "parts.css";
    "/console/picture.css" STYLE "picture.css";
    "/console/lib/api.js" SCRIPT "lib/api.js";
    "/console/lib/cli.js" SCRIPT "lib/cli.js";
    "/console/lib/decisions.js" SCRIPT "lib/decisions.js";
    "/console/lib/dom.js" SCRIPT "lib/dom.js";
    "/console/lib/format.js" SCRIPT "lib/format.js";
    "/console/lib/history.js" SCRIPT "lib/history.js";
    "/console/lib/live.js" SCRIPT "lib/live.js";
    "/console/lib/load.js" SCRIPT "lib/load.js";
    "/console/lib/names.js" SCRIPT "lib/names.js";
    "/console/lib/owners.js" SCRIPT "lib/owners.js";
    "/console/lib/parts.js" SCRIPT "lib/parts.js";
    "/console/lib/queues.js" SCRIPT "lib/queues.js";
    "/console/lib/slots.js" SCRIPT "lib/slots.js";
    "/console/lib/table.js" SCRIPT "lib/table.js";
    "/console/views/actions.js" SCRIPT "views/actions.js";
    "/console/views/decisions.js" SCRIPT "views/decisions.js";
    "/console/views/group.js" SCRIPT "views/group.js";
    "/console/views/help.js" SCRIPT "views/help.js";
    "/console/views/history.js" SCRIPT "views/history.js";
    "/console/views/members.js" SCRIPT "views/members.js";
    "/console/views/messages.js" SCRIPT "views/messages.js";
    "/console/views/overview.js" SCRIPT "views/overview.js";
    "/console/views/partitions.js" SCRIPT "views/partitions.js";
    "/console/views/queues.js" SCRIPT "views/queues.js";
    "/console/views/topic.js" SCRIPT "views/topic.js";
};

/// The routes of the page.
pub(crate) fn routes() -> Router {
    let add = |router: Router, file: &'static File| {
        router.route(
            file.path,
            get(move |headers: HeaderMap| async move { file.answer(&headers) }),
        )
    };
    FILES.iter().fold(Router::new(), add)
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let tag = self.tag();
        let is_known = headers
            .get(IF_NONE_MATCH)
            .is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let common = [
            (CONTENT_TYPE, self.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
            // A newer broker has a newer page: the browser asks each time, and is mostly told that nothing is new.
            (CACHE_CONTROL, "no-cache"),
        ];
        match is_known {
            true => (StatusCode::NOT_MODIFIED, common, [(ETAG, tag)]).into_response(),
            false => (common, [(ETAG, tag)], self.text).into_response(),
        }
    }

    /// Changes with the content (FNV-1a).
    fn tag(&self) -> String {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = self.text.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        format!("\"{hash:016x}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn files_below(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files_below(&path, root, found),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    found.insert(format!("/console/{name}"));
                }
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_served_and_loads_only_what_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/page");
        let mut kept = BTreeSet::new();
        files_below(&root, &root, &mut kept);
        assert!(kept.remove("/console/index.html"), "the page itself");
        let served: BTreeSet<String> = FILES.iter().map(|file| file.path.to_owned()).collect();
        kept.insert("/".to_owned());
        assert_eq!(kept, served);
        let bytes: usize = FILES.iter().map(|file| file.text.len()).sum();
        assert!(bytes < 300_000, "{bytes} bytes are more than a page may have");
        for file in FILES {
            let is_quiet = !file.text.contains("//cdn") && !file.text.contains("innerHTML");
            assert!(
                is_quiet,
                "{} loads from elsewhere, or reads markup from texts",
                file.path
            );
        }
    }

    #[test]
    fn a_tag_changes_with_the_content() {
        let file = |text| File {
            path: "/",
            kind: HTML,
            text,
        };
        assert_ne!(file("a").tag(), file("b").tag());
        assert_eq!(file("a").tag(), file("a").tag());
    }
}

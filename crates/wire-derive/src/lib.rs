//! Derive macro for Kafka messages: the struct with its attributes is the specification of the encoding.
//!
//! ```text
//! #[derive(Clone, Debug, PartialEq, Message)]
//! #[kafka(key = 3, versions(0..=13), flexible(9..))]         a whole request or response; without it: a struct inside one
//! pub struct MetadataRequest {
//!     #[kafka(nullable(1..))]                                 null may be sent from version 1 on; the type is an Option
//!     pub topics: Option<Vec<MetadataRequestTopic>>,
//!     #[kafka(versions(4..), default = true)]                 not on the wire before version 4
//!     pub allow_auto_topic_creation: bool,
//!     #[kafka(versions(10..), tag = 0, ignorable)]            in the tagged section
//!     pub cluster_id: String,
//! }
//! ```
//!
//! From this the macro writes `Field` (read and write), `Default` with Kafka's defaults, for whole messages also
//! `Message` (key, versions), and for tests `Random`.
//!
//! How the parts play together: `attr` reads the attributes into a small model and refuses wrong ones, pointing at
//! the place; `expand` turns the model into code. The code calls generic functions of `anabranch_wire::prim`
//! and is meant for that crate alone (paths begin with `crate::`).
//!
//! Field attributes, all optional:
//!
//! | attribute | meaning |
//! |---|---|
//! | `versions(a..)`, `versions(a..=b)`, `versions(..=b)` | the versions that carry the field; absent: all |
//! | `nullable`, `nullable(a..)` | the versions in which null may be sent |
//! | `tag = N` | sent as tagged field `N`, if it differs from the default |
//! | `default = expr`, `default = null` | the default; absent: zero, empty, false. An `Option` without it is `Some(empty)`, as in Kafka |
//! | `ignorable` | a value that the version cannot carry is dropped; without it, that is an encode error |

mod attr;
mod expand;

use proc_macro::TokenStream;

/// Derives the Kafka encoding; see the crate page for the attributes.
#[proc_macro_derive(Message, attributes(kafka))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    attr::Model::parse(&input)
        .map(|model| expand::expand(&model))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

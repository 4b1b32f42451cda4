//! Attributes to a model, with an error at the place of each mistake.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, ExprLit, Fields, Ident, Lit, RangeLimits, Result, Type};

/// A struct as the attributes describe it.
pub(crate) struct Model {
    pub(crate) name: Ident,
    /// Present on whole requests and responses.
    pub(crate) message: Option<Message>,
    pub(crate) fields: Vec<Field>,
}

/// `#[kafka(key = .., versions(..), flexible(..))]` on a struct.
pub(crate) struct Message {
    pub(crate) key: i16,
    pub(crate) min: i16,
    pub(crate) max: i16,
    /// First version with compact strings and tagged fields; `None` if there is none.
    pub(crate) flexible: Option<i16>,
}

/// One field of the struct.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) versions: Versions,
    /// Present if and only if the type is an `Option`.
    pub(crate) nullable: Option<Versions>,
    pub(crate) tag: Option<u32>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) ignorable: bool,
}

/// What `default = ..` says.
pub(crate) enum DefaultValue {
    Null,
    Value(Expr),
}

/// A range of versions, open where `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Versions {
    pub(crate) min: Option<i16>,
    pub(crate) max: Option<i16>,
}

impl Model {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new_spanned(&input.ident, "a Kafka message is a struct"));
        };
        let Fields::Named(named) = &data.fields else {
            return Err(Error::new_spanned(
                &input.ident,
                "a Kafka message has named fields",
            ));
        };
        if !input.generics.params.is_empty() {
            return Err(Error::new_spanned(
                &input.generics,
                "a Kafka message has no generic parameters",
            ));
        }
        let message = Message::parse(input)?;
        let fields = named.named.iter().map(Field::parse).collect::<Result<Vec<_>>>()?;
        check_tags(&fields)?;
        if let Some(message) = &message {
            check_within(message, &fields)?;
        }
        Ok(Self {
            name: input.ident.clone(),
            message,
            fields,
        })
    }
}

fn check_tags(fields: &[Field]) -> Result<()> {
    let mut tags: Vec<u32> = fields.iter().filter_map(|field| field.tag).collect();
    tags.sort_unstable();
    for pair in tags.windows(2) {
        if pair[0] == pair[1] {
            let twice = fields
                .iter()
                .rfind(|field| field.tag == Some(pair[0]))
                .map(|field| &field.ident);
            return Err(Error::new_spanned(
                twice,
                format!("tag {} is used twice", pair[0]),
            ));
        }
    }
    Ok(())
}

fn check_within(message: &Message, fields: &[Field]) -> Result<()> {
    for field in fields {
        let Versions { min, max } = field.versions;
        let outside = |version: Option<i16>| version.is_some_and(|v| v < message.min || v > message.max);
        if outside(min) || outside(max) {
            let text = format!("the message has versions {}..={} only", message.min, message.max);
            return Err(Error::new_spanned(&field.ident, text));
        }
        if field.tag.is_some()
            && message
                .flexible
                .is_none_or(|first| min.unwrap_or(message.min) < first)
        {
            let text = "a tagged field needs versions(..) within the flexible versions";
            return Err(Error::new_spanned(&field.ident, text));
        }
    }
    Ok(())
}

impl Message {
    fn parse(input: &DeriveInput) -> Result<Option<Self>> {
        let (mut key, mut versions, mut flexible) = (None, None, None);
        let mut place = None;
        for attribute in input
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("kafka"))
        {
            place = Some(attribute.span());
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("key") {
                    once(&mut key, integer(&meta.value()?.parse()?)?, &meta)
                } else if meta.path.is_ident("versions") {
                    once(&mut versions, range(&meta)?, &meta)
                } else if meta.path.is_ident("flexible") {
                    once(&mut flexible, range(&meta)?, &meta)
                } else {
                    Err(meta.error("expected key = N, versions(a..=b) or flexible(c..)"))
                }
            })?;
        }
        let Some(place) = place else { return Ok(None) };
        let missing = |what: &str| Error::new(place, format!("a whole message also needs {what}"));
        let key = key.ok_or_else(|| missing("key = N"))?;
        let Some(Versions {
            min: Some(min),
            max: Some(max),
        }) = versions
        else {
            return Err(missing("versions(a..=b) with both ends"));
        };
        let flexible = match flexible {
            None => None,
            Some(Versions {
                min: Some(first),
                max: None,
            }) => Some(first),
            Some(_) => return Err(Error::new(place, "flexible versions have no end: flexible(c..)")),
        };
        Ok(Some(Self {
            key,
            min,
            max,
            flexible,
        }))
    }
}

impl Field {
    fn parse(field: &syn::Field) -> Result<Self> {
        let ident = field
            .ident
            .clone()
            .unwrap_or_else(|| Ident::new("_", Span::call_site()));
        let (mut versions, mut nullable, mut tag, mut default, mut ignorable) =
            (None, None, None, None, None);
        for attribute in field
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("kafka"))
        {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("versions") {
                    once(&mut versions, range(&meta)?, &meta)
                } else if meta.path.is_ident("nullable") {
                    let bare = meta.input.is_empty() || meta.input.peek(syn::Token![,]);
                    let range = if bare { Versions::default() } else { range(&meta)? };
                    once(&mut nullable, range, &meta)
                } else if meta.path.is_ident("tag") {
                    let number: i16 = integer(&meta.value()?.parse()?)?;
                    let number = u32::try_from(number).map_err(|_| meta.error("a tag is not negative"))?;
                    once(&mut tag, number, &meta)
                } else if meta.path.is_ident("default") {
                    once(&mut default, DefaultValue::parse(meta.value()?.parse()?), &meta)
                } else if meta.path.is_ident("ignorable") {
                    once(&mut ignorable, true, &meta)
                } else {
                    Err(meta.error(
                        "expected versions(..), nullable, nullable(..), tag = N, default = X or ignorable",
                    ))
                }
            })?;
        }
        match (is_option(&field.ty), &nullable, &default) {
            (true, None, _) => Err(Error::new_spanned(
                &field.ty,
                "an Option needs nullable or nullable(a..)",
            )),
            (false, Some(_), _) => Err(Error::new_spanned(&field.ty, "a nullable field is an Option")),
            (false, _, Some(DefaultValue::Null)) => Err(Error::new_spanned(
                &field.ty,
                "default = null needs a nullable field",
            )),
            _ => Ok(()),
        }?;
        Ok(Self {
            ident,
            ty: field.ty.clone(),
            versions: versions.unwrap_or_default(),
            nullable,
            tag,
            default,
            ignorable: ignorable.unwrap_or(false),
        })
    }
}

impl DefaultValue {
    fn parse(value: Expr) -> Self {
        match &value {
            Expr::Path(path) if path.path.is_ident("null") => Self::Null,
            _ => Self::Value(value),
        }
    }
}

/// Whether the type is written `Option<..>`.
fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

fn once<T>(slot: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("given twice")),
    }
}

/// The range in the parentheses behind an attribute's name.
fn range(meta: &ParseNestedMeta<'_>) -> Result<Versions> {
    let content;
    syn::parenthesized!(content in meta.input);
    let expr: Expr = content.parse()?;
    let Expr::Range(range) = &expr else {
        return Err(Error::new_spanned(
            &expr,
            "expected a range of versions: a.., a..=b or ..=b",
        ));
    };
    if range.end.is_some() && matches!(range.limits, RangeLimits::HalfOpen(_)) {
        return Err(Error::new_spanned(&expr, "write the last version: a..=b"));
    }
    let min = range.start.as_deref().map(integer).transpose()?;
    let max = range.end.as_deref().map(integer).transpose()?;
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        return Err(Error::new_spanned(&expr, "the range is empty"));
    }
    Ok(Versions { min, max })
}

fn integer(expr: &Expr) -> Result<i16> {
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => number.base10_parse(),
        other => Err(Error::new_spanned(other, "expected a number")),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn error(input: &DeriveInput) -> String {
        Model::parse(input)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn reads_a_message() {
        let model = Model::parse(&parse_quote! {
            #[kafka(key = 3, versions(0..=13), flexible(9..))]
            struct A {
                #[kafka(nullable(1..))] a: Option<String>,
                #[kafka(versions(10..=12), tag = 7, default = -1, ignorable)] b: i32,
                #[kafka(nullable, default = null)] c: Option<Bytes>,
            }
        })
        .expect("correct attributes");
        let message = model.message.expect("attributes of a whole message");
        assert_eq!(
            (message.key, message.min, message.max, message.flexible),
            (3, 0, 13, Some(9))
        );
        let [a, b, c] = &model.fields[..] else {
            panic!("three fields")
        };
        assert_eq!(
            a.nullable,
            Some(Versions {
                min: Some(1),
                max: None
            })
        );
        assert_eq!(
            b.versions,
            Versions {
                min: Some(10),
                max: Some(12)
            }
        );
        assert_eq!((b.tag, b.ignorable), (Some(7), true));
        assert_eq!(c.nullable, Some(Versions::default()));
        assert!(matches!(c.default, Some(DefaultValue::Null)));
    }

    #[test]
    fn wrong_attributes_are_named() {
        assert_eq!(
            error(&parse_quote! { enum A { B } }),
            "a Kafka message is a struct"
        );
        assert_eq!(
            error(&parse_quote! { struct A(i32); }),
            "a Kafka message has named fields"
        );
        assert_eq!(
            error(&parse_quote! { #[kafka(versions(0..=1))] struct A { a: i32 } }),
            "a whole message also needs key = N"
        );
        assert_eq!(
            error(&parse_quote! { #[kafka(key = 1, versions(0..))] struct A { a: i32 } }),
            "a whole message also needs versions(a..=b) with both ends"
        );
        assert_eq!(
            error(&parse_quote! { #[kafka(key = 1, versions(0..=2), flexible(1..=2))] struct A { a: i32 } }),
            "flexible versions have no end: flexible(c..)"
        );
        assert_eq!(
            error(&parse_quote! { struct A { #[kafka(nullable)] a: String } }),
            "a nullable field is an Option"
        );
        assert_eq!(
            error(&parse_quote! { struct A { a: Option<String> } }),
            "an Option needs nullable or nullable(a..)"
        );
        assert_eq!(
            error(&parse_quote! { struct A { #[kafka(default = null)] a: i32 } }),
            "default = null needs a nullable field"
        );
        assert_eq!(
            error(&parse_quote! { struct A { #[kafka(versions(1..3))] a: i32 } }),
            "write the last version: a..=b"
        );
        assert_eq!(
            error(&parse_quote! { struct A { #[kafka(versions(3..=1))] a: i32 } }),
            "the range is empty"
        );
        assert_eq!(
            error(&parse_quote! { struct A { #[kafka(tag = 1)] a: i32, #[kafka(tag = 1)] b: i32 } }),
            "tag 1 is used twice"
        );
        assert_eq!(
            error(&parse_quote! { struct A { #[kafka(ignorable, ignorable)] a: i32 } }),
            "given twice"
        );
        assert!(
            error(&parse_quote! { struct A { #[kafka(nulable)] a: i32 } })
                .starts_with("expected versions(..)")
        );
    }

    #[test]
    fn versions_stay_within_the_message() {
        assert_eq!(
            error(&parse_quote! {
                #[kafka(key = 1, versions(2..=4), flexible(4..))]
                struct A { #[kafka(versions(5..))] a: i32 }
            }),
            "the message has versions 2..=4 only"
        );
        assert_eq!(
            error(&parse_quote! {
                #[kafka(key = 1, versions(2..=4), flexible(4..))]
                struct A { #[kafka(versions(3..), tag = 0)] a: i32 }
            }),
            "a tagged field needs versions(..) within the flexible versions"
        );
    }
}

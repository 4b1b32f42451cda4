//! The model to code.
//!
//! Kept lean on purpose, since some 350 structs go through here: a field costs one call of a generic function of
//! `prim`, and a note of its name for error messages.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;
use syn::ext::IdentExt;

use crate::attr::{DefaultValue, Field, Message, Model, Versions};

pub(crate) fn expand(model: &Model) -> TokenStream {
    let field = expand_field(model);
    let default = expand_default(model);
    let random = expand_random(model);
    let message = model
        .message
        .as_ref()
        .map(|message| expand_message(model, message));
    quote! { #field #default #message #random }
}

fn expand_message(model: &Model, message: &Message) -> TokenStream {
    let name = &model.name;
    let text = LitStr::new(&name.to_string(), name.span());
    let Message { key, min, max, .. } = message;
    let flexible = message.flexible.unwrap_or(i16::MAX);
    quote! {
        #[automatically_derived]
        impl crate::prim::Message for #name {
            const KEY: crate::api::ApiKey = crate::api::ApiKey::from_number(#key);
            const NAME: &'static str = #text;
            const VERSIONS: ::core::ops::RangeInclusive<i16> = #min..=#max;
            const FLEXIBLE: i16 = #flexible;
        }
    }
}

fn expand_field(model: &Model) -> TokenStream {
    let name = &model.name;
    let mut tagged: Vec<&Field> = model.fields.iter().filter(|field| field.tag.is_some()).collect();
    tagged.sort_by_key(|field| field.tag);
    let plain = || model.fields.iter().filter(|field| field.tag.is_none());
    let reads = plain().map(|field| {
        let read = read(model, field);
        match in_versions(field.versions) {
            None => read,
            Some(condition) => quote! { if #condition { #read } },
        }
    });
    let writes = plain().map(|field| write_plain(model, field));
    let read_tags = read_tags(model, &tagged);
    let write_tags = write_tags(model, &tagged);
    quote! {
        #[automatically_derived]
        impl crate::prim::Field for #name {
            fn read(r: &mut crate::prim::Reader, version: i16) -> Result<Self, crate::prim::DecodeError> {
                let mut this = Self::default();
                #(#reads)*
                #read_tags
                Ok(this)
            }
            fn write(&self, w: &mut crate::prim::Writer, version: i16) -> Result<(), crate::prim::EncodeError> {
                #(#writes)*
                #write_tags
                Ok(())
            }
        }
        #[automatically_derived]
        impl crate::prim::Struct for #name {}
    }
}

/// `Struct.field`, for error messages.
fn path(model: &Model, field: &Field) -> LitStr {
    LitStr::new(
        &format!("{}.{}", model.name, field.ident.unraw()),
        field.ident.span(),
    )
}

/// The test whether `version` lies in the range; `None` if every version does.
fn in_versions(versions: Versions) -> Option<TokenStream> {
    match (versions.min.filter(|min| *min > 0), versions.max) {
        (None, None) => None,
        (Some(min), None) => Some(quote! { version >= #min }),
        (None, Some(max)) => Some(quote! { version <= #max }),
        (Some(min), Some(max)) => Some(quote! { (#min..=#max).contains(&version) }),
    }
}

fn read(model: &Model, field: &Field) -> TokenStream {
    let (ident, path) = (&field.ident, path(model, field));
    let value = match field.nullable {
        None => quote! { crate::prim::Field::read(r, version)? },
        Some(versions) => {
            let allowed = in_versions(versions).unwrap_or_else(|| quote! { true });
            quote! { crate::prim::read_nullable(r, version, #allowed)? }
        }
    };
    quote! { r.at(#path); this.#ident = #value; }
}

fn write(field: &Field) -> TokenStream {
    let ident = &field.ident;
    match field.nullable {
        None => quote! { crate::prim::Field::write(&self.#ident, w, version)?; },
        Some(versions) => {
            let allowed = in_versions(versions).unwrap_or_else(|| quote! { true });
            quote! { crate::prim::write_nullable(self.#ident.as_ref(), w, version, #allowed)?; }
        }
    }
}

fn write_plain(model: &Model, field: &Field) -> TokenStream {
    let (path, write, ident) = (path(model, field), write(field), &field.ident);
    match in_versions(field.versions) {
        None => quote! { w.at(#path); #write },
        Some(condition) if field.ignorable => quote! { if #condition { w.at(#path); #write } },
        Some(condition) => {
            let default = default_value(field);
            quote! {
                w.at(#path);
                if #condition { #write } else if self.#ident != #default { return Err(w.not_in_version(version)); }
            }
        }
    }
}

fn read_tags(model: &Model, tagged: &[&Field]) -> TokenStream {
    if tagged.is_empty() {
        return quote! { r.skip_tags()?; };
    }
    let arms = tagged.iter().map(|field| {
        let (tag, read) = (field.tag, read(model, field));
        let guard = in_versions(field.versions).map(|condition| quote! { if #condition });
        quote! { #tag #guard => { #read } }
    });
    quote! {
        r.tags(&mut |r, tag| {
            match tag {
                #(#arms)*
                _ => return Ok(false),
            }
            Ok(true)
        })?;
    }
}

fn write_tags(model: &Model, tagged: &[&Field]) -> TokenStream {
    if tagged.is_empty() {
        return quote! { w.no_tags(); };
    }
    let present: Vec<TokenStream> = tagged
        .iter()
        .map(|field| {
            let (ident, default) = (&field.ident, default_value(field));
            let condition = in_versions(field.versions).map(|condition| quote! { #condition && });
            quote! { (#condition self.#ident != #default) }
        })
        .collect();
    let refusals = tagged
        .iter()
        .filter(|field| !field.ignorable)
        .filter_map(|field| {
            let (ident, default, path) = (&field.ident, default_value(field), path(model, field));
            in_versions(field.versions).map(|condition| {
                quote! {
                    if !(#condition) && self.#ident != #default {
                        w.at(#path);
                        return Err(w.not_in_version(version));
                    }
                }
            })
        });
    let writes = tagged.iter().zip(&present).map(|(field, present)| {
        let (tag, path, write) = (field.tag, path(model, field), write(field));
        quote! {
            if #present {
                w.at(#path);
                let mark = w.begin_tag(#tag);
                #write
                w.end_tag(mark);
            }
        }
    });
    quote! {
        #(#refusals)*
        if w.is_flexible() {
            w.tag_count(&[#(#present),*]);
            #(#writes)*
        }
    }
}

/// Kafka's default for the field: what the attribute says, else zero, empty or false, never null by itself.
fn default_value(field: &Field) -> TokenStream {
    match (&field.default, &field.nullable) {
        (Some(DefaultValue::Null), _) => quote! { None },
        (Some(DefaultValue::Value(value)), None) => quote! { #value },
        (Some(DefaultValue::Value(value)), Some(_)) => quote! { Some(#value) },
        (None, None) => {
            let ty = &field.ty;
            quote! { <#ty as ::core::default::Default>::default() }
        }
        (None, Some(_)) => quote! { Some(::core::default::Default::default()) },
    }
}

fn expand_default(model: &Model) -> TokenStream {
    let name = &model.name;
    let idents = model.fields.iter().map(|field| &field.ident);
    let values = model.fields.iter().map(default_value);
    quote! {
        #[automatically_derived]
        impl ::core::default::Default for #name {
            fn default() -> Self {
                Self { #(#idents: #values),* }
            }
        }
    }
}

fn expand_random(model: &Model) -> TokenStream {
    let name = &model.name;
    let fields = model.fields.iter().map(|field| {
        let (ident, default) = (&field.ident, default_value(field));
        let value = match field.nullable {
            None => quote! { crate::prim::Random::random(rng, version) },
            Some(versions) => {
                let allowed = in_versions(versions).unwrap_or_else(|| quote! { true });
                quote! { rng.nullable(version, #allowed) }
            }
        };
        match in_versions(field.versions) {
            None => quote! { #ident: #value },
            Some(condition) => quote! { #ident: if #condition { #value } else { #default } },
        }
    });
    quote! {
        #[cfg(test)]
        #[automatically_derived]
        impl crate::prim::Random for #name {
            fn random(rng: &mut crate::prim::Rng, version: i16) -> Self {
                Self { #(#fields),* }
            }
        }
    }
}

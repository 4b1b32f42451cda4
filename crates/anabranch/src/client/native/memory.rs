//! Ownership of C objects, and copies of what they lend.

use std::ffi::{CStr, c_char, c_int};

use rdkafka::bindings as sys;

use super::ApiError;
use crate::failure::{Failure, Outcome};

/// Owns a C object and frees it.
pub(super) struct Guard<T> {
    object: *mut T,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Guard<T> {
    /// Takes ownership; null, which librdkafka returns for values it does not accept, is a failure.
    ///
    /// # Safety
    /// `object` is null or was just made for the caller to free with `free`, and nothing else frees it.
    pub(super) unsafe fn new(object: *mut T, free: unsafe extern "C" fn(*mut T)) -> Outcome<Guard<T>> {
        if object.is_null() {
            return Err(Failure::failed("the Kafka client library refused the request"));
        }
        Ok(Guard { object, free })
    }

    /// The object, valid as long as the guard.
    pub(super) fn get(&self) -> *mut T {
        self.object
    }
}

impl<T> Drop for Guard<T> {
    fn drop(&mut self) {
        // SAFETY: by the contract of `new` the object is live and ours, and `free` is its destructor.
        unsafe { (self.free)(self.object) }
    }
}

/// Copies a C string; null is empty, and what is not UTF-8 is replaced.
///
/// # Safety
/// `text` is null or points to a string that ends with a zero byte.
pub(super) unsafe fn copy_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the string; it is copied before this returns.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The elements of an array that librdkafka lends.
///
/// # Safety
/// `array` is null, or points to `count` pointers that stay valid for `'a`.
pub(super) unsafe fn lent<'a, T>(array: *mut *const T, count: usize) -> &'a [*const T] {
    if array.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for `count` elements; an array of `*const T` is read as what it is.
    unsafe { std::slice::from_raw_parts(array.cast_const(), count) }
}

/// The same functions as in the generated bindings, but with codes as integers: a value that the generated Rust enum
/// does not list would be undefined behaviour there, and a newer broker may send one.
mod as_integers {
    use super::{c_int, sys};

    unsafe extern "C" {
        #[link_name = "rd_kafka_error_code"]
        pub(super) fn error_code(error: *const sys::rd_kafka_error_t) -> c_int;
        #[link_name = "rd_kafka_event_error"]
        pub(super) fn event_error(event: *mut sys::rd_kafka_event_t) -> c_int;
        #[link_name = "rd_kafka_topic_result_error"]
        pub(super) fn topic_result_error(result: *const sys::rd_kafka_topic_result_t) -> c_int;
        #[link_name = "rd_kafka_ConfigResource_error"]
        pub(super) fn config_resource_error(resource: *const sys::rd_kafka_ConfigResource_t) -> c_int;
        #[link_name = "rd_kafka_ConfigEntry_source"]
        pub(super) fn config_entry_source(entry: *const sys::rd_kafka_ConfigEntry_t) -> c_int;
        #[link_name = "rd_kafka_err2str"]
        pub(super) fn describe(code: c_int) -> *const std::ffi::c_char;
    }
}

/// The error of an error object; `None` for none.
///
/// # Safety
/// `error` is null or a live error object.
pub(super) unsafe fn api_error(error: *const sys::rd_kafka_error_t) -> Option<ApiError> {
    if error.is_null() {
        return None;
    }
    // SAFETY: `error` is live; the string is copied at once.
    let (code, text) = unsafe {
        (
            as_integers::error_code(error),
            copy_text(sys::rd_kafka_error_string(error)),
        )
    };
    (code != 0).then_some(ApiError { code, text })
}

/// The error of an event; 0 for none.
///
/// # Safety
/// `event` is live.
pub(super) unsafe fn event_code(event: *mut sys::rd_kafka_event_t) -> i32 {
    // SAFETY: the caller vouches for the event, which is only read.
    unsafe { as_integers::event_error(event) }
}

/// The error for one topic.
///
/// # Safety
/// `result` is live.
pub(super) unsafe fn topic_error(result: *const sys::rd_kafka_topic_result_t) -> Option<ApiError> {
    // SAFETY: the caller vouches for the result; the string is copied at once.
    let (code, text) = unsafe {
        (
            as_integers::topic_result_error(result),
            copy_text(sys::rd_kafka_topic_result_error_string(result)),
        )
    };
    (code != 0).then_some(ApiError { code, text })
}

/// The error for one resource of a configuration request.
///
/// # Safety
/// `resource` is live.
pub(super) unsafe fn resource_error(resource: *const sys::rd_kafka_ConfigResource_t) -> Option<ApiError> {
    // SAFETY: the caller vouches for the resource; the string is copied at once.
    let (code, text) = unsafe {
        let text = copy_text(sys::rd_kafka_ConfigResource_error_string(resource));
        (as_integers::config_resource_error(resource), text)
    };
    (code != 0).then_some(ApiError { code, text })
}

/// Where a configuration value comes from, as Kafka's number.
///
/// # Safety
/// `entry` is live.
pub(super) unsafe fn entry_source(entry: *const sys::rd_kafka_ConfigEntry_t) -> i32 {
    // SAFETY: the caller vouches for the entry, which is only read.
    unsafe { as_integers::config_entry_source(entry) }
}

/// The error of one partition.
///
/// # Safety
/// `partition` is live.
pub(super) unsafe fn partition_error(partition: *const sys::rd_kafka_topic_partition_t) -> Option<ApiError> {
    // SAFETY: the field is read as the integer that it is in C, without making a Rust enum of it; `describe` answers
    // with a constant string for every code.
    let (code, text) = unsafe {
        let code: c_int = std::ptr::addr_of!((*partition).err).cast::<c_int>().read();
        (code, copy_text(as_integers::describe(code)))
    };
    (code != 0).then_some(ApiError { code, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static FREED: Cell<usize> = const { Cell::new(0) };
    }

    unsafe extern "C" fn count_and_free(object: *mut u64) {
        FREED.with(|freed| freed.set(freed.get() + 1));
        // SAFETY: the test makes the object with `Box::into_raw` and hands it over.
        drop(unsafe { Box::from_raw(object) });
    }

    #[test]
    fn a_guard_frees_once_and_refuses_null() {
        // SAFETY: a fresh box whose only owner is the guard; null is refused by contract.
        let (guard, refused) = unsafe {
            let guard = Guard::new(Box::into_raw(Box::new(7_u64)), count_and_free).unwrap();
            (guard, Guard::new(std::ptr::null_mut(), count_and_free).err())
        };
        // SAFETY: the guard is alive, and so is its object.
        assert_eq!(unsafe { *guard.get() }, 7);
        assert!(refused.unwrap().message.contains("refused"));
        drop(guard);
        assert_eq!(FREED.with(Cell::get), 1);
    }

    #[test]
    fn texts_and_arrays_are_copied_and_null_is_empty() {
        let one = 1_u8;
        let mut array = [std::ptr::from_ref(&one)];
        // SAFETY: all pointers are null or point to locals that outlive the calls.
        unsafe {
            assert_eq!(copy_text(c"topic \xff".as_ptr()), "topic \u{fffd}");
            assert_eq!(copy_text(std::ptr::null()), "");
            assert_eq!(lent(array.as_mut_ptr(), 1).len(), 1);
            assert!(lent::<u8>(std::ptr::null_mut(), 3).is_empty());
            assert_eq!(api_error(std::ptr::null()), None);
        }
    }

    /// A code that no version of librdkafka knows is carried as it is.
    #[test]
    fn unknown_codes_are_carried() {
        // SAFETY: the list and its element are live until it is destroyed; the code is written as an integer.
        let error = unsafe {
            let list = sys::rd_kafka_topic_partition_list_new(1);
            let partition = sys::rd_kafka_topic_partition_list_add(list, c"t".as_ptr(), 0);
            assert_eq!(partition_error(partition), None);
            std::ptr::addr_of_mut!((*partition).err)
                .cast::<c_int>()
                .write(9_999);
            let error = partition_error(partition);
            sys::rd_kafka_topic_partition_list_destroy(list);
            error
        };
        assert_eq!(error.unwrap().code, 9_999);
    }
}

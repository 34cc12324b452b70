//! The declarations of executorch.h that this example uses.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub const KIND_TENSOR: i32 = 1;
pub const FLOAT: i32 = 6;
pub const MAX_RANK: usize = 16;

#[repr(C)]
pub struct executorch_program {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct executorch_method {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct executorch_value {
    pub kind: i32,
    pub dtype: i32,
    pub rank: i32,
    pub sizes: [i64; MAX_RANK],
    pub dim_order: [u8; MAX_RANK],
    pub data: *const c_void,
    pub n_bytes: u64,
    pub as_int: i64,
    pub as_double: f64,
    pub is_dynamic: u64,
    pub reserved: [u64; 3],
}

extern "C" {
    pub fn executorch_last_error() -> *const c_char;
    pub fn executorch_program_load(
        path: *const c_char,
        program: *mut *mut executorch_program,
    ) -> c_int;
    pub fn executorch_program_free(program: *mut executorch_program);
    pub fn executorch_method_load(
        program: *const executorch_program,
        name: *const c_char,
        method: *mut *mut executorch_method,
    ) -> c_int;
    pub fn executorch_method_free(method: *mut executorch_method);
    pub fn executorch_method_input_count(
        method: *const executorch_method,
        count: *mut usize,
    ) -> c_int;
    pub fn executorch_method_output_count(
        method: *const executorch_method,
        count: *mut usize,
    ) -> c_int;
    pub fn executorch_method_input_info(
        method: *const executorch_method,
        index: usize,
        info: *mut executorch_value,
    ) -> c_int;
    pub fn executorch_method_set_tensor(
        method: *mut executorch_method,
        index: usize,
        dtype: i32,
        rank: i32,
        sizes: *const i64,
        data: *const c_void,
        n_bytes: usize,
    ) -> c_int;
    pub fn executorch_method_run(method: *mut executorch_method) -> c_int;
    pub fn executorch_method_output(
        method: *const executorch_method,
        index: usize,
        output: *mut executorch_value,
    ) -> c_int;
}

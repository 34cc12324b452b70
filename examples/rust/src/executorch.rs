//! The C interface as Rust expects it: owners that free, errors that are values, slices.

use crate::sys;
use std::ffi::{CStr, CString, NulError};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

/// What executorch_last_error() said.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<NulError> for Error {
    fn from(e: NulError) -> Self {
        Error(e.to_string())
    }
}

/// `status` of a call on this thread, as a result.
fn check(status: i32) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    // Valid until the next call on this thread, and so until it is copied.
    let text = unsafe { CStr::from_ptr(sys::executorch_last_error()) };
    Err(Error(text.to_string_lossy().into_owned()))
}

/// A method of a program. Not Sync: a handle is used by one thread at a time.
pub struct Method {
    handle: *mut sys::executorch_method,
}

unsafe impl Send for Method {}

impl Method {
    /// The method `name` of the file at `path`.
    pub fn load(path: &str, name: &str) -> Result<Method, Error> {
        let (path, name) = (CString::new(path)?, CString::new(name)?);
        let mut program = ptr::null_mut();
        let mut handle = ptr::null_mut();
        unsafe {
            check(sys::executorch_program_load(path.as_ptr(), &mut program))?;
            let loaded = check(sys::executorch_method_load(program, name.as_ptr(), &mut handle));
            sys::executorch_program_free(program); // the method keeps what it needs
            loaded?;
        }
        Ok(Method { handle })
    }

    pub fn n_inputs(&self) -> Result<usize, Error> {
        let mut n = 0;
        check(unsafe { sys::executorch_method_input_count(self.handle, &mut n) })?;
        Ok(n)
    }

    pub fn n_outputs(&self) -> Result<usize, Error> {
        let mut n = 0;
        check(unsafe { sys::executorch_method_output_count(self.handle, &mut n) })?;
        Ok(n)
    }

    /// The largest sizes that input `index` takes, if it is a tensor of float.
    pub fn float_input(&self, index: usize) -> Result<Option<Vec<i64>>, Error> {
        let mut info = MaybeUninit::<sys::executorch_value>::uninit();
        check(unsafe { sys::executorch_method_input_info(self.handle, index, info.as_mut_ptr()) })?;
        let info = unsafe { info.assume_init() };
        let is_float = info.kind == sys::KIND_TENSOR && info.dtype == sys::FLOAT;
        Ok(is_float.then(|| info.sizes[..info.rank as usize].to_vec()))
    }

    /// Copies `data`, a tensor of `sizes`, into input `index`.
    pub fn set_floats(&mut self, index: usize, sizes: &[i64], data: &[f32]) -> Result<(), Error> {
        check(unsafe {
            sys::executorch_method_set_tensor(
                self.handle,
                index,
                sys::FLOAT,
                sizes.len() as i32,
                sizes.as_ptr(),
                data.as_ptr().cast(),
                std::mem::size_of_val(data),
            )
        })
    }

    pub fn run(&mut self) -> Result<(), Error> {
        check(unsafe { sys::executorch_method_run(self.handle) })
    }

    /// Output `index` of the last run, if it is a tensor of float. The next run, which needs `&mut self`,
    /// cannot begin while it is borrowed.
    pub fn floats(&self, index: usize) -> Result<Option<&[f32]>, Error> {
        let mut value = MaybeUninit::<sys::executorch_value>::uninit();
        check(unsafe { sys::executorch_method_output(self.handle, index, value.as_mut_ptr()) })?;
        let value = unsafe { value.assume_init() };
        if value.kind != sys::KIND_TENSOR || value.dtype != sys::FLOAT {
            return Ok(None);
        }
        let n = value.n_bytes as usize / std::mem::size_of::<f32>();
        if n == 0 {
            return Ok(Some(&[]));
        }
        Ok(Some(unsafe { std::slice::from_raw_parts(value.data.cast(), n) }))
    }
}

impl Drop for Method {
    fn drop(&mut self) {
        unsafe { sys::executorch_method_free(self.handle) }
    }
}

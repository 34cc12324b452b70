//! Finds libexecutorch_c: in EXECUTORCH_PREFIX/lib, else where the linker looks.

fn main() {
    println!("cargo:rerun-if-env-changed=EXECUTORCH_PREFIX");
    if let Ok(prefix) = std::env::var("EXECUTORCH_PREFIX") {
        println!("cargo:rustc-link-search=native={prefix}/lib");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{prefix}/lib");
    }
    println!("cargo:rustc-link-lib=dylib=executorch_c");
}

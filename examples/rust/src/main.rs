//! Runs a program on inputs of zeros and prints its outputs: run_program model.pte [method]

mod executorch;
mod sys;

use executorch::{Error, Method};
use std::process::ExitCode;

fn run(path: &str, name: &str) -> Result<(), Error> {
    let mut method = Method::load(path, name)?;
    for i in 0..method.n_inputs()? {
        if let Some(sizes) = method.float_input(i)? {
            let zeros = vec![0.0; sizes.iter().product::<i64>() as usize];
            method.set_floats(i, &sizes, &zeros)?;
        }
    }
    method.run()?;
    for i in 0..method.n_outputs()? {
        let values = method.floats(i)?.unwrap_or(&[]);
        let values: Vec<String> = values.iter().map(|x| x.to_string()).collect();
        println!("output {i}: {}", values.join(" "));
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = arguments.first() else {
        eprintln!("run_program model.pte [method]");
        return ExitCode::from(2);
    };
    let name = arguments.get(1).map_or("forward", String::as_str);
    match run(path, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

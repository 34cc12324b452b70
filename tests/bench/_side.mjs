// One side of ./dev bench browser in a process of its own: node _side.mjs SIDE PACKAGE, where SIDE is
// `here` or `onnxruntime-web` and PACKAGE the file that is imported. Answers JSON commands, one a
// line, as runner.cpp describes them. One thread each.
import { readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const ARRAYS = { float32: Float32Array, int64: BigInt64Array };

async function openHere(library, { program, inputs }) {
  const module = await library.Module.load(await readFile(program));
  const given = inputs.map(({ array, sizes }) => library.Tensor.fromArray(sizes, array));
  return async () => {
    const [output] = module.forward(given);
    return { data: output.data, sizes: output.sizes };
  };
}

async function openOnnx(library, { program, inputs }) {
  library.env.wasm.numThreads = 1;
  const session = await library.InferenceSession.create(await readFile(program), {
    executionProviders: ['wasm'],
  });
  const given = inputs.map(
    ({ array, dtype, sizes }, i) => [session.inputNames[i], new library.Tensor(dtype, array, sizes)],
  );
  const feeds = Object.fromEntries(given);
  return async () => {
    const output = (await session.run(feeds))[session.outputNames[0]];
    return { data: output.data, sizes: [...output.dims] };
  };
}

async function read({ file, dtype, sizes }) {
  const bytes = await readFile(file);
  const { buffer, byteOffset } = bytes;
  const end = byteOffset + bytes.length;
  return { dtype, sizes, array: new ARRAYS[dtype](buffer.slice(byteOffset, end)) };
}

const [side, path] = process.argv.slice(2);
const open = { here: openHere, 'onnxruntime-web': openOnnx }[side];
const library = await import(pathToFileURL(path).href);
let run;

async function answer(command) {
  if (command.do === 'open') {
    const inputs = await Promise.all(command.inputs.map(read));
    const start = performance.now();
    run = await open(library, { ...command, inputs });
    const { data, sizes } = await run();
    const seconds = (performance.now() - start) / 1e3;
    await writeFile(command.output, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return { seconds, sizes };
  }
  const seconds = [];
  for (let i = 0; i < command.calls; ++i) {
    const start = performance.now();
    await run();
    seconds.push((performance.now() - start) / 1e3);
  }
  return { seconds };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answered;
  try {
    answered = await answer(JSON.parse(line));
  } catch (error) {
    answered = { error: String(error).split('\n')[0] };
  }
  console.log(JSON.stringify(answered));
}

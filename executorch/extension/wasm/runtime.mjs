/** executorch.wasm: calls of the C interface (extension/c_api/executorch.h), memory, system calls. */

import { nameOf } from './tensor.mjs';

/** Of executorch_status. */
const OUT_OF_MEMORY = 0x21;

/** The runtime refused something. `status` is the number of its error. */
export class ExecuTorchError extends Error {
  constructor(message, status) {
    super(message);
    this.name = 'ExecuTorchError';
    this.status = status;
  }
}

/** Of an ArrayBuffer, a view, a Blob or what a URL leads to; in Node also of a file. */
export async function bytesOf(source, where) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  }
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (typeof source !== 'string' && !(source instanceof URL)) {
    throw new TypeError(`${where}: found ${nameOf(source)}, expected bytes, a Blob or a URL`);
  }
  const text = String(source);
  const isNode = typeof process !== 'undefined' && process.versions?.node !== undefined;
  if (isNode && !/^(https?|data|blob):/.test(text)) {
    const { readFile } = await import('node:fs/promises');
    return new Uint8Array(await readFile(text.startsWith('file:') ? new URL(text) : text));
  }
  const response = await fetch(source);
  if (!response.ok) throw new Error(`${where}: ${text}: HTTP status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Of the C library's errno: there is no such function here. */
const ENOSYS = 52;
/** Room for one result: a pointer, a count or an executorch_value. */
const RESULT_BYTES = 256;

/** One instance, which all modules share. */
export class Runtime {
  static #shared;

  /** Starts it at the first call, and again after it was stopped. */
  static get() {
    Runtime.#shared ??= Runtime.#start();
    return Runtime.#shared;
  }

  static async #start() {
    const runtime = new Runtime();
    try {
      const code = await bytesOf(new URL('executorch.wasm', import.meta.url), 'executorch.wasm');
      const { instance } = await WebAssembly.instantiate(code, runtime.#imports());
      runtime.wasm = instance.exports;
      runtime.run('_initialize');
      runtime.results = runtime.allocate(RESULT_BYTES);
    } catch (error) {
      Runtime.#shared = undefined;
      throw error;
    }
    return runtime;
  }

  /** What the C library asks of its system: the time, and somewhere to write. */
  #imports() {
    const known = (functions) =>
      new Proxy(functions, { get: (have, name) => have[name] ?? (() => ENOSYS) });
    return {
      env: known({ emscripten_notify_memory_growth: () => {} }),
      wasi_snapshot_preview1: known({
        clock_time_get: (clock, _, at) => {
          const milliseconds = clock === 0 ? Date.now() : performance.now();
          this.view().setBigUint64(at, BigInt(Math.round(milliseconds * 1e6)), true);
          return 0;
        },
        fd_write: (_, parts, count, written) => this.#write(parts, count, written),
        proc_exit: (status) => {
          throw new Error(`executorch.wasm ended with status ${status}`);
        },
      }),
    };
  }

  #write(parts, count, written) {
    let text = '';
    let length = 0;
    for (let i = 0; i < count; ++i) {
      const at = this.view().getUint32(parts + 8 * i, true);
      const n = this.view().getUint32(parts + 8 * i + 4, true);
      text += new TextDecoder().decode(this.copyOut(at, n));
      length += n;
    }
    this.view().setUint32(written, length, true);
    if (text.trim()) console.error(text.trimEnd());
    return 0;
  }

  /** Of all memory; not to be kept, because memory grows. */
  view() {
    return new DataView(this.wasm.memory.buffer);
  }

  /**
   * Calls an exported function. What stops it, such as the end of the stack, leaves the instance
   * in an unknown state: then it is not used again, and the next Module.load() starts another.
   */
  run(name, ...args) {
    if (this.stopped) throw new Error('executorch.wasm was stopped', { cause: this.stopped });
    try {
      return this.wasm[name](...args);
    } catch (error) {
      this.stopped = error;
      Runtime.#shared = undefined;
      throw new Error(`executorch.wasm: ${name} was stopped: ${error.message}`, { cause: error });
    }
  }

  /** Calls a function of the C interface, which gives a status. */
  call(name, ...args) {
    const status = this.run(`executorch_${name}`, ...args);
    if (status === 0) return;
    const message = this.text(this.run('executorch_last_error'));
    throw new ExecuTorchError(message.replace(/^executorch_/, ''), status);
  }

  /** What a function writes to its last argument, which is left out here: a size or an address. */
  result(name, ...args) {
    this.call(name, ...args, this.results);
    return this.view().getUint32(this.results, true);
  }

  /** The address of the executorch_value that it writes there, until the next call. */
  value(name, ...args) {
    this.call(name, ...args, this.results);
    return this.results;
  }

  allocate(length) {
    const at = this.run('aligned_alloc', 64, Math.max(64, Math.ceil(length / 64) * 64)) >>> 0;
    if (at === 0) throw new ExecuTorchError(`out of memory: ${length} bytes`, OUT_OF_MEMORY);
    return at;
  }

  /** The address of a copy, which the caller frees. */
  copyIn(bytes) {
    const at = this.allocate(bytes.length);
    new Uint8Array(this.wasm.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  copyOut(at, length) {
    return this.wasm.memory.buffer.slice(at, at + length);
  }

  text(at) {
    const from = new Uint8Array(this.wasm.memory.buffer, at >>> 0);
    return new TextDecoder().decode(from.slice(0, from.indexOf(0)));
  }

  withText(text, use) {
    const at = this.copyIn(new TextEncoder().encode(`${text}\0`));
    try {
      return use(at);
    } finally {
      this.run('free', at);
    }
  }
}

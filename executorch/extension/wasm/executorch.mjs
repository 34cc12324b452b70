/**
 * Runs ExecuTorch programs (.pte) in browsers, workers and Node, over executorch.wasm beside this file.
 *
 *   import { Module, Tensor } from './executorch.mjs';
 *   const module = await Module.load('model.pte');
 *   const [y] = module.forward([Tensor.fromArray([1, 4], [1, 2, 3, 4])]);
 *   console.log(y.sizes, y.data);
 *
 * What the runtime refuses is thrown as an ExecuTorchError with its message: where, what was found,
 * what was expected. Tensors are JavaScript's own memory; a Module holds memory of the runtime
 * until delete(), or until it is collected.
 */

import { ExecuTorchError, Runtime, bytesOf } from './runtime.mjs';
import { ScalarType, Tag, Tensor, nameOf, scalarType } from './tensor.mjs';

export { ExecuTorchError, ScalarType, Tag, Tensor };

const TAGS = Object.values(Tag);

/** A program, and those of its methods that were used. */
export class Module {
  #runtime;
  #program;
  #methods = new Map();
  #handles;

  /**
   * Loads and verifies a program: its bytes, a Blob (as from a file picker), or where to fetch it
   * from; in Node, a string that is no URL is a path. Bytes are copied.
   */
  static async load(source) {
    const bytes = await bytesOf(source, 'Module.load');
    const runtime = await Runtime.get();
    return new Module(runtime, bytes);
  }

  /** Use Module.load(). */
  constructor(runtime, bytes) {
    this.#runtime = runtime;
    this.#handles = { runtime, bytes: runtime.copyIn(bytes), program: 0, methods: [] };
    try {
      const { bytes: at } = this.#handles;
      this.#program = runtime.result('program_load_memory', at, bytes.length, 1);
    } catch (error) {
      release(this.#handles);
      throw error;
    }
    this.#handles.program = this.#program;
    registry.register(this, this.#handles, this);
  }

  /** Names, sorted. */
  methods() {
    const { runtime, program } = this.#live();
    return each(runtime.result('program_method_count', program), (i) =>
      runtime.text(runtime.result('program_method_name', program, i)),
    );
  }

  getMethods() {
    return this.methods();
  }

  /** Makes a method ready to run, which the first use of it does otherwise. */
  loadMethod(name) {
    this.#method(name);
  }

  /**
   * What a method takes and gives: {name, inputs, outputs}, both lists of {name, kind}, and for
   * tensors also dtype, sizes, isDynamic, dimOrder, nbytes. Where isDynamic, a call may have smaller
   * sizes. Names are those of the exported model, '' where the program does not say.
   */
  describe(name = 'forward') {
    const { inputs, outputs } = this.#method(name);
    const plain = ({ name, tag, tensor }) =>
      tensor
        ? {
            name,
            kind: tag.name,
            dtype: tensor.scalarType.dtype,
            sizes: [...tensor.sizes],
            isDynamic: tensor.isDynamic,
            dimOrder: [...tensor.dimOrder],
            nbytes: tensor.nbytes,
          }
        : { name, kind: tag.name };
    return { name, inputs: inputs.map(plain), outputs: outputs.map(plain) };
  }

  /** The same by tags; what is no tensor has undefined in the place of sizes. */
  getMethodMeta(name) {
    const { inputs, outputs } = this.#method(name);
    return {
      name,
      inputTags: inputs.map(({ tag }) => tag),
      inputTensorMeta: inputs.map(({ tensor }) => tensor),
      outputTags: outputs.map(({ tag }) => tag),
      outputTensorMeta: outputs.map(({ tensor }) => tensor),
    };
  }

  forward(inputs) {
    return this.execute('forward', inputs);
  }

  /**
   * Runs a method; the list of what it gives. `inputs`: a Tensor, number, bigint, boolean or null,
   * or a list of them, or an object with one for each input's name: {tokens, mask}. Tensors, numbers, bigints, booleans, strings and null come out.
   */
  execute(name, inputs = []) {
    const { runtime } = this.#live();
    const method = this.#method(name);
    const given = inOrder(method.inputs, inputs, name);
    if (given.length !== method.inputs.length) {
      throw new Error(`${name}: ${given.length} inputs, expected ${method.inputs.length}`);
    }
    given.forEach((value, i) => setInput(runtime, method, name, i, value));
    runtime.call('method_run', method.handle);
    return method.outputs.map((_, i) => {
      const at = runtime.value('method_output', method.handle, i);
      return outputOf(runtime, at, `${name}: output ${i}`);
    });
  }

  /** Frees what the runtime holds for it. Any other call afterwards throws. */
  delete() {
    registry.unregister(this);
    release(this.#handles);
    this.#methods.clear();
    this.#program = 0;
  }

  #live() {
    if (!this.#program) throw new Error('Module: deleted');
    return { runtime: this.#runtime, program: this.#program };
  }

  #method(name) {
    const { runtime, program } = this.#live();
    let method = this.#methods.get(name);
    if (!method) {
      const handle = runtime.withText(name, (text) =>
        runtime.result('method_load', program, text),
      );
      this.#handles.methods.push(handle);
      const infos = (kind) =>
        each(runtime.result(`method_${kind}_count`, handle), (i) => ({
          name: runtime.text(runtime.result(`method_${kind}_name`, handle, i)),
          ...infoOf(runtime, runtime.value(`method_${kind}_info`, handle, i)),
        }));
      method = { handle, inputs: infos('input'), outputs: infos('output') };
      this.#methods.set(name, method);
    }
    return method;
  }
}

function each(count, make) {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** The values of a call in the order of a method's inputs. */
function inOrder(inputs, given, method) {
  if (Array.isArray(given)) return given;
  const isNamed = given !== null && Object.getPrototypeOf(given) === Object.prototype;
  if (!isNamed) return [given];
  const names = inputs.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (!name || !names.includes(name)) {
      const known = names.filter(Boolean).join(', ') || 'none, the program has no names';
      throw new Error(`${method}: found an input '${name}', expected ${known}`);
    }
  }
  return names.map((name, i) => {
    if (name in given) return given[name];
    throw new Error(`${method}: input ${i} (${name}) was not given`);
  });
}

/** Frees methods, program and bytes, in this order; a second time nothing. */
function release(handles) {
  const { runtime, methods, program, bytes } = handles;
  if (runtime.stopped) return;
  for (const method of methods) runtime.run('executorch_method_free', method);
  runtime.run('executorch_program_free', program);
  runtime.run('free', bytes);
  Object.assign(handles, { methods: [], program: 0, bytes: 0 });
}

const registry = new FinalizationRegistry(release);

/** What a method declares, of the executorch_value at an address. */
function infoOf(runtime, at) {
  const tag = TAGS[runtime.view().getInt32(at, true)];
  if (tag !== Tag.Tensor) return { tag };
  const { scalarType, sizes, dimOrder, nbytes, isDynamic } = tensorFields(runtime, at);
  return { tag, tensor: Object.freeze({ scalarType, sizes, dimOrder, nbytes, isDynamic }) };
}

/** The offsets are those that module.cpp asserts. */
function tensorFields(runtime, at) {
  const view = runtime.view();
  const rank = view.getInt32(at + 8, true);
  const dtype = view.getInt32(at + 4, true);
  return {
    scalarType:
      Object.values(ScalarType).find(({ value }) => value === dtype) ??
      scalarType(`type ${dtype}`, dtype, `type ${dtype}`, Uint8Array),
    sizes: each(rank, (i) => Number(view.getBigInt64(at + 16 + 8 * i, true))),
    dimOrder: each(rank, (i) => view.getUint8(at + 144 + i)),
    data: view.getUint32(at + 160, true),
    nbytes: Number(view.getBigUint64(at + 168, true)),
    isDynamic: view.getBigUint64(at + 192, true) !== 0n,
  };
}

function outputOf(runtime, at, where) {
  const view = runtime.view();
  const tag = TAGS[view.getInt32(at, true)];
  if (tag === Tag.None) return null;
  if (tag === Tag.Int) return view.getBigInt64(at + 176, true);
  if (tag === Tag.Bool) return view.getBigInt64(at + 176, true) !== 0n;
  if (tag === Tag.Double) return view.getFloat64(at + 184, true);
  const { scalarType, sizes, dimOrder, data, nbytes } = tensorFields(runtime, at);
  const bytes = runtime.copyOut(data, nbytes);
  if (tag === Tag.String) return new TextDecoder().decode(bytes);
  if (tag !== Tag.Tensor) throw new TypeError(`${where}: a list, expected a tensor or a number`);
  return new Tensor(sizes, new scalarType.array(bytes), scalarType, dimOrder);
}

function setInput(runtime, method, name, index, value) {
  const { name: input, tag, tensor } = method.inputs[index];
  const where = `${name}: input ${index}${input && ` (${input})`}`;
  if (value instanceof Tensor) {
    const hasRank = tensor?.dimOrder.length === value.dimOrder.length; // else the runtime says so
    if (hasRank && tensor.dimOrder.join() !== value.dimOrder.join()) {
      throw new Error(
        `${where}: dimensions in the order [${value.dimOrder}], expected [${tensor.dimOrder}]`,
      );
    }
    return setTensor(runtime, method.handle, index, value);
  }
  if (value === null && tag === Tag.None) return undefined;
  if (typeof value === 'boolean') {
    return runtime.call('method_set_bool', method.handle, index, Number(value));
  }
  if (typeof value === 'bigint') {
    return runtime.call('method_set_int', method.handle, index, value);
  }
  if (typeof value === 'number') {
    return runtime.call('method_set_double', method.handle, index, value);
  }
  throw new TypeError(`${where}: found ${nameOf(value)}, expected a value for ${tag.name}`);
}

function setTensor(runtime, handle, index, tensor) {
  const { data, sizes, scalarType } = tensor;
  const from = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const bytes = runtime.copyIn(from);
  try {
    const wide = runtime.copyIn(new Uint8Array(BigInt64Array.from(sizes, BigInt).buffer));
    try {
      const where = [wide, bytes, from.length];
      runtime.call('method_set_tensor', handle, index, scalarType.value, sizes.length, ...where);
    } finally {
      runtime.run('free', wide);
    }
  } finally {
    runtime.run('free', bytes);
  }
}

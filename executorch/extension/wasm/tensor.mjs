/** Tensors and what they are made of: JavaScript's own memory, nothing of executorch.wasm. */

/** Element types, with PyTorch's numbers. Half-precision numbers are given as their bits. */
export const ScalarType = Object.freeze({
  Byte: scalarType('Byte', 0, 'uint8', Uint8Array),
  Char: scalarType('Char', 1, 'int8', Int8Array),
  Short: scalarType('Short', 2, 'int16', Int16Array),
  Int: scalarType('Int', 3, 'int32', Int32Array),
  Long: scalarType('Long', 4, 'int64', BigInt64Array),
  Half: scalarType('Half', 5, 'float16', Uint16Array),
  Float: scalarType('Float', 6, 'float32', Float32Array),
  Double: scalarType('Double', 7, 'float64', Float64Array),
  Bool: scalarType('Bool', 11, 'bool', Uint8Array),
  BFloat16: scalarType('BFloat16', 15, 'bfloat16', Uint16Array),
  UInt16: scalarType('UInt16', 27, 'uint16', Uint16Array),
  UInt32: scalarType('UInt32', 28, 'uint32', Uint32Array),
  UInt64: scalarType('UInt64', 29, 'uint64', BigUint64Array),
});

/** One of these; also what stands for a number that is not listed. */
export function scalarType(name, value, dtype, array) {
  return Object.freeze({ name, value, dtype, array });
}

/** What a value is, with the numbers of executorch_kind. */
export const Tag = Object.freeze(
  Object.fromEntries(
    ['None', 'Tensor', 'Int', 'Double', 'Bool', 'String', 'Other'].map((name, value) => [
      name,
      Object.freeze({ name, value }),
    ]),
  ),
);
/** Elements in a typed array, without gaps, with sizes and an element type. */
export class Tensor {
  /** `data` is kept, not copied. `dimOrder`: dimensions as they lie in memory, outermost first. */
  constructor(sizes, data, type, dimOrder = sizes.map((_, i) => i)) {
    this.sizes = sizes;
    this.data = data;
    this.scalarType = type;
    this.dimOrder = dimOrder;
  }

  /** As 'float32'. */
  get dtype() {
    return this.scalarType.dtype;
  }

  /**
   * Of a typed array, whose class says the type unless `type` does, or of an array of numbers
   * (Float), bigints (Long) or booleans (Bool).
   * Throws Error unless there are as many elements as `sizes` say, TypeError for another array.
   */
  static fromArray(sizes, array, type = typeOf(array), dimOrder = undefined) {
    const checked = [...sizes].map(checkedSize);
    const required = checked.reduce((product, size) => product * size, 1);
    if (array.length !== required) {
      throw new Error(`Tensor of [${checked}]: required ${required} elements, given ${array.length}`);
    }
    const order = dimOrder && [...dimOrder].map(Number);
    if (order && [...order].sort((a, b) => a - b).join() !== checked.map((_, i) => i).join()) {
      throw new Error(`Tensor of [${checked}]: dimension order [${order}] is no order of its dimensions`);
    }
    const isTyped = array instanceof type.array;
    const data = isTyped ? array : type.array.from(array, converter(type));
    return new Tensor(checked, data, type, order);
  }

  static full(sizes, value, type = typeOf([value])) {
    const count = [...sizes].reduce((product, size) => product * checkedSize(size), 1);
    return Tensor.fromArray(sizes, new type.array(count).fill(converter(type)(value)), type);
  }

  static zeros(sizes, type = ScalarType.Float) {
    return Tensor.full(sizes, 0, type);
  }

  static ones(sizes, type = ScalarType.Float) {
    return Tensor.full(sizes, 1, type);
  }

  /** Of what an iterator gives. */
  static fromIter(sizes, iterator, type = ScalarType.Float) {
    return Tensor.fromArray(sizes, [...iterator], type);
  }

  /** Without effect: a tensor's memory is JavaScript's. */
  delete() {}
}

function checkedSize(size) {
  const number = Number(size);
  if (!Number.isInteger(number) || number < 0) {
    throw new RangeError(`a size of a tensor: found ${size}, expected an integer from 0`);
  }
  return number;
}

function typeOf(array) {
  if (ArrayBuffer.isView(array)) {
    const known = [ScalarType.Byte, ScalarType.UInt16, ...Object.values(ScalarType)];
    const type = known.find((candidate) => array instanceof candidate.array);
    if (type) return type;
    if (array instanceof Uint8ClampedArray) return ScalarType.Byte;
  } else if (Array.isArray(array)) {
    const types = { number: ScalarType.Float, bigint: ScalarType.Long, boolean: ScalarType.Bool };
    const type = array.length === 0 ? ScalarType.Float : types[typeof array[0]];
    if (type) return type;
  }
  throw new TypeError(`Tensor: found ${nameOf(array)}, expected a typed array, numbers or bigints`);
}

function converter(type) {
  return type.array === BigInt64Array || type.array === BigUint64Array ? BigInt : Number;
}

/** Of a value's class, for messages. */
export function nameOf(value) {
  return value === null ? 'null' : (value?.constructor?.name ?? typeof value);
}

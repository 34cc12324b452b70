// What the tests' expressions use, beside the package itself.
import { ExecuTorchError, Module, ScalarType, Tag, Tensor } from './executorch.mjs';
import { Runtime, bytesOf } from './runtime.mjs';

export { ExecuTorchError, Module, Runtime, ScalarType, Tag, Tensor };

/** Of a file beside this one. */
export const bytes = (name) => bytesOf(new URL(name, import.meta.url), 'bytes');

export const load = (name) => Module.load(new URL(name, import.meta.url));

/** A tensor of what Python wrote: {dtype, sizes, data}. */
export function read({ dtype, sizes, data }) {
  const type = Object.values(ScalarType).find((candidate) => candidate.dtype === dtype);
  return Tensor.fromArray(sizes, data, type);
}

/** The same the other way. */
export function written(value) {
  if (!(value instanceof Tensor)) return typeof value === 'bigint' ? Number(value) : value;
  return { dtype: value.dtype, sizes: value.sizes, data: Array.from(value.data, Number) };
}

/** What is thrown, as text; null if nothing is. */
export async function refusal(action) {
  try {
    await action();
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
  return null;
}

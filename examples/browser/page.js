// Loads a program, shows what its first method takes, runs it and shows what it gives.
import { Module, ScalarType, Tensor } from './executorch.mjs';

const RUNS = 5; // of which the median's time is shown
const SHOWN = 32; // elements of an output

const find = (id) => document.getElementById(id);
const typeOf = (dtype) => Object.values(ScalarType).find((type) => type.dtype === dtype);
const described = ({ name, kind, dtype, sizes, isDynamic }) =>
  (name && `${name}: `) +
  (kind === 'Tensor' ? `${dtype}[${sizes.join(', ')}]${isDynamic ? ', or smaller' : ''}` : kind);

let module;
let method;

/** Runs an action; what it throws is shown. */
async function guarded(action) {
  find('error').value = '';
  try {
    await action();
  } catch (error) {
    find('error').value = error.message;
  }
}

async function open(source) {
  module?.delete();
  module = undefined;
  find('run').disabled = true;
  find('inputs').replaceChildren();
  find('outputs').value = find('program').textContent = find('time').textContent = '';
  module = await Module.load(source);
  const names = module.methods();
  method = names.includes('forward') ? 'forward' : names[0];
  const { inputs, outputs } = module.describe(method);
  const list = (values) => values.map(described).join(', ');
  find('program').textContent = `${method}(${list(inputs)}) → ${list(outputs)}`;
  find('inputs').replaceChildren(...inputs.map(inputField));
  find('run').disabled = false;
}

/** Sizes, and elements: a list, or one number for all. */
function inputField(input, index) {
  const field = document.createElement('fieldset');
  const title = document.createElement('legend');
  title.textContent = input.name ? described(input) : `input ${index}: ${described(input)}`;
  const text = (name, value, tag = 'input') => {
    const element = document.createElement(tag);
    Object.assign(element, { name: `${name}${index}`, value, ariaLabel: `${name} ${index}` });
    return element;
  };
  if (input.kind === 'Tensor') field.append(title, text('sizes', input.sizes.join('x')));
  else field.append(title);
  field.append(text('elements', input.dtype?.startsWith('float') ? 'random' : '0', 'textarea'));
  return field;
}

function number(word) {
  const value = Number(word);
  if (Number.isNaN(value)) throw new Error(`found ${word}, expected a number`);
  return value;
}

/** What the fields of an input say. */
function inputValue({ kind, dtype }, index) {
  const said = (name) => find('inputs').elements[`${name}${index}`].value.trim();
  const words = said('elements').split(/[\s,]+/);
  if (kind === 'Int') return BigInt(number(words[0]));
  if (kind === 'Bool') return words[0] === 'true';
  if (kind !== 'Tensor') return kind === 'None' ? null : number(words[0]);
  const sizes = said('sizes') === '' ? [] : said('sizes').split('x').map(number);
  if (words.length > 1) return Tensor.fromArray(sizes, words.map(number), typeOf(dtype));
  if (words[0] !== 'random') return Tensor.full(sizes, number(words[0]), typeOf(dtype));
  const tensor = Tensor.zeros(sizes, typeOf(dtype));
  tensor.data.forEach((_, i, data) => (data[i] = Math.random()));
  return tensor;
}

async function run() {
  const inputs = module.describe(method).inputs.map(inputValue);
  const times = [];
  let outputs;
  for (let i = 0; i < RUNS; ++i) {
    const start = performance.now();
    outputs = module.execute(method, inputs);
    times.push(performance.now() - start);
  }
  const median = times.sort((a, b) => a - b)[RUNS >> 1];
  find('time').textContent = `${median.toFixed(2)} ms, the median of ${RUNS} runs`;
  find('outputs').value = outputs.map(outputText).join('\n');
}

function outputText(value) {
  if (!(value instanceof Tensor)) return String(value);
  const rest = value.data.length > SHOWN ? ', …' : '';
  const elements = Array.from(value.data.subarray(0, SHOWN), (x) =>
    Number.isInteger(x) || typeof x === 'bigint' ? x : x.toPrecision(6),
  );
  return `${value.dtype}[${value.sizes.join(', ')}]: ${elements.join(', ')}${rest}`;
}

find('file').addEventListener('change', ({ target }) => guarded(() => open(target.files[0])));
find('open').addEventListener('click', () => guarded(() => open(find('url').value)));
find('run').addEventListener('click', () => guarded(run));
find('inputs').addEventListener('submit', (event) => event.preventDefault());
const wanted = new URLSearchParams(location.search).get('model');
if (wanted) {
  find('url').value = wanted;
  guarded(() => open(wanted));
}

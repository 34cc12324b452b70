// Node, used like a browser's page: evaluates the expressions that arrive, one JSON text a line, and
// answers each with {value} or {error}.
import { createInterface } from 'node:readline';

Object.assign(globalThis, await import(new URL('helpers.mjs', `file://${process.cwd()}/`)));
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { value: await (0, eval)(JSON.parse(line)) };
  } catch (error) {
    answer = { error: error.stack };
  }
  console.log(JSON.stringify(answer));
}

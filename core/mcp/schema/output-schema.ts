// Compiles a tool's output schema: from what a handler returned to the JSON value that clients receive.
import { toJson } from '../encode-bytes.ts'
import type { StandardSchema } from '../infer.ts'
import type { JsonSchema } from '../protocol.ts'
import { explainIssues } from './explain-errors.ts'
import { type Checked, type CompiledSchema, compileJsonSchema, compileSchema, isStandardSchema } from './schema.ts'

export interface OutputSchema {
  /** The schema that clients are shown. */
  readonly json: JsonSchema
  /**
   * The value as JSON holds it, parsed by the schema library if there is one. Always valid against `json`. Throws a
   * TypeError for a value that JSON cannot hold.
   */
  encode(value: unknown): Checked | Promise<Checked>
}

/** Compiles an output schema. Throws what `compileSchema` throws, also for a library's JSON Schema that ajv cannot compile. */
export function compileOutput(schema: JsonSchema | StandardSchema): OutputSchema {
  const { json, validate } = compileSchema(schema, 'output')
  if (!isStandardSchema(schema)) return { json, encode: value => encodeJson(value, validate) }
  // Libraries can return a value that their own JSON Schema refuses, such as a text that is trimmed after its length check.
  const matches = compileJsonSchema(json, 'output')
  const encodeParsed = (parsed: Checked) => (parsed.ok ? encodeJson(parsed.value, matches) : parsed)
  return {
    json,
    encode(value) {
      const parsed = parse(validate, value)
      return parsed instanceof Promise ? parsed.then(encodeParsed) : encodeParsed(parsed)
    },
  }
}

/** Parses a value as the handler returned it or, if it is refused, as JSON holds it: a Date inside is a text there. */
function parse(validate: CompiledSchema['validate'], value: unknown): Checked | Promise<Checked> {
  const retry = (first: Checked) =>
    first.ok || typeof value !== 'object' || value === null ? first : validate(JSON.parse(toJson(value) ?? 'null'))
  const first = validate(value)
  return first instanceof Promise ? first.then(retry) : retry(first)
}

/** Checks a value as JSON: functions and inherited properties are removed, `toJSON` is called, bytes become base64. */
function encodeJson<Result>(value: unknown, validate: (value: unknown) => Result): Result | Checked {
  const text = toJson(value)
  if (text === undefined) return { ok: false, problems: explainIssues([{ message: 'must be a JSON value' }], 'output') }
  return validate(JSON.parse(text))
}

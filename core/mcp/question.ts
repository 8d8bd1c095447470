// A request to the client, what the client must declare for it, and which answers fit.
import { isObject } from './is-object.ts'
import type { ClientCapabilities, ElicitParams, JsonSchema, SampleParams } from './protocol.ts'
import { compileSchema } from './schema/schema.ts'
import { withoutNulls } from './without-nulls.ts'

/** A request of a handler to its client. */
export type Question =
  | { readonly method: 'elicitation/create'; readonly params: ElicitParams }
  | { readonly method: 'sampling/createMessage'; readonly params: SampleParams }
  | { readonly method: 'roots/list'; readonly params: Record<string, never> }

/** The capability that the client must declare for this question; undefined if it did. */
export function missingCapability(
  { method, params }: Question,
  has: ClientCapabilities,
): ClientCapabilities | undefined {
  if (method === 'roots/list') return has.roots ? undefined : { roots: {} }
  if (method === 'elicitation/create') {
    const mode = params.mode ?? 'form'
    const { elicitation } = has
    // An empty declaration means forms (client/elicitation, "Capabilities").
    const declared = elicitation && (mode === 'form' && !elicitation.url ? elicitation : elicitation[mode])
    return declared ? undefined : { elicitation: { [mode]: {} } }
  }
  const { sampling } = has
  const tools = (params.tools || params.toolChoice) && !sampling?.tools
  const context = params.includeContext && params.includeContext !== 'none' && !sampling?.context
  if (sampling && !tools && !context) return undefined
  return { sampling: { ...(tools && { tools: {} }), ...(context && { context: {} }) } }
}

/** A client's answer without the optional members that are null. */
export function readAnswer({ method }: Question, answer: unknown): unknown {
  if (!isObject(answer)) return answer
  const fields = withoutNulls(answer)
  const { content, roots } = fields
  if (method === 'elicitation/create' && isObject(content)) return { ...fields, content: withoutNulls(content) }
  if (method !== 'roots/list' || !Array.isArray(roots)) return fields
  return { ...fields, roots: roots.map(root => (isObject(root) ? withoutNulls(root) : root)) }
}

const isRoot = (root: unknown) =>
  isObject(root) && typeof root['uri'] === 'string' && ['string', 'undefined'].includes(typeof root['name'])

const isContentBlock = (block: unknown) => isObject(block) && typeof block['type'] === 'string'

/** Whether an answer is valid for the question and, for a form, for its schema. */
export async function isAnswer(question: Question, given: unknown): Promise<boolean> {
  const { method, params } = question
  const answer = readAnswer(question, given)
  if (!isObject(answer)) return false
  if (method === 'roots/list') {
    return Array.isArray(answer['roots']) && answer['roots'].every(isRoot)
  }
  if (method === 'sampling/createMessage') {
    const { model, role, content } = answer
    const blocks = Array.isArray(content) ? content : [content]
    return typeof model === 'string' && (role === 'user' || role === 'assistant') && blocks.every(isContentBlock)
  }
  if (answer['action'] === 'decline' || answer['action'] === 'cancel') return true
  if (answer['action'] !== 'accept') return false
  return params.mode === 'url' || (await fitsForm(params.requestedSchema, answer['content']))
}

async function fitsForm(schema: JsonSchema, content: unknown): Promise<boolean> {
  return (await compileSchema(schema, 'input').validate(content)).ok
}

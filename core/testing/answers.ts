// Test responses to client requests of a handler, by name, by kind or in order.
import { REQUEST_NAMES } from '../mcp/calls/client-requests.ts'
import { compileSchema } from '../mcp/schema/schema.ts'
import type { ElicitParams, ElicitResult, RootsResult, SampleParams, SampleResult } from '../mcp/wire/protocol.ts'

/** A client request of a handler: `ctx.elicit`, `ctx.sample` or `ctx.roots`. */
export type Ask =
  | { readonly kind: 'elicit'; readonly key: string; readonly params: ElicitParams }
  | { readonly kind: 'sample'; readonly key: string; readonly params: SampleParams }
  | { readonly kind: 'roots'; readonly key: string; readonly params: object }

type AskResult = ElicitResult | SampleResult | RootsResult

/** A response, or a function that creates it. */
export type Answer = AskResult | ((ask: Ask) => AskResult | Promise<AskResult>)

/** An array in request order, an object by key (`elicit-1`) or kind (`elicit`), or one function. */
export type Answers = readonly Answer[] | Readonly<Record<string, Answer>> | Extract<Answer, (ask: Ask) => unknown>

const EXAMPLES: Readonly<Record<Ask['kind'], string>> = {
  elicit: "{ action: 'accept', content: { … } }",
  sample: "{ role: 'assistant', model: 'test', content: { type: 'text', text: '…' } }",
  roots: "{ roots: [{ uri: 'file:///project' }] }",
}

const quoted = ({ kind, params }: Ask) => (kind === 'elicit' ? ` ${JSON.stringify(params.message)}` : '')

async function explainMismatch({ kind, params }: Ask, answer: AskResult | undefined): Promise<string> {
  if (kind === 'elicit' && answer !== undefined && 'action' in answer && 'requestedSchema' in params) {
    const checked = await compileSchema(params.requestedSchema, 'input').validate(answer.content)
    if (answer.action === 'accept' && !checked.ok) return checked.problems
  }
  return `write it as ${EXAMPLES[kind]}`
}

const isList = (answers: Answers): answers is readonly Answer[] => Array.isArray(answers)

export type Responder = ReturnType<typeof createResponder>

export function createResponder(answers: Answers = []) {
  const asks: Ask[] = []
  const results = new Map<string, AskResult>()

  function find(ask: Ask): Answer | undefined {
    if (typeof answers === 'function') return answers
    if (isList(answers)) return answers[asks.length - 1]
    const named = Object.hasOwn(answers, ask.key) ? answers[ask.key] : undefined
    return named ?? (Object.hasOwn(answers, ask.kind) ? answers[ask.kind] : undefined)
  }

  return {
    asks,
    /** Rejects if there is no test response. `key`: undefined where clients do not receive keys. */
    async answer(method: string, params: unknown, key?: string): Promise<AskResult> {
      const kind = REQUEST_NAMES[method as keyof typeof REQUEST_NAMES]
      const ordinal = asks.filter(ask => ask.kind === kind).length + 1
      const ask = { kind, key: key ?? `${kind}-${ordinal}`, params } as Ask
      if (asks.some(earlier => earlier.key === ask.key)) {
        const why = await explainMismatch(ask, results.get(ask.key))
        throw new Error(`the answer to "${ask.key}"${quoted(ask)} does not match the request: ${why}`)
      }
      asks.push(ask)
      const answer = find(ask)
      if (answer !== undefined) {
        const result = typeof answer === 'function' ? await answer(ask) : answer
        results.set(ask.key, result)
        return result
      }
      const place = isList(answers) && answers.length > 0 ? `answer ${asks.length} of the list` : `'${ask.key}'`
      throw new Error(
        `the handler sent a request (${kind})${quoted(ask)} and the test has no response: add ${place}, as in ` +
          `answers: { '${ask.key}': ${EXAMPLES[kind]} }`,
      )
    },
  }
}

// Requests about tasks, as whoever is logged in at the server: of 2026-07-28, one POST each.

import { readBody } from '../../client/http.ts'
import { printable } from '../../client/text.ts'
import { isObject, type JsonObject, StartError } from '../../core/index.ts'
import { META, MODERN_REVISION } from '../../core/transport.ts'
import { openAccounts, openAuthFetch } from '../client/account.ts'
import { explainFailure } from '../client/connect.ts'
import { checkServerUrl } from '../client/logins.ts'
import { headersOf, readReach } from '../client/reach.ts'
import type { SERVER_OPTIONS } from '../client/with-server.ts'
import type { CommandContext } from '../context.ts'
import { isDeeper } from '../lock/lock-file.ts'
import type { VerbValues } from '../verb.ts'
import { version } from '../version.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
/** Characters of what a server says of an error. */
const MAX_WORDS = 4_000
/** Bytes of an answer, and levels of its JSON. */
const MAX_BODY = 16 * 2 ** 20
const MAX_LEVELS = 200
/** Milliseconds for an answer, to its end. */
const PATIENCE = 30_000

/** Asks the server one thing. Throws a StartError with what it says. */
export type AskTasks = (method: string, params: JsonObject) => Promise<JsonObject>

const bodyOf = (method: string, params: JsonObject) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: {
    ...params,
    _meta: {
      [META.protocolVersion]: MODERN_REVISION,
      [META.clientInfo]: { name: 'mcp-host', version },
      [META.clientCapabilities]: { extensions: { [EXTENSION]: {} } },
    },
  },
})

/** The answer, be it JSON or the last event of a stream. */
function answerIn(text: string): unknown {
  const lines = text.split('\n').filter(line => line.startsWith('data: ') && line.length > 6)
  try {
    return JSON.parse(lines.at(-1)?.slice(6) ?? text)
  } catch {
    return undefined
  }
}

function resultOf(url: string, status: number, text: string): JsonObject {
  const answer = answerIn(text)
  if (isDeeper(answer, MAX_LEVELS)) throw new StartError(`${url} answered with JSON that is too deep to be shown`)
  const { result, error } = isObject(answer) ? answer : {}
  if (isObject(result)) return result as JsonObject
  if (!isObject(error))
    throw new StartError(`${url} answered HTTP ${status}, and no JSON-RPC; check the path of the URL`)
  const { code, message } = error
  const fix = code === -32601 ? '; it has no tasks, or cannot list them' : ''
  const number = typeof code === 'number' ? code : 'without a number'
  throw new StartError(`the server answered error ${number}: ${printable(String(message), MAX_WORDS)}${fix}`)
}

/** For the server of a URL, with the login or the headers of the command line. */
export async function openTasks(
  context: CommandContext,
  given: string,
  values: VerbValues<typeof SERVER_OPTIONS>,
  signal: AbortSignal,
  patience = PATIENCE,
): Promise<AskTasks> {
  const url = checkServerUrl(given)
  const reach = readReach(context, values)
  const accounts = openAccounts(context, reach)
  const login = await accounts.recall(url, values.profile)
  const send = headersOf(context, reach, login).has('authorization')
    ? accounts.fetchFor(login)
    : await openAuthFetch(accounts, login, { interactive: 'never' })
  return async (method, params) => {
    const name = params['taskId']
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': MODERN_REVISION,
      'Mcp-Method': method,
      ...(typeof name === 'string' && { 'Mcp-Name': name }),
    }
    const late = AbortSignal.timeout(patience)
    try {
      const response = await send(url, {
        method: 'POST',
        headers,
        body: JSON.stringify(bodyOf(method, params)),
        signal: AbortSignal.any([signal, late]),
      })
      const { bytes, cut } = await readBody(response, MAX_BODY)
      if (cut)
        throw new StartError(`${url} answered with more than ${MAX_BODY / 2 ** 20} MB, which nothing of a task has`)
      return resultOf(url, response.status, new TextDecoder().decode(bytes))
    } catch (error) {
      if (late.aborted && !signal.aborted) throw new StartError(`${url} did not answer within ${patience / 1000} s`)
      throw explainFailure(error, login)
    }
  }
}

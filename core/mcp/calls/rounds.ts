// Rounds of a call: its handler ends with requests to the client, and runs again with the responses and its own state.

import type { CatalogItem } from '../definitions/catalog.ts'
import { ToolError } from '../definitions/tool-error.ts'
import { isObject } from '../wire/message.ts'
import type { ClientCapabilities } from '../wire/protocol.ts'
import type { Call, RequestSender } from './call.ts'
import {
  addCapabilities,
  type Bindings,
  bindingOf,
  capabilityError,
  inputRequired,
  isValidResponse,
  missingCapability,
  parseResponse,
  recordMethod,
  requireCapability,
  sendLive,
} from './client-requests.ts'
import { type InputRequest, type OpenRound, sealState } from './request-state.ts'

/** The state and responses that a handler receives in a later round. */
export interface Round {
  readonly state: unknown
  /** Responses by key, validated against their requests. */
  readonly responses: Readonly<Record<string, unknown>>
}

/**
 * Returned by a handler to send requests to the client. The handler runs again with the responses: see `roundOf`.
 * `state`: JSON, kept in the sealed `requestState` of a 2026-07-28 client. `refused` is called if the requests cannot
 * be sent.
 */
export class InputRequired {
  readonly requests: Readonly<Record<string, InputRequest>>
  readonly state: unknown
  readonly refused: (() => void) | undefined

  constructor(requests: Readonly<Record<string, InputRequest>>, state: unknown, refused?: () => void) {
    this.requests = requests
    this.state = state
    this.refused = refused
  }
}

/** Maximum rounds of a call whose requests are sent on the client's stream. */
const MAX_LIVE_ROUNDS = 32

/** Throws `missingCapability` with everything that the client lacks. */
function requireCapabilities(call: Call, item: CatalogItem, requests: readonly InputRequest[]) {
  const missing: ClientCapabilities = {}
  for (const request of requests) {
    recordMethod(call, request)
    addCapabilities(missing, missingCapability(request, call.client.capabilities))
  }
  if (Object.keys(missing).length > 0) throw capabilityError(call, item, missing)
}

export function sealRound(
  call: Call,
  item: CatalogItem,
  round: OpenRound,
  { keys, clock }: Pick<Bindings, 'keys' | 'clock'>,
): object {
  const [key] = keys
  if (!key) throw new Error('no key to encrypt requestState')
  requireCapabilities(call, item, Object.values(round.requests))
  return inputRequired(round.requests, sealState({ round }, bindingOf(call, item), key, clock.now()))
}

/** Reads the next round of a 2026-07-28 client; undefined if a response is missing or invalid (requests are resent). */
export async function readRound({ params }: Call, { requests, state }: OpenRound): Promise<Round | undefined> {
  const { inputResponses } = params
  const received = isObject(inputResponses) ? inputResponses : {}
  const responses: Record<string, unknown> = {}
  for (const [key, request] of Object.entries(requests)) {
    const response = parseResponse(request, Object.hasOwn(received, key) ? received[key] : undefined)
    if (!(await isValidResponse(request, response))) return undefined
    responses[key] = response
  }
  return { state, responses }
}

export async function sendRound(
  sender: RequestSender,
  call: Call,
  { requests, state }: InputRequired,
  rounds: number,
): Promise<Round> {
  if (rounds > MAX_LIVE_ROUNDS) throw new ToolError(`A call has at most ${MAX_LIVE_ROUNDS} rounds of requests.`)
  const entries = Object.entries(requests)
  for (const [, request] of entries) requireCapability(call, request)
  const responses = await Promise.all(
    entries.map(async ([key, request]) => [key, await sendLive(sender, call, request, call.signal, key)] as const),
  )
  call.signal.throwIfAborted()
  return { state, responses: Object.fromEntries(responses) }
}

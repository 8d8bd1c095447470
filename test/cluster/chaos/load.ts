// The load of a chaos run: clients that call a tool with numbered progress, and clients that subscribe to resources
// with numbered changes.
import type { RpcMessage } from '../../support/rpc.ts'
import type { GoodClient } from './resilient-client.ts'
import { Sequence } from './tally.ts'

/** Numbered events of one call. */
export const EVENTS = 40
/** Addresses of the changes: number `n` is of the one that is left over when `n` is divided by this. */
export const ADDRESSES = 64

/** A change that comes this much later than a newer one is still told from one that skips almost all addresses. */
const OLDER = 32

export const addressOf = (number: number): string => `load://changes/${number % ADDRESSES}`

/** How far the changes have come. */
export interface Announced {
  count: number
  /** Numbers that were announced again, because nobody knows whether they had been: they may be heard twice. */
  readonly again: ReadonlySet<number>
}

/** One call after the other until it is enough; each is repeated until it has its result. */
export async function callUntil(enough: () => boolean, client: GoodClient): Promise<void> {
  await client.open()
  for (let call = 0; !enough(); call++) {
    for (let attempt = 0; !(await callOnce(client, `call ${call}, attempt ${attempt}`)); attempt++);
    client.tally.calls++
  }
  client.tally.finished++
}

/** True when the call had its result. */
async function callOnce(client: GoodClient, progressToken: string): Promise<boolean> {
  const { tally, random } = client
  const sequence = new Sequence(tally)
  const args = { events: EVENTS, pace: 10 + random.below(100) }
  const params = { name: 'stream', arguments: args, _meta: { progressToken } }
  const fate = await client.call('tools/call', params, message => {
    if (message.params?.progressToken === progressToken) sequence.came(message.params.progress)
    else tally.foreign++
  })
  if (fate.kind !== 'answered') return false
  const { result, error } = fate.value
  if (error?.data?.reason === 'node-lost') {
    tally.nodeLost++
    return false
  }
  if (result?.content?.[0]?.text !== `done ${EVENTS}`)
    throw new Error(`a call was answered ${JSON.stringify(fate.value)}`)
  sequence.end(EVENTS)
  return true
}

/** Watches all addresses until `enough`, and until it was told of every change that there was by then. */
export async function listenUntil(enough: () => boolean, client: GoodClient, announced: Announced, ready: () => void) {
  const { tally } = client
  let sequence: Sequence | undefined
  let target: number | undefined
  await client.open()
  await watchAll(client)

  /** The number that the listener had come to: of what it reads late, much more may be announced by now. */
  let known = announced.count

  /** The number that the address stands for: of those with this address, the one next to what is known. */
  const numberOf = (address: number) => {
    const first = Math.max(1, known - OLDER)
    return first + ((address + ADDRESSES - (first % ADDRESSES)) % ADDRESSES)
  }

  /** After "anything may have changed" come all the addresses, and they say no more than that. */
  let ignored = 0
  const heard = (message: RpcMessage): boolean => {
    if (message.method === 'notifications/tools/list_changed') {
      tally.toldAnew++
      sequence = undefined
      ignored = ADDRESSES
    }
    const [, address] = /^load:\/\/changes\/(\d+)$/.exec(message.params?.uri ?? '') ?? []
    if (address === undefined) return false
    if (ignored > 0) {
      if (--ignored === 0) tally.toldWhole++
      return false
    }
    const number = numberOf(Number(address))
    if (number === sequence?.last && announced.again.has(number)) return false
    sequence ??= new Sequence(tally, number - 1)
    sequence.came(number)
    known = sequence.last
    if (enough()) target ??= announced.count
    return target !== undefined && number >= target
  }

  for (;;) {
    const listening = client.listen(heard)
    ready()
    const fate = await listening
    if (fate.kind === 'answered') break
    // Without an id to come back with, a client cannot know what it missed, and the rest of what it ignores does not come.
    sequence = undefined
    ignored = 0
    if (fate.kind === 'gap') await watchAll(client)
    known = announced.count
  }
  tally.finished++
}

async function watchAll(client: GoodClient): Promise<void> {
  const addresses = Array.from({ length: ADDRESSES }, (_, number) => addressOf(number))
  while (addresses.length > 0) {
    const batch = addresses.splice(0, 8)
    await Promise.all(batch.map(uri => client.request('resources/subscribe', { uri })))
  }
}
